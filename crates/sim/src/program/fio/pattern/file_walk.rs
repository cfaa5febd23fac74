//! The walk over one range.

use base::{Bytes, Rng};

use super::super::job::{Direction, Directions, Modifier, Pattern, Share, Zones};
use super::super::mix::BlockSizes;
use super::super::random::{Permutation, Sampler, VisitMap};
use super::Range;

/// The walk of a job over the range of one file.
#[derive(Clone, Debug)]
pub(super) struct FileWalk {
    /// Everything in it was visited.
    pub done: bool,
    pattern: Pattern,
    range: Range,
    /// Where the last request in each direction ended, counted from the start of the range.
    position: [u64; 3],
    started: [bool; 3],
    visits: Visits,
    samplers: [Sampler; 3],
    zones: ZoneState,
    /// Sequential requests still to come behind a random one, or repetitions of the last one.
    run: u32,
    last: Option<(u64, u64)>,
    offsets: Rng,
    sizes: Rng,
}

/// How a job keeps from visiting a block twice.
#[derive(Clone, Debug)]
enum Visits {
    /// It does not.
    Any,
    /// All blocks have one size: they come in a drawn order.
    Ordered(Permutation, u64),
    /// A map in units of the smallest block.
    Mapped(VisitMap, u64),
}

#[derive(Clone, Debug)]
enum ZoneState {
    None,
    Strided { size: u64, range: u64, step: u64, start: u64, moved: u64 },
    Emulated { size: u64, capacity: u64, most_open: usize, filled: Vec<u64>, open: Vec<usize> },
}

impl FileWalk {
    pub fn new(
        pattern: &Pattern,
        zones: Option<Zones>,
        range: Range,
        sizes: Rng,
        offsets: &mut Rng,
    ) -> Self {
        let len = range.size();
        let used = |direction: &Direction| pattern.directions.include(*direction);
        let least = Direction::ALL
            .iter()
            .filter(|direction| used(direction))
            .map(|direction| pattern.sizes[*direction as usize].least().0)
            .min()
            .unwrap_or(512);
        let samplers = std::array::from_fn(|direction| {
            let align = pattern.alignment[direction].0.max(1);
            let starts = len.saturating_sub(pattern.sizes[direction].least().0) / align + 1;
            Sampler::new(&pattern.distribution[direction], starts, Bytes(align), offsets)
        });
        let once = (pattern.random_map || pattern.shift_register) && zones.is_none();
        let visits = match (once, Self::has_one_order(pattern)) {
            (false, _) => Visits::Any,
            (true, true) => Visits::Ordered(Permutation::new((len / least).max(1), offsets), 0),
            (true, false) => Visits::Mapped(VisitMap::new((len / least).max(1)), least),
        };
        FileWalk {
            done: false,
            pattern: pattern.clone(),
            range,
            position: [0; 3],
            started: [false; 3],
            visits,
            samplers,
            zones: ZoneState::new(zones, len),
            run: 0,
            last: None,
            offsets: offsets.clone(),
            sizes,
        }
    }

    /// Whether each request takes exactly one block of one size at a random place.
    fn has_one_order(pattern: &Pattern) -> bool {
        let mut used = Direction::ALL
            .into_iter()
            .filter(|direction| pattern.directions.include(*direction))
            .map(|direction| &pattern.sizes[direction as usize]);
        let first = used.next().map(BlockSizes::least);
        let same = |sizes: &BlockSizes| sizes.is_fixed() && Some(sizes.least()) == first;
        let all_random = pattern.random_percent == [100; 3] && !pattern.sizes_by_randomness;
        let all_same = Direction::ALL
            .into_iter()
            .filter(|direction| pattern.directions.include(*direction))
            .all(|direction| same(&pattern.sizes[direction as usize]));
        all_same && all_random && !matches!(pattern.modifier, Modifier::Run(_))
    }

    /// Whether no request has gone here yet.
    pub fn is_fresh(&self) -> bool {
        self.last.is_none()
    }

    pub fn restart(&mut self) {
        self.done = false;
        self.position = [0; 3];
        self.started = [false; 3];
        self.run = 0;
        self.last = None;
        match &mut self.visits {
            Visits::Any => {}
            Visits::Ordered(order, next) => {
                *order = Permutation::new(order.count(), &mut self.offsets);
                *next = 0;
            }
            Visits::Mapped(map, _) => map.clear(),
        }
        self.zones.restart();
    }

