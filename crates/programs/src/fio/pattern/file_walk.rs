//! The walk over one range.
//!
//! What is done here is what fio 3.33 was seen to do, its oddities included: an offset is drawn
//! first, then a size that fits behind it; a block that was visited gives way to the next free
//! one; blocks of different sizes share one map by their numbers, wherever they lie; sequential
//! requests among random ones do not count as visits.

use base::Bytes;
use std::collections::BTreeMap;

use super::super::job::{Direction, Directions, Modifier, Pattern, PerDirection, Share, Zones};
use super::super::mix::BlockSizes;
use super::super::random::{Purpose, Sampler, Seeds, ShiftRegister, Taus88, Tausworthe, VisitMap};
use super::Range;
use super::listing::Listing;

/// The walk of a job over the range of one file.
#[derive(Clone, Debug)]
pub(super) struct FileWalk {
    /// No place is left in this round.
    pub done: bool,
    pattern: Pattern,
    range: Range,
    /// Bytes from the start of the range to the end of the file.
    room: u64,
    /// Bytes of the whole file.
    file_size: u64,
    /// Where the last request in each direction ended, counted from the start of the range, and
    /// where it began.
    position: PerDirection<u64>,
    last: PerDirection<u64>,
    is_fresh: bool,
    visits: Visits,
    sampler: Sampler,
    zones: ZoneState,
}

/// The random numbers that the files of a job share.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    offsets: Tausworthe,
    sizes: PerDirection<Tausworthe>,
    order: PerDirection<Taus88>,
    zone: Taus88,
    /// Requests until the next one that is random, or is not a repetition (`rw=…:N`).
    run: u32,
    /// No place was found for something that was not random: fio forgets to note the next visit.
    is_forgetful: bool,
}

/// How a job keeps from visiting a block twice.
#[derive(Clone, Debug)]
enum Visits {
    /// It does not.
    Any,
    /// A register that comes by each block.
    Register(ShiftRegister),
    /// A map of as many blocks as there are of the smallest size.
    Mapped(VisitMap),
    /// The same where each request takes one block at a random place.
    Listed(Listing),
}

/// How the offset of a request comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Random,
    Sequential,
    /// As the last one in its direction.
    Repeated,
}

#[derive(Clone, Debug)]
enum ZoneState {
    None,
    Strided { size: u64, range: u64, step: u64, start: u64, moved: u64 },
    Emulated { size: u64, capacity: u64, most_open: usize, filled: Filled, open: Vec<u64> },
}

impl Draws {
    pub fn new(pattern: &Pattern, seeds: &Seeds) -> Draws {
        let size = |purpose| seeds.stream(purpose, pattern.long_draws);
        let short = |purpose| Taus88::new(seeds.of(purpose) as u32);
        Draws {
            offsets: seeds.stream(Purpose::Offset, pattern.long_draws),
            sizes: [Purpose::ReadSize, Purpose::WriteSize, Purpose::TrimSize].map(size),
            order: std::array::from_fn(|_| short(Purpose::Order)),
            zone: short(Purpose::Zone),
            run: 0,
            is_forgetful: false,
        }
    }

    /// Random, sequential or a repetition.
    fn order(&mut self, pattern: &Pattern, direction: Direction) -> Order {
        if !pattern.random {
            return Order::Sequential;
        }
        let (run, between) = match pattern.modifier {
            Modifier::Run(run) => (run, Order::Sequential),
            Modifier::Repeat(run) => (run, Order::Repeated),
            Modifier::None | Modifier::Skip(_) => (1, Order::Random),
        };
        if self.run > 0 {
            self.run -= 1;
            return between;
        }
        self.run = run - 1;
        let percent = pattern.random_percent[direction as usize];
        match percent == 100 || self.order[direction as usize].percent() < percent {
            true => Order::Random,
            false => Order::Sequential,
        }
    }
}

