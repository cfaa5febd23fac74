//! Records that a thread of its own reads and puts in order, while another one makes something of
//! them.

use super::merge::Merge;
use super::record::{Payload, Record};
use crate::error::Error;
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// So many records are handed over at once: enough that waking the other thread costs little.
const BATCH: usize = 1024;
/// As many batches wait at most, so that memory is bounded.
const WAITING: usize = 4;

/// Records in their order. Events and notes lie apart, so that memory of messages is used again.
#[derive(Default)]
struct Batch {
    records: [Vec<Record>; 2],
    /// Of which of the two each is.
    order: Vec<bool>,
}

impl Batch {
    /// Adds a record in place of the one that was there when this batch was `used` the last time.
    fn put(&mut self, used: &mut [usize; 2], record: &Record) {
        let is_note = record.action.is_note();
        self.order.push(is_note);
        let (records, used) =
            (&mut self.records[usize::from(is_note)], &mut used[usize::from(is_note)]);
        match records.get_mut(*used) {
            Some(place) => copy(record, place),
            None => records.push(record.clone()),
        }
        *used += 1;
    }

    fn show(&mut self, see: &mut impl FnMut(&Record)) {
        let [events, notes] = &self.records;
        let (mut events, mut notes) = (events.iter(), notes.iter());
        for is_note in self.order.drain(..) {
            let next = if is_note { notes.next() } else { events.next() };
            see(next.expect("it was put here"));
        }
    }
}

/// Makes a record of another one; where both are messages, in the same memory.
#[inline]
fn copy(from: &Record, to: &mut Record) {
    match (&from.payload, &mut to.payload) {
        (Payload::Message(text), Payload::Message(place)) => {
            place.clear();
            place.extend_from_slice(text);
        }
        // So it mostly is.
        (Payload::None, Payload::None) => {}
        (payload, place) => *place = payload.clone(),
    }
    let payload = std::mem::replace(&mut to.payload, Payload::None);
    *to = Record { payload, ..*from };
}

impl<R: Read + Send> Merge<R> {
    /// Shows all records that are left. Where there is a second core, they are read on it.
    pub fn show_all(&mut self, mut see: impl FnMut(&Record)) -> Result<(), Error> {
        if thread::available_parallelism().map_or(1, usize::from) == 1 {
            while self.show(BATCH, &mut see)? {}
            return Ok(());
        }
        let (full, batches) = sync_channel::<Batch>(WAITING);
        let (empty, used) = channel();
        thread::scope(|scope| {
            let reader = scope.spawn(move || self.hand_over(&full, &used));
            for mut batch in batches {
                batch.show(&mut see);
                // At the end the reader is gone, and needs none.
                let _ = empty.send(batch);
            }
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Hands over all records, until there are no more or nobody wants them.
    fn hand_over(&mut self, full: &SyncSender<Batch>, used: &Receiver<Batch>) -> Result<(), Error> {
        loop {
            let mut batch = used.try_recv().unwrap_or_default();
            let mut number = [0; 2];
            let more = self.show(BATCH, |record| batch.put(&mut number, record));
            if full.send(batch).is_err() || !more? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blktrace::{Action, Layout, Reader};
    use base::Instant;
    use std::io::Cursor;

    /// A file of so many records, each third a message, and of a record that is cut off.
    fn merge(records: u64) -> Merge<Cursor<Vec<u8>>> {
        let mut bytes = Vec::new();
        for number in 0..records {
            let time = Instant::from_nanos(number);
            let record = match number % 3 {
                0 => Record::message(time, &"x".repeat(number as usize % 50)),
                _ => Record::event(Action::Queue, time),
            };
            Layout::V7_LITTLE.encode(&record, &mut bytes);
        }
        bytes.truncate(bytes.len().saturating_sub(1));
        Merge::new(vec![Reader::new(Cursor::new(bytes), "x")])
    }

    #[test]
    fn what_is_read_ahead_is_what_the_iterator_returns() {
        for records in [0, 1, 2, BATCH as u64, 20 * BATCH as u64 + 7] {
            let alone: Vec<Record> = merge(records).map(Result::unwrap).collect();
            let (mut ahead, mut shown) = (merge(records), Vec::new());
            ahead.show_all(|record| shown.push(record.clone())).unwrap();
            assert_eq!(shown, alone);
            assert_eq!(ahead.torn().count() as u64, records.min(1));
        }
    }
}
