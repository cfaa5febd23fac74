//! Metadata and the log on their way between memory and the disk.
//!
//! Each place is a bio of its own, and several go under one plug. Which places, with which flags
//! and when, is up to each file system.

use super::Task;
use crate::file::Transfer;
use crate::io::Operation;
use base::{Sector, Sectors};
use block::{Flags, Op, PlugFlush, Syscall};
use std::ops::Range;

impl Task {
    /// Reads or writes places of the disk, given in sectors, and waits for them.
    pub(crate) async fn move_metadata(&self, op: Op, places: &[Range<u64>], flags: Flags) {
        let number = self.begin_metadata(op, places, flags);
        self.submit_metadata(number, op, places, flags).await;
        self.wait_for_operation(number).await;
        self.world().io().end(self.id(), number);
    }

    /// Notes an operation on places that are about to be submitted; the answer is its number.
    pub(crate) fn begin_metadata(&self, op: Op, places: &[Range<u64>], flags: Flags) -> u64 {
        let mut world = self.world();
        let call = if op == Op::Read { Syscall::Read } else { Syscall::Write };
        let operation = Operation::new(world.clock().now(), call, transfer(op, &places[0], flags));
        world.io().begin(self.id(), operation)
    }

    /// Submits the bios of an operation. Does not wait for them.
    pub(crate) async fn submit_metadata(
        &self,
        number: u64,
        op: Op,
        places: &[Range<u64>],
        flags: Flags,
    ) {
        // Observed on 6.12: what one costs in looks at the clock.
        let plugs = op == Op::Read || places.len() > 1;
        if plugs {
            self.queue().start_plug(self.id());
        }
        for place in places {
            {
                let mut world = self.world();
                let bio = self.bio(&mut world, number, transfer(op, place, flags), false);
                world.io().get(self.id(), number).bios_left += 1;
                world.submit(bio);
            }
            self.drive().await;
        }
        self.world().all_submitted(self.id(), number);
        if plugs {
            self.finish_plug(PlugFlush::Explicit).await;
        }
    }
}

fn transfer(op: Op, place: &Range<u64>, flags: Flags) -> Transfer {
    let sectors = Sectors((place.end - place.start) as u32);
    Transfer { op, flags, sector: Sector(place.start), sectors }
}