impl FileWalk {
    pub fn new(
        pattern: &Pattern,
        zones: Option<Zones>,
        range: Range,
        whole: Range,
        is_alone: bool,
        seeds: &Seeds,
    ) -> Self {
        let size = range.size();
        let least = pattern.sizes.iter().map(|sizes| sizes.least().0).min().unwrap_or(512);
        let zones = ZoneState::new(zones, size);
        let blocks = (size / least.max(1)).max(1);
        // A part of a block at the end counts for distributions, not for maps.
        let parts = size.div_ceil(least.max(1)).max(1);
        let seed = seeds.of(Purpose::Offset);
        let visits = match () {
            () if matches!(zones, ZoneState::Emulated { .. }) => Visits::Any,
            () if pattern.shift_register => {
                let blocks = zones.extent().map_or(blocks, |extent| extent / least.max(1));
                Visits::Register(ShiftRegister::new(blocks, seed))
            }
            () if pattern.random_map && is_alone && takes_blocks(pattern, &zones, blocks, size) => {
                Visits::Listed(Listing::new(blocks))
            }
            () if pattern.random_map => Visits::Mapped(VisitMap::new(blocks)),
            () => Visits::Any,
        };
        let starts = Direction::ALL.map(|direction| {
            (starts(pattern, direction, size), pattern.alignment[direction as usize])
        });
        FileWalk {
            done: false,
            pattern: pattern.clone(),
            range,
            room: whole.end - range.start,
            file_size: whole.size(),
            position: [0; 3],
            last: [0; 3],
            is_fresh: true,
            visits,
            sampler: Sampler::new(&pattern.distribution, Bytes(size), starts, parts, seed as u32),
            zones,
        }
    }

    /// Whether no request has gone here yet.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// Begins a new round.
    pub fn restart(&mut self) {
        self.done = false;
        self.position = [0; 3];
        self.last = [0; 3];
        self.is_fresh = true;
        self.visits.forget();
        self.zones.restart();
    }

    /// Offset and length of the next request; `None` when there is no place for it.
    pub fn next(&mut self, direction: Direction, draws: &mut Draws) -> Option<(u64, u64)> {
        let order = draws.order(&self.pattern, direction);
        let place = self.place(direction, order, draws);
        draws.is_forgetful = place.is_none() && (draws.is_forgetful || order != Order::Random);
        place
    }

    fn place(
        &mut self,
        direction: Direction,
        order: Order,
        draws: &mut Draws,
    ) -> Option<(u64, u64)> {
        if let Some(start) = self.zones.move_on(self.range.size()) {
            (self.position, self.last) = ([start; 3], [start; 3]);
            self.visits.forget();
        }
        let (offset, length) = match &self.zones {
            ZoneState::Emulated { .. } => self.emulated(direction, order, draws)?,
            _ => self.plain(direction, order, draws)?,
        };
        if offset + length > self.room {
            return None;
        }
        self.zones.count(length);
        self.position[direction as usize] = offset + length;
        self.last[direction as usize] = offset;
        self.is_fresh = false;
        Some((self.range.start + offset, length))
    }

    /// The next place, counted from the start of the range.
    fn plain(
        &mut self,
        direction: Direction,
        order: Order,
        draws: &mut Draws,
    ) -> Option<(u64, u64)> {
        let index = direction as usize;
        // At the end of the file something random takes the place of what is sequential.
        let is_random = order == Order::Random
            || order == Order::Sequential
                && self.pattern.random
                && self.position[index] >= self.room;
        let (offset, block) = match order {
            _ if is_random => self.random(direction, draws)?,
            Order::Repeated => (self.last[index], 0),
            _ => (self.sequential(direction)?, 0),
        };
        let length = self.length(direction, order, offset, draws)?;
        match &mut self.visits {
            Visits::Mapped(map) if order == Order::Random && !draws.is_forgetful => {
                let unit = self.pattern.alignment[index].0;
                let run = map.visit_run(block, length.div_ceil(unit));
                Some((offset, length.min(run * unit)))
            }
            _ => Some((offset, length)),
        }
    }

    /// A random offset and the number of the block, which was not visited if there is a map.
    fn random(&mut self, direction: Direction, draws: &mut Draws) -> Option<(u64, u64)> {
        let unit = self.pattern.alignment[direction as usize].0;
        let size = self.range.size();
        let zone = self.zones.extent();
        let pattern = &self.pattern;
        let blocks = || starts(pattern, direction, zone.unwrap_or(size));
        let (offsets, order) = (&mut draws.offsets, &mut draws.zone);
        let sampler = &mut self.sampler;
        let block = match &mut self.visits {
            Visits::Any => sampler.draw(direction, blocks(), |n| Some(offsets.below(n)), order)?,
            Visits::Register(register) => {
                sampler.draw(direction, blocks(), |_| register.draw(), order)?
            }
            Visits::Mapped(map) => map.next_free(offsets.below(blocks()))?,
            Visits::Listed(listing) => listing.next(offsets)?,
        };
        // Behind the end of a zone one comes to its start.
        let within = zone.map_or(block * unit, |zone| block * unit % zone);
        let offset = self.zones.start() + within;
        (offset < size).then_some((offset, block))
    }

