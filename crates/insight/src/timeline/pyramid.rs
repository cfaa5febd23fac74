//! What happens in buckets of time: how many requests are in which state on average, and between
//! which sectors they are. Four buckets are one of the next level.
//!
//! Whoever shows so much time that single requests cannot be seen reads a level instead.

use super::HeldSpan;
use super::columns::Columns;
use super::lanes::{Lane, LaneKind, Lanes};
use super::outline::Outline;
use super::requests::Requests;
use crate::layer::Layer;
use std::collections::BTreeMap;

/// Buckets of the finest level at most.
const MOST_BUCKETS: usize = 1 << 16;
/// Numbers of the finest level at most, of all series together.
const MOST_NUMBERS: usize = 1 << 21;
/// There is a bucket for so many requests.
const REQUESTS: usize = 16;
/// The coarsest level has so many buckets at least.
const FEWEST_BUCKETS: usize = 256;
/// The part that stands for the largest number: lanes are hardly higher in pixels.
pub const FULL: u64 = 63;
/// Buckets of a level that are one of the next.
const STEP: usize = 4;

/// The levels of a timeline.
#[derive(Clone, Debug, Default)]
pub struct Pyramid {
    /// Ticks of a bucket of the finest level.
    pub width: u64,
    /// Buckets of each level, the finest one first.
    pub levels: Vec<usize>,
    /// What is counted, by lane and kind.
    pub series: Vec<Series>,
    /// The lowest and the highest sector of each bucket, of 255 parts of `sectors`; 0 if none.
    pub positions: [Vec<u8>; 2],
    /// One behind the last sector of all.
    pub sectors: u64,
}

/// How many requests of a lane are in one state.
#[derive(Clone, Debug)]
pub struct Series {
    /// The lane.
    pub lane: usize,
    /// The state: a place in the timeline's kinds; of the device's lane an operation.
    pub kind: usize,
    /// For each bucket of each level the mean number, of [`FULL`] parts of `most`; only 0 is none.
    pub parts: Vec<u8>,
    /// The largest mean number in the lane, all kinds together, in thousandths; at least one
    /// request. Of shorter times than a thousandth of the run more is cut off.
    pub most: u64,
}

/// Times in which something is, added up by bucket.
struct Sums {
    width: u64,
    /// Parts of buckets.
    part: Vec<u64>,
    /// Where whole buckets begin and end.
    whole: Vec<i64>,
}

impl Sums {
    fn new(buckets: usize, width: u64) -> Sums {
        Sums { width, part: vec![0; buckets], whole: vec![0; buckets + 1] }
    }

    fn add(&mut self, from: u64, to: u64) {
        if to <= from {
            return;
        }
        let (first, last) = ((from / self.width) as usize, (to / self.width) as usize);
        let last = last.min(self.part.len() - 1);
        if first >= last {
            self.part[last] += to - from;
            return;
        }
        self.part[first] += (first as u64 + 1) * self.width - from;
        self.part[last] += to - last as u64 * self.width;
        self.whole[first + 1] += 1;
        self.whole[last] -= 1;
    }

    /// Ticks in each bucket.
    fn finish(self) -> Vec<u64> {
        let mut open = 0;
        let whole = self.whole.iter().map(|it| {
            open += it;
            open as u64 * self.width
        });
        self.part.iter().zip(whole).map(|(part, whole)| part + whole).collect()
    }
}

impl Pyramid {
    /// That of a run of which every request is known.
    pub(super) fn of(requests: &Requests, held: &[HeldSpan], lanes: &[Lane], end: u64) -> Pyramid {
        let wanted = (requests.len() / REQUESTS).next_power_of_two();
        // A lane has about four kinds.
        let fits = (MOST_NUMBERS / (lanes.len() * 4)).next_power_of_two() / 2;
        let buckets = wanted.min(MOST_BUCKETS).min(fits).max(FEWEST_BUCKETS);
        let width = (end / buckets as u64 + 1).max(1);
        let sums = sums(requests, held, lanes, &|| Sums::new(buckets, width));
        let sums = sums.into_iter().map(|(key, it)| (key, it.finish())).collect();
        let (positions, sectors) = positions(requests, buckets, width);
        let levels = levels(buckets);
        let mut pyramid = Pyramid { width, levels, series: Vec::new(), positions, sectors };
        pyramid.fill(sums);
        pyramid
    }

    /// That of a run of which an outline is known.
    pub(super) fn of_outline(
        outline: &Outline,
        lanes: &Lanes,
        kinds: &[Layer],
        tick: u64,
    ) -> Pyramid {
        let ticks = |it: Vec<u64>| it.into_iter().map(|nanos| nanos / tick).collect::<Vec<_>>();
        let sums = outline.sums(lanes, kinds);
        let mut sums: Vec<_> = sums.into_iter().map(|(key, it)| (key, ticks(it))).collect();
        let mut places: Vec<_> = outline.sectors().collect();
        let mut width = outline.width(tick);
        let lowest = |it: &[Option<[u64; 2]>]| {
            let seen = || it.iter().flatten();
            let low = seen().map(|it| it[0]).min()?;
            Some([low, seen().map(|it| it[1]).max()?])
        };
        while places.len() * sums.len() > MOST_NUMBERS && places.len() > FEWEST_BUCKETS {
            width *= 2;
            places = places.chunks(2).map(lowest).collect();
            for (_, it) in &mut sums {
                *it = it.chunks(2).map(|it| it.iter().sum()).collect();
            }
        }
        let part = |sector: u64| part_of(sector, outline.behind());
        let of = |end: usize| {
            places.iter().map(|it| it.map_or(0, |it| part(it[end]))).collect::<Vec<_>>()
        };
        let (positions, levels) = ([of(0), of(1)], levels(places.len()));
        let sectors = outline.behind();
        let mut pyramid = Pyramid { width, levels, series: Vec::new(), positions, sectors };
        pyramid.fill(sums);
        pyramid
    }

