//! The pages that a host has in memory: a bounded set that forgets those not used for long.
//!
//! Divergence: a page competes only with the few of its own set, not with all.

const WAYS: usize = 8;

/// The set.
pub(super) struct PageSet {
    /// Page and last use, `WAYS` of them a set; unused entries have use zero.
    entries: Vec<(u64, u64)>,
    uses: u64,
}

impl PageSet {
    pub fn new(pages: usize) -> PageSet {
        let sets = (pages / WAYS).next_power_of_two();
        PageSet { entries: vec![(0, 0); sets * WAYS], uses: 0 }
    }

    fn set(&mut self, page: u64) -> &mut [(u64, u64)] {
        let sets = (self.entries.len() / WAYS) as u64;
        // Neighbouring pages go to neighbouring sets, far ones are spread by the golden ratio.
        let spread = (page >> 8).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let index = ((page ^ spread) & (sets - 1)) as usize;
        &mut self.entries[index * WAYS..(index + 1) * WAYS]
    }

    pub fn holds(&mut self, page: u64) -> bool {
        self.uses += 1;
        let uses = self.uses;
        match self.set(page).iter_mut().find(|entry| entry.0 == page && entry.1 > 0) {
            Some(entry) => {
                entry.1 = uses;
                true
            }
            None => false,
        }
    }

    pub fn insert(&mut self, page: u64) {
        if !self.holds(page) {
            let uses = self.uses;
            let oldest = self.set(page).iter_mut().min_by_key(|entry| entry.1);
            *oldest.expect("a set has entries") = (page, uses);
        }
    }
}
