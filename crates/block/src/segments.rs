//! Where the data of a bio lie in memory: the contiguous pieces that a device is told one by one.
//!
//! A device takes so many segments per command, so a bio of scattered pages is cut into more parts
//! than one whose pages lie one behind the other.

use crate::limits::Limits;
use alloc::vec::Vec;
use base::Sectors;

/// The lengths of the contiguous pieces of memory of a bio, in order. Where nothing is said of
/// them, each is as long as the facts of the device have it (`segment`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(Vec<Sectors>);

impl Segments {
    /// Pieces of these lengths, together as long as their bio.
    pub fn new(lengths: Vec<Sectors>) -> Segments {
        Segments(lengths)
    }

    /// Pieces of one length, and what is left.
    pub fn alike(sectors: Sectors, piece: Sectors) -> Segments {
        let whole = (0..sectors.0 / piece.0).map(|_| piece);
        let rest = Sectors(sectors.0 % piece.0);
        Segments(whole.chain((!rest.is_zero()).then_some(rest)).collect())
    }

    /// How many segments a bio of so many sectors has.
    pub(crate) fn segments(&self, sectors: Sectors, limits: &Limits) -> u16 {
        if self.0.is_empty() {
            return limits.segments(sectors);
        }
        let count = self.0.iter().map(|&piece| u32::from(limits.segments(piece))).sum::<u32>();
        count.min(u32::from(u16::MAX)) as u16
    }

    /// How much of a bio one command takes as far as segments are concerned; `None` if all of it.
    pub(crate) fn most(&self, limits: &Limits) -> Option<Sectors> {
        let mut left = u32::from(limits.max_segments);
        let mut sectors = Sectors(0);
        for &piece in &self.0 {
            let needed = u32::from(limits.segments(piece));
            if needed > left {
                return Some(sectors + Sectors(left * limits.facts.segment.0));
            }
            left -= needed;
            sectors += piece;
        }
        None
    }

    /// Takes off the pieces of the first so many sectors.
    pub(crate) fn cut(&mut self, sectors: Sectors) -> Segments {
        let mut first = Vec::new();
        let mut left = sectors;
        let mut whole = 0;
        for piece in &mut self.0 {
            let taken = left.min(*piece);
            if taken.is_zero() {
                break;
            }
            first.push(taken);
            left = left - taken;
            *piece = *piece - taken;
            whole += usize::from(piece.is_zero());
        }
        self.0.drain(..whole);
        Segments(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Facts;
    use crate::kernel::{Kernel, Shape, Version};

    fn limits(max_segments: u16, segment: u32) -> Limits {
        let plain = crate::flush::tests::facts(false, false);
        let facts = Facts { max_segments, segment: Sectors(segment), ..plain };
        Limits::new(facts, Kernel::of(Version::V6_12), Shape::Multi, false)
    }

    fn pieces(lengths: &[u32]) -> Segments {
        Segments::new(lengths.iter().map(|&it| Sectors(it)).collect())
    }

    #[test]
    fn a_command_takes_as_many_pieces_as_the_device_has_segments() {
        let limits = limits(3, 1 << 20);
        assert_eq!(pieces(&[8, 8, 8]).most(&limits), None);
        assert_eq!(pieces(&[8, 8, 48, 8]).most(&limits), Some(Sectors(64)));
        assert_eq!(pieces(&[8, 8, 48, 8]).segments(Sectors(72), &limits), 4);
        assert_eq!(Segments::default().segments(Sectors(72), &limits), 1);
    }

    #[test]
    fn pieces_may_be_alike_but_for_the_last() {
        assert_eq!(Segments::alike(Sectors(20), Sectors(8)), pieces(&[8, 8, 4]));
        assert_eq!(Segments::alike(Sectors(16), Sectors(8)), pieces(&[8, 8]));
    }

    #[test]
    fn a_long_piece_takes_several_segments() {
        let limits = limits(3, 16);
        assert_eq!(pieces(&[40, 8]).segments(Sectors(48), &limits), 4);
        assert_eq!(pieces(&[8, 40]).most(&limits), Some(Sectors(40)));
    }

    #[test]
    fn a_cut_leaves_the_rest_of_the_piece_it_goes_through() {
        let mut rest = pieces(&[8, 40, 8]);
        assert_eq!(rest.cut(Sectors(24)), pieces(&[8, 16]));
        assert_eq!(rest, pieces(&[24, 8]));
        assert_eq!(Segments::default().cut(Sectors(8)), Segments::default());
    }
}
