//! The flush machinery's view of a request: which steps it needs and which are done
//! (rules flush).
//!
//! A write with PREFLUSH or FUA is taken apart into flush, data, flush, as far as the device needs
//! it. `queue/flush.rs` takes the steps.

use crate::bio::{Flags, Op};
use crate::command::Facts;
use base::Sectors;

/// The steps that are left of a request's way through the machinery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushSequence {
    /// Flush before the data.
    pub before: bool,
    /// The data itself.
    pub data: bool,
    /// Flush after the data.
    pub after: bool,
}

impl FlushSequence {
    /// What a bio with these flags needs on this device (rule flush-1).
    pub fn needed(flags: Flags, sectors: Sectors, facts: &Facts) -> FlushSequence {
        let cached = facts.volatile_cache;
        FlushSequence {
            before: cached && flags.intersects(Flags::PREFLUSH),
            data: !sectors.is_zero(),
            after: cached && flags.intersects(Flags::FUA) && !facts.fua,
        }
    }

    /// The next step, if any is left.
    pub fn next(&self) -> Option<FlushStep> {
        match self {
            FlushSequence { before: true, .. } => Some(FlushStep::Before),
            FlushSequence { data: true, .. } => Some(FlushStep::Data),
            FlushSequence { after: true, .. } => Some(FlushStep::After),
            _ => None,
        }
    }

    /// Marks the next step as done.
    pub fn advance(&mut self) {
        match self.next() {
            Some(FlushStep::Before) => self.before = false,
            Some(FlushStep::Data) => self.data = false,
            Some(FlushStep::After) => self.after = false,
            None => panic!("a finished flush sequence has no step to do"),
        }
    }
}

/// One step of a flush sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushStep {
    /// Flush the cache, then do the data.
    Before,
    /// The data.
    Data,
    /// Flush the cache so that the data is durable.
    After,
}

/// The flags a request keeps when the machinery has taken over what they ask for.
pub(crate) fn data_flags(op: Op, flags: Flags, facts: &Facts) -> Flags {
    debug_assert!(op == Op::Write);
    let mut kept = flags.without(Flags::PREFLUSH).with(Flags::SYNC);
    if !(facts.volatile_cache && facts.fua) {
        kept = kept.without(Flags::FUA);
    }
    kept
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::command::Transport;
    use base::Bytes;

    pub(crate) fn facts(volatile_cache: bool, fua: bool) -> Facts {
        Facts {
            transport: Transport::Sata,
            capacity: Bytes(1 << 30),
            rotational: true,
            volatile_cache,
            fua,
            queue_depth: 32,
            hardware_queues: 1,
            logical_block: 512,
            max_hw_sectors: Sectors(65_535),
            max_segments: 128,
            discard: false,
            chunk_sectors: Sectors(0),
            segment: Facts::PAGE,
        }
    }

    #[test]
    fn the_policy_is_that_of_the_specification() {
        let both = Flags::PREFLUSH.with(Flags::FUA);
        let steps = |cache, fua| {
            let needed = FlushSequence::needed(both, Sectors(8), &facts(cache, fua));
            (needed.before, needed.data, needed.after)
        };
        assert_eq!(steps(true, false), (true, true, true));
        assert_eq!(steps(true, true), (true, true, false));
        assert_eq!(steps(false, false), (false, true, false));
        let pure = FlushSequence::needed(Flags::PREFLUSH, Sectors(0), &facts(true, false));
        assert_eq!(pure.next(), Some(FlushStep::Before));
        assert!(!pure.data && !pure.after);
    }
}
