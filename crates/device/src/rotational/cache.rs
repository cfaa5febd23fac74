//! The drive's buffer: segments that hold what was read, read ahead, or written and not yet on
//! the platters.
//!
//! Reads and writes take segments from one pool or from one each. A segment holds one contiguous
//! range; a part of it may be dirty. Segments that are clean and not in use are replaced in the
//! order of their last use. In a common pool, written data stays readable until it is replaced;
//! in a pool of their own, writes give their segments back when they are on the platters. Leaves
//! out the bytes themselves: whether a read sees old or new data is not a question of time.

use core::ops::Range;

use base::Instant;

use super::geometry::Place;

/// How the buffer is divided.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub read_segments: usize,
    pub segment_sectors: u64,
    /// Whether data that a read has been given stays readable.
    pub keeps_delivered: bool,
    pub write: Option<WriteLayout>,
}

/// How written data is held until it is on the platters.
#[derive(Clone, Debug)]
pub(crate) struct WriteLayout {
    /// Whether writes take their segments from those of the reads.
    pub shared: bool,
    pub segments: usize,
    /// Dirty sectors at most.
    pub sectors: u64,
}

/// What is in one segment besides its range.
#[derive(Clone, Debug)]
struct Segment {
    dirty: Range<u64>,
    /// Place of the first dirty sector.
    place: Place,
    /// When the data written last has arrived from the host.
    ready: Instant,
    /// Position in the order in which segments became dirty.
    dirtied: u64,
    /// Being filled from, or written to, the platters now.
    busy: bool,
    /// Holds what was written, not what was read.
    written: bool,
    used: u64,
}

/// The buffer.
pub(crate) struct Cache {
    ranges: Vec<Range<u64>>,
    segments: Vec<Segment>,
    read_pool: Range<usize>,
    /// Segments of the writes' own pool that hold nothing; `None` when the pool is common.
    empty: Option<Vec<usize>>,
    segment_sectors: u64,
    keeps_delivered: bool,
    max_dirty_segments: usize,
    max_dirty_sectors: u64,
    /// First dirty sector and number of every segment with dirty data, in order of sector.
    dirty: Vec<(u64, usize)>,
    dirty_sectors: u64,
    uses: u64,
}

/// A segment took part of a write.
pub(crate) struct Absorbed {
    pub segment: usize,
    pub sectors: u64,
    /// The first dirty sector is another one now: its place must be told.
    pub moved: bool,
}

impl Cache {
    pub fn new(layout: &Layout) -> Cache {
        let reads = layout.read_segments;
        let own = layout.write.as_ref().filter(|write| !write.shared);
        let count = reads + own.map_or(0, |write| write.segments);
        let place =
            Place { cylinder: 0, head: 0, angle: 0, sector: 0, sectors_per_track: 1, left: 0 };
        let empty = Segment {
            dirty: 0..0,
            place,
            ready: Instant::ZERO,
            dirtied: 0,
            busy: false,
            written: false,
            used: 0,
        };
        Cache {
            ranges: vec![0..0; count],
            segments: vec![empty; count],
            read_pool: 0..reads,
            empty: own.map(|_| (reads..count).rev().collect()),
            segment_sectors: layout.segment_sectors,
            keeps_delivered: layout.keeps_delivered,
            max_dirty_segments: layout.write.as_ref().map_or(0, |write| write.segments),
            max_dirty_sectors: layout.write.as_ref().map_or(0, |write| write.sectors),
            dirty: Vec::with_capacity(count),
            dirty_sectors: 0,
            uses: 0,
        }
    }

    /// The segment that holds all of the range.
    pub fn hit(&self, range: &Range<u64>) -> Option<usize> {
        let inside = |index: &usize| {
            let held = &self.ranges[*index];
            held.start <= range.start && range.end <= held.end
        };
        self.read_pool
            .clone()
            .find(inside)
            .or_else(|| self.dirty_before(range.start).filter(inside))
    }

    /// A segment of the read pool at whose end, or inside which, the range begins.
    pub fn prefix(&self, range: &Range<u64>) -> Option<usize> {
        self.read_pool.clone().find(|&index| {
            let held = &self.ranges[index];
            let inside = held.start <= range.start && range.start <= held.end;
            inside && held.start < held.end && self.can_continue(index)
        })
    }

    /// Whether more can be read into the segment behind what it holds.
    pub fn can_continue(&self, index: usize) -> bool {
        let segment = &self.segments[index];
        self.read_pool.contains(&index) && segment.dirty.is_empty() && !segment.busy
    }

