//! How far two orders of the same requests agree.
//!
//! The measure is the longest common subsequence within each busy period: one request that goes
//! out early or late costs one decision and not all that follow.

use std::collections::BTreeMap;

/// Which elements of `kernel` belong to a longest common subsequence with `ours`, where an element
/// is a busy period and a name that occurs at most once in each of the two.
pub fn common<T: Ord + Copy>(kernel: &[(u32, T)], ours: &[(u32, T)]) -> Vec<bool> {
    let places: BTreeMap<(u32, T), usize> =
        ours.iter().enumerate().map(|(place, element)| (*element, place)).collect();
    let mut agrees = vec![false; kernel.len()];
    let mut start = 0;
    while start < kernel.len() {
        let period = kernel[start].0;
        let length = kernel[start..].iter().take_while(|element| element.0 == period).count();
        let here: Vec<Option<usize>> = kernel[start..start + length]
            .iter()
            .map(|element| places.get(element).copied())
            .collect();
        for index in longest_ascent(&here) {
            agrees[start + index] = true;
        }
        start += length;
    }
    agrees
}

/// The indices of a longest strictly ascending subsequence (patience sorting); what is `None` is
/// left out.
fn longest_ascent(values: &[Option<usize>]) -> Vec<usize> {
    // For each length, the index of the smallest value that ends an ascent of that length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; values.len()];
    for (index, value) in values.iter().enumerate() {
        let Some(value) = value else { continue };
        let shorter = ends.partition_point(|end| values[*end].is_some_and(|it| it < *value));
        before[index] = shorter.checked_sub(1).map(|last| ends[last]);
        match ends.get_mut(shorter) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut ascent = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        ascent.push(index);
        at = before[index];
    }
    ascent.reverse();
    ascent
}

/// Numbers the occurrences of equal names, so that each is unique.
pub fn numbered<T: Ord + Copy>(names: impl IntoIterator<Item = T>) -> Vec<(T, u32)> {
    let mut seen: BTreeMap<T, u32> = BTreeMap::new();
    let number = |name: T| {
        let count = seen.entry(name).or_insert(0);
        *count += 1;
        (name, *count)
    };
    names.into_iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees(kernel: &[u32], ours: &[u32]) -> usize {
        let period = |list: &[u32]| -> Vec<(u32, u32)> { list.iter().map(|it| (0, *it)).collect() };
        common(&period(kernel), &period(ours)).iter().filter(|it| **it).count()
    }

    #[test]
    fn a_request_out_of_place_costs_one_decision() {
        assert_eq!(agrees(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]), 5);
        assert_eq!(agrees(&[1, 2, 3, 4, 5], &[5, 1, 2, 3, 4]), 4);
        assert_eq!(agrees(&[1, 2, 3, 4, 5], &[2, 1, 4, 3, 5]), 3);
        assert_eq!(agrees(&[1, 2, 3], &[3, 2, 1]), 1);
        assert_eq!(agrees(&[1, 2, 3], &[4, 5]), 0);
        assert_eq!(agrees(&[], &[1]), 0);
    }

    #[test]
    fn busy_periods_are_judged_apart() {
        let kernel = [(0, 1), (0, 2), (1, 3), (1, 4)];
        let ours = [(0, 2), (0, 1), (1, 3), (1, 4)];
        let agrees = common(&kernel, &ours);
        assert!(agrees[0] != agrees[1] && agrees[2] && agrees[3]);
    }

    #[test]
    fn occurrences_of_a_name_are_told_apart() {
        assert_eq!(numbered([7, 8, 7]), [(7, 1), (8, 1), (7, 2)]);
    }

    #[test]
    fn the_subsequence_is_as_long_as_a_naive_search_finds() {
        let mut rng = base::Rng::stream(1, "agreement");
        for _ in 0..200 {
            let mut ours: Vec<u32> = (0..12).collect();
            rng.shuffle(&mut ours);
            let kernel: Vec<u32> = (0..12).collect();
            assert_eq!(agrees(&kernel, &ours), naive(&kernel, &ours), "{ours:?}");
        }
    }

    fn naive(left: &[u32], right: &[u32]) -> usize {
        let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
        for i in 0..left.len() {
            for j in 0..right.len() {
                table[i + 1][j + 1] = if left[i] == right[j] {
                    table[i][j] + 1
                } else {
                    table[i][j + 1].max(table[i + 1][j])
                };
            }
        }
        table[left.len()][right.len()]
    }
}