    /// Offset and length of the next request; `None` when nothing is left to visit.
    pub fn next(&mut self, direction: Direction) -> Option<(u64, u64)> {
        if let (Modifier::Repeat(_), true, Some(last)) =
            (self.pattern.modifier, self.run > 0, self.last)
        {
            self.run -= 1;
            return Some(last);
        }
        let (offset, length) = self.fresh(direction)?;
        self.position[direction as usize] = offset + length;
        self.started[direction as usize] = true;
        let place = (self.range.start + offset, length);
        self.last = Some(place);
        Some(place)
    }

    /// The next place that is not a repetition, counted from the start of the range.
    fn fresh(&mut self, direction: Direction) -> Option<(u64, u64)> {
        let percent = u64::from(self.pattern.random_percent[direction as usize]);
        let random = match self.pattern.modifier {
            Modifier::Run(_) if self.pattern.random && self.run > 0 => {
                self.run -= 1;
                false
            }
            _ if !self.pattern.random => false,
            _ => percent == 100 || self.offsets.below(100) < percent,
        };
        let which = match (self.pattern.sizes_by_randomness, random) {
            (true, true) => Direction::Write,
            (true, false) => Direction::Read,
            (false, _) => direction,
        };
        let wanted = draw_size(&self.pattern.sizes[which as usize], &mut self.sizes);
        let least = self.pattern.sizes[which as usize].least().0;
        let place = match &self.zones {
            ZoneState::None if random => self.random(direction, wanted),
            ZoneState::None => self.sequential(direction, wanted, least),
            ZoneState::Strided { .. } => self.strided(direction, random, wanted, least),
            ZoneState::Emulated { .. } => self.emulated(direction, random, wanted),
        }?;
        match self.pattern.modifier {
            Modifier::Run(run) if random => self.run = run - 1,
            Modifier::Repeat(run) => self.run = run - 1,
            _ => {}
        }
        Some(place)
    }

    fn random(&mut self, direction: Direction, wanted: u64) -> Option<(u64, u64)> {
        let len = self.range.size();
        match &mut self.visits {
            Visits::Any => {
                let align = self.pattern.alignment[direction as usize].0.max(1);
                let start = self.samplers[direction as usize].draw(&mut self.offsets);
                Some(self.cut(start * align, wanted, len))
            }
            Visits::Ordered(order, next) => {
                if *next == order.count() {
                    return None;
                }
                let block = order.at(*next);
                *next += 1;
                Some((block * wanted, wanted))
            }
            Visits::Mapped(map, unit) => {
                let drawn = self.offsets.below((len / *unit).max(1));
                let block = map.next_free(drawn)?;
                let run = map.free_run(block, wanted.div_ceil(*unit));
                (block..block + run).for_each(|block| map.visit(block));
                Some((block * *unit, wanted.min(run * *unit)))
            }
        }
    }

    fn sequential(&mut self, direction: Direction, wanted: u64, least: u64) -> Option<(u64, u64)> {
        let len = self.range.size();
        let index = direction as usize;
        let mut position = self.position[index];
        let mut wrapped = false;
        match self.pattern.modifier {
            // Backwards from the start, which is from the end then, again and again.
            Modifier::Skip(skip) if skip < 0 && self.started[index] => {
                position =
                    position.checked_add_signed(skip).unwrap_or(len.saturating_add_signed(skip));
            }
            Modifier::Skip(skip) if skip > 0 && self.started[index] => {
                position = position.saturating_add(skip.unsigned_abs());
            }
            _ => {}
        }
        if position.saturating_add(least) > len {
            (position, wrapped) = (0, true);
        }
        // A single sequential direction ends with the range; a mixture goes round until its
        // amount is transferred, and so do the sequential requests among random ones.
        let ends = !self.pattern.random && matches!(self.pattern.directions, Directions::Only(_));
        if wrapped && self.started[index] && ends {
            return None;
        }
        if position.saturating_add(least) > len {
            return None;
        }
        let place = self.cut(position, wanted, len);
        if let Visits::Mapped(map, unit) = &mut self.visits {
            let last = (place.0 + place.1 - 1) / *unit;
            let blocks = len / *unit;
            (place.0 / *unit..=last.min(blocks.saturating_sub(1)))
                .for_each(|block| map.visit(block));
        }
        Some(place)
    }

    /// Stays in a zone until its share is transferred, then goes to the next one.
    fn strided(
        &mut self,
        direction: Direction,
        random: bool,
        wanted: u64,
        least: u64,
    ) -> Option<(u64, u64)> {
        let len = self.range.size();
        let index = direction as usize;
        let align = self.pattern.alignment[index].0.max(1);
        let ZoneState::Strided { size, range, step, start, moved } = &mut self.zones else {
            unreachable!("only called for strided zones");
        };
        if *moved >= *size {
            *start = start.saturating_add(*step);
            *moved = 0;
            self.position = [*start; 3];
        }
        let end = start.saturating_add(*range).min(len);
        if start.saturating_add(least) > end {
            return None;
        }
        let offset = if random {
            *start + self.offsets.below((end - *start - least) / align + 1) * align
        } else if self.position[index] < *start || self.position[index] + least > end {
            *start
        } else {
            self.position[index]
        };
        let length = wanted.min(end - offset);
        *moved += length;
        Some((offset, length))
    }

