//! What a call on the raw disk comes to: how much is done, in bios of which length, and how they
//! are plugged.

use super::Storage;
use crate::file::{Errno, File, MOST_BYTES, Transfer};
use base::{Sector, Sectors};
use block::{Flags, Op, Segments};

/// Largest bio of direct I/O: 256 pieces of memory (rule direct-io-1).
const BIO_MAX_VECS: u32 = 256;
/// A call of at most so many sectors is one bio to begin with: as many pages.
const BIO_SECTORS: u32 = BIO_MAX_VECS * 8;

impl Storage {
    /// What a read, write or discard of so many bytes comes to: how many are done, and the
    /// transfer. An error comes with the transfer that was meant.
    pub fn check(
        &self,
        op: Op,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<(u64, Transfer), (Errno, Transfer)> {
        let facts = &self.queue.limits().facts;
        let block = u64::from(facts.logical_block.max(512));
        let durable =
            op == Op::Write && facts.volatile_cache && (file.flags.dsync || file.flags.sync);
        let length = length.min(MOST_BYTES);
        let end = offset.saturating_add(length).min(facts.capacity.0);
        let bytes = end.saturating_sub(offset);
        // A power of two, so that nothing has to be divided for each call.
        let (shift, rest) = (block.trailing_zeros(), block - 1);
        let end_of_last = end.max(offset);
        let last = (end_of_last >> shift) + u64::from(end_of_last & rest != 0);
        let first = offset >> shift;
        let sectors = Sectors(((last - first) * (block / 512)).min(u64::from(u32::MAX)) as u32);
        let transfer = Transfer {
            op,
            flags: self.rules.flags(op, sectors.0 <= BIO_SECTORS, durable),
            sector: Sector(first * (block / 512)),
            sectors,
        };
        let aligned = (offset | length) & rest == 0;
        if length > 0 && bytes == 0 && op != Op::Read {
            return Err((Errno::Enospc, transfer));
        }
        let must_align = file.flags.direct || op == Op::Discard;
        if bytes > 0 && must_align && !aligned {
            return Err((Errno::Einval, transfer));
        }
        Ok((bytes, transfer))
    }

    /// What an asynchronous read, write or discard comes to.
    pub fn check_async(
        &self,
        op: Op,
        file: &File,
        offset: u64,
        length: u64,
    ) -> Result<(u64, Transfer), (Errno, Transfer)> {
        let (bytes, mut transfer) = self.check(op, file, offset, length)?;
        let durable = transfer.flags.intersects(Flags::FUA);
        transfer.flags = self.rules.flags(op, false, durable);
        Ok((bytes, transfer))
    }

    /// Whether a call is plugged.
    pub fn plugs(&self, transfer: &Transfer) -> bool {
        let first = self.bio_length(transfer.op, transfer.sector, transfer.sectors);
        let is_single = transfer.sectors <= first.min(Sectors(BIO_SECTORS));
        let plugs_single = self.rules.plugs_single || self.plugs_as_a_whole(transfer);
        !transfer.sectors.is_zero() && (plugs_single || !is_single)
    }

    /// Whether its plug ends only when a call is over.
    pub fn plugs_as_a_whole(&self, transfer: &Transfer) -> bool {
        self.rules.plugs_writes && transfer.op == Op::Write && !transfer.sectors.is_zero()
    }

    /// The length of the next bio of a transfer.
    pub fn bio_length(&self, op: Op, sector: Sector, left: Sectors) -> Sectors {
        if op == Op::Discard {
            return left.min(self.queue.limits().max_discard);
        }
        let most = left.min(Sectors(BIO_MAX_VECS.saturating_mul(self.together.0)));
        if self.rules.within_limits && !most.is_zero() {
            return most.min(self.queue.limits().largest_at(sector));
        }
        most
    }

    /// Where the data of a bio lie that come from, or go to, a program's own memory.
    pub fn memory_of_program(&self, op: Op, sectors: Sectors) -> Segments {
        match op == Op::Discard || self.together == self.queue.limits().facts.segment {
            true => Segments::default(),
            false => Segments::alike(sectors, self.together),
        }
    }

    /// Whether such a bio is not split.
    pub fn is_one_command(&self, op: Op, sector: Sector, sectors: Sectors) -> bool {
        let limits = self.queue.limits();
        let segments = sectors.0.div_ceil(self.together.0);
        sectors <= limits.largest_at(sector)
            && (op == Op::Discard || segments <= u32::from(limits.max_segments))
    }
}