    fn sequential(&self, direction: Direction) -> Option<u64> {
        let mut position = self.position[direction as usize];
        let (start, size) = (self.zones.start(), self.range.size());
        if position >= self.room {
            return None;
        }
        if self.zones.extent().is_some_and(|extent| position >= start + extent) {
            position = start;
        }
        if let Modifier::Skip(skip) = self.pattern.modifier
            && position > start
        {
            // It begins again behind as many bytes as the whole file has, so only from its start.
            // observed: fio 3.33 with an offset
            position = match position.checked_add_signed(skip) {
                Some(position) if position < self.file_size => position,
                _ if skip > 0 => 0,
                // Backwards from the start, which is from the end then.
                _ => size.checked_add_signed(skip)?,
            };
        }
        (position < size).then_some(position)
    }

    /// Draws a size that fits between an offset and the end of the range.
    fn length(
        &self,
        direction: Direction,
        order: Order,
        offset: u64,
        draws: &mut Draws,
    ) -> Option<u64> {
        let which = match (self.pattern.sizes_by_randomness, order) {
            (true, Order::Random) => Direction::Write,
            (true, _) => Direction::Read,
            (false, _) => direction,
        };
        let sizes = &self.pattern.sizes[which as usize];
        let room = self.range.size() - offset;
        // What is trimmed before it is written draws as the write.
        let stream = match self.pattern.directions {
            Directions::TrimWrite => Direction::Write,
            _ => which,
        };
        draw_size(sizes, room, &mut draws.sizes[stream as usize])
    }

    /// Writes each zone from its start to its end; reads what is written.
    fn emulated(
        &mut self,
        direction: Direction,
        order: Order,
        draws: &mut Draws,
    ) -> Option<(u64, u64)> {
        let random = order == Order::Random;
        let wanted = self.length(direction, order, 0, draws)?;
        let position = self.position[direction as usize];
        let ZoneState::Emulated { size, capacity, most_open, filled, open } = &mut self.zones
        else {
            unreachable!("only called for emulated zones");
        };
        if filled.zones == 0 || wanted > *capacity {
            return None;
        }
        let next = |position: u64| {
            let (zone, inside) = (position / *size, position % *size);
            if inside + wanted > *capacity { (zone + 1, 0) } else { (zone, inside) }
        };
        if direction != Direction::Write {
            let (zone, inside) = if random {
                let zone = draws.offsets.below(filled.zones);
                (zone, draws.offsets.below((*capacity - wanted) / wanted + 1) * wanted)
            } else {
                next(position)
            };
            return (zone < filled.zones).then_some((zone * *size + inside, wanted));
        }
        let zone = if !random {
            let (zone, inside) = next(position);
            if zone >= filled.zones {
                return None;
            }
            filled.set(zone, inside);
            zone
        } else if *most_open > 0 && open.len() >= *most_open {
            open[draws.offsets.below(open.len() as u64) as usize]
        } else {
            draws.offsets.below(filled.zones)
        };
        // A zone that is full is reset and written again.
        let before = filled.of(zone);
        let before = if before + wanted > *capacity { 0 } else { before };
        let offset = zone * *size + before;
        filled.set(zone, before + wanted);
        if random {
            open.retain(|other| *other != zone);
            if before + 2 * wanted <= *capacity {
                open.push(zone);
            }
        }
        Some((offset, wanted))
    }
}

/// How far zones are filled: all are full at first.
#[derive(Clone, Debug)]
struct Filled {
    zones: u64,
    capacity: u64,
    /// Those that were written since. A disk may have more zones than memory has room for.
    others: BTreeMap<u64, u64>,
}

impl Filled {
    fn of(&self, zone: u64) -> u64 {
        self.others.get(&zone).copied().unwrap_or(self.capacity)
    }

    fn set(&mut self, zone: u64, bytes: u64) {
        self.others.insert(zone, bytes);
    }
}

impl Visits {
    fn forget(&mut self) {
        match self {
            Visits::Any => {}
            Visits::Register(register) => register.restart(),
            Visits::Mapped(map) => map.clear(),
            Visits::Listed(listing) => listing.restart(),
        }
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
                let range = range.0.min(len);
                ZoneState::Strided { size: size.0, range, step, start: 0, moved: 0 }
            }
            Some(Zones::Emulated { size, capacity, open }) => ZoneState::Emulated {
                size: size.0,
                capacity: capacity.0,
                most_open: open as usize,
                filled: Filled {
                    zones: len / size.0,
                    capacity: capacity.0,
                    others: BTreeMap::new(),
                },
                open: Vec::new(),
            },
        }
    }

    /// Where the current zone begins.
    fn start(&self) -> u64 {
        match self {
            ZoneState::Strided { start, .. } => *start,
            _ => 0,
        }
    }

    /// How much of the range random offsets fall into, if not all.
    fn extent(&self) -> Option<u64> {
        match self {
            ZoneState::Strided { range, .. } => Some(*range),
            _ => None,
        }
    }

    /// Goes to the next zone of a range of `len` bytes when enough was transferred in this one;
    /// the answer is where it begins.
    fn move_on(&mut self, len: u64) -> Option<u64> {
        let ZoneState::Strided { size, range, step, start, moved } = self else { return None };
        if *moved < *size {
            return None;
        }
        let next = start.saturating_add(*step);
        *start = if next.saturating_add(*range) <= len { next } else { 0 };
        *moved = 0;
        Some(*start)
    }

    /// So much was transferred.
    fn count(&mut self, length: u64) {
        if let ZoneState::Strided { moved, .. } = self {
            *moved += length;
        }
    }

    /// A new round begins at the first zone; what was written stays written.
    fn restart(&mut self) {
        if let ZoneState::Strided { start, moved, .. } = self {
            (*start, *moved) = (0, 0);
        }
    }
}