    /// Writes each zone from its start to its end; reads what is written.
    fn emulated(&mut self, direction: Direction, random: bool, wanted: u64) -> Option<(u64, u64)> {
        let position = self.position[direction as usize];
        let ZoneState::Emulated { size, capacity, most_open, filled, open } = &mut self.zones
        else {
            unreachable!("only called for emulated zones");
        };
        if filled.is_empty() || wanted > *capacity {
            return None;
        }
        let next = |position: u64| {
            let (zone, inside) = (position / *size, position % *size);
            if inside + wanted > *capacity { (zone + 1, 0) } else { (zone, inside) }
        };
        if direction != Direction::Write {
            let (zone, inside) = if random {
                let zone = self.offsets.below(filled.len() as u64);
                (zone, self.offsets.below((*capacity - wanted) / wanted + 1) * wanted)
            } else {
                next(position)
            };
            return (zone < filled.len() as u64).then_some((zone * *size + inside, wanted));
        }
        let zone = if !random {
            let (zone, inside) = next(position);
            if zone >= filled.len() as u64 {
                return None;
            }
            filled[zone as usize] = inside;
            zone as usize
        } else if *most_open > 0 && open.len() >= *most_open {
            open[self.offsets.below(open.len() as u64) as usize]
        } else {
            self.offsets.below(filled.len() as u64) as usize
        };
        // A zone that is full is reset and written again.
        if filled[zone] + wanted > *capacity {
            filled[zone] = 0;
        }
        let offset = zone as u64 * *size + filled[zone];
        filled[zone] += wanted;
        if random {
            open.retain(|other| *other != zone);
            if filled[zone] + wanted <= *capacity {
                open.push(zone);
            }
        }
        Some((offset, wanted))
    }

    /// A request that ends within the first `len` bytes, in whole sectors.
    fn cut(&self, offset: u64, wanted: u64, len: u64) -> (u64, u64) {
        let room = len - offset;
        let length = if wanted <= room { wanted } else { room / 512 * 512 };
        (offset, length)
    }
}

impl ZoneState {
    fn new(zones: Option<Zones>, len: u64) -> Self {
        match zones {
            None => ZoneState::None,
            Some(Zones::Strided { size, range, skip }) => {
                let skip = match skip {
                    Share::Bytes(bytes) => bytes,
                    Share::Percent(percent) => percent_of(len, percent),
                };
                let step = range.0.saturating_add(skip);
                ZoneState::Strided { size: size.0, range: range.0, step, start: 0, moved: 0 }
            }
            Some(Zones::Emulated { size, capacity, open }) => ZoneState::Emulated {
                size: size.0,
                capacity: capacity.0,
                most_open: open as usize,
                filled: vec![capacity.0; (len / size.0) as usize],
                open: Vec::new(),
            },
        }
    }

    /// A new round begins at the first zone; what was written stays written.
    fn restart(&mut self) {
        if let ZoneState::Strided { start, moved, .. } = self {
            (*start, *moved) = (0, 0);
        }
    }
}

fn draw_size(sizes: &BlockSizes, rng: &mut Rng) -> u64 {
    match sizes {
        BlockSizes::Fixed(size) => size.0,
        BlockSizes::Range(least, most) => least.0 * (1 + rng.below(most.0 / least.0)),
        BlockSizes::Split(sizes) => {
            let draw = rng.below(100) as u8;
            let index = sizes.partition_point(|(_, end)| *end <= draw);
            sizes[index.min(sizes.len() - 1)].0.0
        }
    }
}

/// `percent` of `bytes`, in whole sectors.
pub(super) fn percent_of(bytes: u64, percent: u8) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64 / 512 * 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_to_their_shares() {
        let mut rng = Rng::stream(1, "sizes");
        let split = BlockSizes::Split(vec![(Bytes(4096), 60), (Bytes(8192), 100)]);
        let small = (0..10_000).filter(|_| draw_size(&split, &mut rng) == 4096).count();
        assert!((5_850..6_150).contains(&small), "{small}");
        let range = BlockSizes::Range(Bytes(1024), Bytes(4096));
        let seen: std::collections::BTreeSet<u64> =
            (0..100).map(|_| draw_size(&range, &mut rng)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1024, 2048, 3072, 4096]);
    }
}