    /// Turns sums into parts of the largest of the lane, on every level.
    fn fill(&mut self, sums: Vec<((usize, usize), Vec<u64>)>) {
        let mut totals: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for ((lane, _), sums) in &sums {
            let total = totals.entry(*lane).or_insert_with(|| vec![0; sums.len()]);
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        for ((lane, kind), sums) in sums {
            let most = most(&totals[&lane]).max(self.width);
            let mut parts = Vec::new();
            let mut level = sums;
            for (depth, buckets) in self.levels.iter().enumerate() {
                let unit = most * (STEP as u64).pow(depth as u32);
                level.truncate(*buckets);
                let part = |sum: &u64| (sum * FULL).div_ceil(unit).min(FULL) as u8;
                parts.extend(level.iter().map(part));
                level = level.chunks(STEP).map(|it| it.iter().sum()).collect();
            }
            let most = (most * 1000).div_ceil(self.width);
            self.series.push(Series { lane, kind, parts, most });
        }
    }

    pub(super) fn encode(&self, columns: &mut Columns) {
        columns.raw("series", self.series.iter().flat_map(|it| it.parts.iter().copied()));
        columns.raw("lowest", self.positions[0].iter().copied());
        columns.raw("highest", self.positions[1].iter().copied());
    }
}

/// How many buckets each level has, the finest one first.
fn levels(buckets: usize) -> Vec<usize> {
    let levels = std::iter::successors(Some(buckets), |it| Some(it / STEP));
    levels.take_while(|it| *it >= FEWEST_BUCKETS).collect()
}

/// A sector of so many, as one of 255 parts; none is 0.
fn part_of(sector: u64, sectors: u64) -> u8 {
    (u128::from(sector) * 254 / u128::from(sectors)) as u8 + 1
}

/// The most that a bucket has on average over a thousandth of all.
fn most(sums: &[u64]) -> u64 {
    let together = (sums.len() / 1024).max(1);
    let mean = |it: &[u64]| it.iter().sum::<u64>() / it.len() as u64;
    sums.chunks(together).map(mean).max().unwrap_or(0)
}

/// The times of every kind in every lane.
fn sums(
    requests: &Requests,
    held: &[HeldSpan],
    lanes: &[Lane],
    new: &dyn Fn() -> Sums,
) -> BTreeMap<(usize, usize), Sums> {
    let device = lanes.iter().position(|it| it.kind == LaneKind::Device).unwrap_or(0);
    let mut sums: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
    let mut add = |lane: usize, kind: usize, from: u64, to: u64| {
        sums.entry((lane, kind)).or_insert_with(new).add(from, to);
    };
    held.iter().for_each(|it| add(0, it.kind, it.from, it.from + it.length));
    for at in 0..requests.len() {
        let (task, queue) = (requests.task[at], requests.queue[at]);
        let issued = requests.queued[at] + requests.issued[at];
        let since = requests.queued[at] + requests.inserted[at].saturating_sub(1);
        for (from, to, kind) in requests.spans(at) {
            add(task, kind, from, to);
            if let Some(group) = lanes[task].group {
                add(group, kind, from, to);
            }
            if requests.inserted[at] > 0 && from.max(since) < to.min(issued) {
                add(queue, kind, from.max(since), to.min(issued));
            }
        }
        add(device, requests.operation(at), issued, requests.completed(at));
    }
    sums
}

/// Between which sectors requests of each bucket are, and where the last sector ends.
fn positions(requests: &Requests, buckets: usize, width: u64) -> ([Vec<u8>; 2], u64) {
    let end = |at: usize| requests.sector[at] + u64::from(requests.sectors[at]);
    let sectors = (0..requests.len()).map(end).max().unwrap_or(0).max(1);
    let (mut lowest, mut highest) = (vec![0; buckets], vec![0; buckets]);
    for at in (0..requests.len()).filter(|at| requests.sectors[*at] > 0) {
        let bucket = (requests.queued[at] + requests.issued[at]) / width;
        let bucket = (bucket as usize).min(buckets - 1);
        let part = part_of(requests.sector[at], sectors);
        let low: &mut u8 = &mut lowest[bucket];
        *low = if *low == 0 { part } else { part.min(*low) };
        highest[bucket] = part.max(highest[bucket]);
    }
    ([lowest, highest], sectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_added_up_by_bucket() {
        let mut sums = Sums::new(4, 10);
        sums.add(5, 35);
        sums.add(11, 13);
        sums.add(38, 60);
        assert_eq!(sums.finish(), [5, 12, 10, 27]);
    }
}