    /// A read has been given what lies before `end`; a buffer that does not keep what it gave
    /// away, or what was passed over, frees it.
    pub fn deliver(&mut self, index: usize, end: u64) {
        self.touch(index);
        let held = &mut self.ranges[index];
        if !self.keeps_delivered && !self.segments[index].written {
            held.start = end.clamp(held.start, held.end);
        }
    }

    /// Notes that the segment was of use just now.
    pub fn touch(&mut self, index: usize) {
        self.uses += 1;
        self.segments[index].used = self.uses;
    }

    /// An empty segment for what will be read from `start` on; `None` when all are in use.
    pub fn claim_for_reading(&mut self, start: u64) -> Option<usize> {
        let index = self.least_used()?;
        self.ranges[index] = start..start;
        self.segments[index].written = false;
        self.touch(index);
        Some(index)
    }

    /// What the segment holds.
    pub fn range(&self, index: usize) -> &Range<u64> {
        &self.ranges[index]
    }

    /// The segment now holds data up to `end`; what no longer fits is dropped at the front.
    pub fn grow(&mut self, index: usize, end: u64) {
        let range = &mut self.ranges[index];
        range.end = range.end.max(end);
        range.start = range.start.max(range.end.saturating_sub(self.segment_sectors));
    }

    /// Marks the segment as in use by the arm, or no longer.
    pub fn set_busy(&mut self, index: usize, busy: bool) {
        self.segments[index].busy = busy;
    }

    /// Takes as much of a write as fits into one segment; `None` when nothing fits now.
    pub fn absorb(&mut self, range: Range<u64>, ready: Instant) -> Option<Absorbed> {
        let room = self.max_dirty_sectors - self.dirty_sectors;
        let (index, dirty) = match self.joinable(&range, room) {
            Some(index) => {
                let old = &self.segments[index].dirty;
                let joined = if old.is_empty() {
                    range.clone()
                } else {
                    old.start.min(range.start)..old.end.max(range.end)
                };
                (index, joined)
            }
            None => {
                // No crumbs: what does not fit as a whole waits until it does.
                let sectors = (range.end - range.start).min(self.segment_sectors);
                if sectors > room || self.dirty.len() >= self.max_dirty_segments {
                    return None;
                }
                let index = match &mut self.empty {
                    Some(empty) => empty.pop()?,
                    None => self.least_used()?,
                };
                self.ranges[index] = range.start..range.start;
                (index, range.start..range.start + sectors)
            }
        };
        let sectors = dirty.end.min(range.end) - range.start;
        let held = &mut self.ranges[index];
        *held = held.start.min(dirty.start)..held.end.max(dirty.end);
        held.start = held.start.max(held.end.saturating_sub(self.segment_sectors));
        let segment = &mut self.segments[index];
        segment.ready = ready;
        segment.written = true;
        let moved = segment.dirty.is_empty() || segment.dirty.start != dirty.start;
        let before = segment.dirty.clone();
        self.dirty_sectors += dirty.end - dirty.start - (before.end - before.start);
        segment.dirty = dirty.clone();
        if before.is_empty() {
            segment.dirtied = self.uses;
            self.list(dirty.start, index);
        } else if before.start != dirty.start {
            self.unlist(before.start, index);
            self.list(dirty.start, index);
        }
        self.touch(index);
        self.supersede(index, &(range.start..range.start + sectors));
        Some(Absorbed { segment: index, sectors, moved })
    }

    /// Whether an equal write would find a segment that holds its neighbours or older contents.
    pub fn write_joins(&self, range: &Range<u64>) -> bool {
        self.joinable(range, self.max_dirty_sectors - self.dirty_sectors).is_some()
    }

    /// Says where the first dirty sector of a segment lies.
    pub fn set_place(&mut self, index: usize, place: Place) {
        self.segments[index].place = place;
    }

    /// First dirty sector and number of every segment with dirty data, in order of sector.
    pub fn dirty(&self) -> &[(u64, usize)] {
        &self.dirty
    }

    /// The place of the first dirty sector of a segment, unless it is just being written.
    pub fn idle_dirty_place(&self, index: usize) -> Option<&Place> {
        let segment = &self.segments[index];
        (!segment.busy).then_some(&segment.place)
    }

    /// How long ago a segment became dirty: smaller is older.
    pub fn dirtied(&self, index: usize) -> u64 {
        self.segments[index].dirtied
    }

    /// The dirty part of a segment, its place, and when its data has arrived.
    pub fn dirty_part(&self, index: usize) -> (Range<u64>, Place, Instant) {
        let segment = &self.segments[index];
        (segment.dirty.clone(), segment.place, segment.ready)
    }