/// Whether each request takes one of so many blocks at a random place.
fn takes_blocks(pattern: &Pattern, zones: &ZoneState, blocks: u64, size: u64) -> bool {
    let used = || Direction::ALL.into_iter().filter(|it| pattern.directions.include(*it));
    matches!(zones, ZoneState::None)
        && matches!(pattern.modifier, Modifier::None | Modifier::Skip(_))
        && !pattern.sizes_by_randomness
        && used().all(|direction| {
            pattern.sizes[direction as usize].is_fixed()
                && pattern.random_percent[direction as usize] == 100
                && starts(pattern, direction, size) == blocks
        })
}

/// At how many places in a range of so many bytes a request can begin.
fn starts(pattern: &Pattern, direction: Direction, extent: u64) -> u64 {
    let unit = pattern.alignment[direction as usize].0;
    let least = pattern.sizes[direction as usize].least().0;
    extent.saturating_sub(least.saturating_sub(unit)) / unit
}

/// Sizes that are drawn until one fits, at most.
const MOST_DRAWS: u32 = 100_000;

/// Draws sizes until one fits into so many bytes; `None` if none does.
fn draw_size(sizes: &BlockSizes, room: u64, draws: &mut Tausworthe) -> Option<u64> {
    match sizes {
        // A single size is not asked whether it fits.
        BlockSizes::Fixed(size) => Some(size.0),
        BlockSizes::Range(least, most) => {
            if least.0 > room {
                return None;
            }
            for _ in 0..MOST_DRAWS {
                let size = ((draws.below(most.0) / least.0 + 1) * least.0).min(most.0);
                if size <= room {
                    return Some(size);
                }
            }
            // Hardly any size fits: one of those that do.
            Some((draws.below(room / least.0) + 1) * least.0)
        }
        BlockSizes::Split(shares) => draw_share(shares, sizes.least().0, room, draws),
    }
}

/// Draws a size from its share: of those whose shares end behind the draw, the first that fits; in
/// whole blocks of the smallest size.
fn draw_share(
    shares: &[(Bytes, u8)],
    least: u64,
    room: u64,
    draws: &mut Tausworthe,
) -> Option<u64> {
    let whole = |size: Bytes| size.0 / least * least;
    let last = whole(shares.last()?.0);
    let fits = |(size, end): &&(Bytes, u8)| size.0 <= room && *end > 0;
    if last > room && !shares.iter().any(|share| fits(&share)) {
        return None;
    }
    loop {
        let draw = draws.percent();
        let found = shares.iter().find(|share| draw < share.1 && fits(share));
        let size = found.map_or(last, |share| whole(share.0));
        if size <= room {
            return Some(size);
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
        let mut draws = Tausworthe::new(1, false);
        let split = BlockSizes::Split(vec![(Bytes(8192), 40), (Bytes(4096), 100)]);
        let mut draw = |room| draw_size(&split, room, &mut draws);
        let small = (0..10_000).filter(|_| draw(1 << 20) == Some(4096)).count();
        assert!((5_850..6_150).contains(&small), "{small}");
        assert!((0..100).all(|_| draw(5000) == Some(4096)));
        assert_eq!(draw(512), None);
        let range = BlockSizes::Range(Bytes(1024), Bytes(3584));
        let mut draw = |room| draw_size(&range, room, &mut draws);
        let seen: std::collections::BTreeSet<u64> = (0..100).filter_map(|_| draw(9999)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1024, 2048, 3072, 3584]);
        assert!((0..100).all(|_| draw(2048) <= Some(2048)));
        let range = BlockSizes::Range(Bytes(8192), Bytes(i64::MAX as u64));
        assert!((0..3).all(|_| draw_size(&range, 1 << 16, &mut draws) <= Some(1 << 16)));
    }
}