    /// The first `sectors` of the dirty part are on their way to the platters. They still take
    /// up room until [`Cache::written`].
    pub fn begin_writing(&mut self, index: usize, sectors: u64) {
        let segment = &mut self.segments[index];
        let first = segment.dirty.start;
        segment.busy = true;
        segment.dirty.start += sectors;
        let rest = segment.dirty.clone();
        self.unlist(first, index);
        if !rest.is_empty() {
            self.list(rest.start, index);
        }
    }

    /// `sectors` of a segment have reached the platters.
    pub fn written(&mut self, index: usize, sectors: u64) {
        self.segments[index].busy = false;
        self.dirty_sectors -= sectors;
        self.release(index);
    }

    /// Sectors not yet on the platters.
    pub fn dirty_sectors(&self) -> u64 {
        self.dirty_sectors
    }

    /// How full of dirty data the buffer is, in thousandths: by sectors or by segments,
    /// whichever is fuller.
    pub fn fullness(&self) -> u64 {
        let sectors = self.dirty_sectors * 1000 / self.max_dirty_sectors.max(1);
        sectors.max(self.dirty.len() as u64 * 1000 / self.max_dirty_segments.max(1) as u64)
    }

    /// A segment in which the range continues or overwrites data without leaving a gap between
    /// dirty parts, and in which it fits.
    fn joinable(&self, range: &Range<u64>, room: u64) -> Option<usize> {
        let joins = |index: &usize| {
            let (held, segment) = (&self.ranges[*index], &self.segments[*index]);
            let apart = range.start < held.start || range.start > held.end;
            if !segment.written || held.start == held.end || apart {
                return false;
            }
            let (dirty, clean) = (&segment.dirty, segment.dirty.is_empty());
            let touches = clean || (range.start <= dirty.end && dirty.start <= range.end);
            let start = if clean { range.start } else { dirty.start.min(range.start) };
            let end = if clean { range.end } else { dirty.end.max(range.end) };
            let grows = end - start - (dirty.end - dirty.start);
            touches
                && !(segment.busy && clean)
                && end - start <= self.segment_sectors
                && grows <= room
                && !(clean && self.dirty.len() >= self.max_dirty_segments)
        };
        match self.empty {
            None => self.read_pool.clone().find(joins),
            Some(_) => self.dirty_before(range.start).filter(joins),
        }
    }

    /// The segment with the last dirty part that begins at the sector or before it.
    fn dirty_before(&self, sector: u64) -> Option<usize> {
        let after = self.dirty.partition_point(|(start, _)| *start <= sector);
        Some(self.dirty[after.checked_sub(1)?].1)
    }

    fn list(&mut self, start: u64, index: usize) {
        let at = self.dirty.partition_point(|entry| *entry < (start, index));
        self.dirty.insert(at, (start, index));
    }

    fn unlist(&mut self, start: u64, index: usize) {
        let at = self.dirty.partition_point(|entry| *entry < (start, index));
        assert_eq!(self.dirty.get(at), Some(&(start, index)), "dirty segments are listed");
        self.dirty.remove(at);
    }

    /// What was read is out of date up to the end of a write into it, and so is dirty data that
    /// was overwritten in another segment.
    fn supersede(&mut self, by: usize, range: &Range<u64>) {
        for index in self.read_pool.clone() {
            let (held, segment) = (&mut self.ranges[index], &self.segments[index]);
            let overlaps = held.start < range.end && range.start < held.end;
            if overlaps && index != by && !segment.written && !segment.busy {
                held.start = range.end.min(held.end);
            }
        }
        let mut at = self.dirty.partition_point(|(start, _)| *start < range.start);
        while let Some(&(start, index)) = self.dirty.get(at).filter(|(start, _)| *start < range.end)
        {
            let segment = &mut self.segments[index];
            if index == by || segment.dirty.end > range.end || segment.busy {
                at += 1;
                continue;
            }
            self.dirty_sectors -= segment.dirty.end - start;
            segment.dirty = 0..0;
            self.dirty.remove(at);
            self.release(index);
        }
    }

    /// The segment of the common pool, or of the reads' own, that can be replaced.
    fn least_used(&self) -> Option<usize> {
        let segments = self.read_pool.clone().map(|index| (index, &self.segments[index]));
        let free = segments.filter(|(_, segment)| !segment.busy && segment.dirty.is_empty());
        free.min_by_key(|(_, segment)| segment.used).map(|(index, _)| index)
    }

    /// Gives a segment of the writes' own pool back when nothing in it is dirty.
    fn release(&mut self, index: usize) {
        let segment = &self.segments[index];
        if let Some(empty) = &mut self.empty
            && index >= self.read_pool.end
            && segment.dirty.is_empty()
            && !segment.busy
        {
            self.ranges[index] = 0..0;
            empty.push(index);
        }
    }
}
