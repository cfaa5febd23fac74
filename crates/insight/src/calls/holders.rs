//! Who holds requests: whoever has most of them when all are taken is who is waited for.

use super::queue::Owner;
use block::ContextId;

/// Requests of somebody that are waited for (reads and synchronous writes), or that are not.
#[derive(Clone, Copy, Debug)]
struct Holder {
    who: Owner,
    is_sync: bool,
    /// The task of theirs that got one last.
    task: ContextId,
    requests: u32,
}

/// Who holds how many requests.
#[derive(Debug, Default)]
pub struct Holders(Vec<Holder>);

impl Holders {
    /// A task of somebody has got a request.
    pub fn get(&mut self, who: Owner, task: ContextId, is_sync: bool) {
        match self.0.iter_mut().find(|it| it.who == who && it.is_sync == is_sync) {
            Some(it) => (it.task, it.requests) = (task, it.requests + 1),
            None => self.0.push(Holder { who, is_sync, task, requests: 1 }),
        }
    }

    /// Somebody's request is free again.
    pub fn put(&mut self, who: Owner, is_sync: bool) {
        let place = self.0.iter().position(|it| it.who == who && it.is_sync == is_sync);
        if let Some(place) = place {
            self.0[place].requests -= 1;
            if self.0[place].requests == 0 {
                self.0.remove(place);
            }
        }
    }

    /// Who has most while somebody waits for such a request. The single queue has a pool for what
    /// is waited for and one for the rest, blk-mq one for all: where such requests are half of all
    /// it is theirs that is empty.
    pub fn most(&self, is_sync: bool) -> Option<ContextId> {
        let own = || self.0.iter().filter(|it| it.is_sync == is_sync);
        let all: u32 = self.0.iter().map(|it| it.requests).sum();
        let most = match 2 * own().map(|it| it.requests).sum::<u32>() >= all {
            true => own().max_by_key(|it| it.requests),
            false => self.0.iter().max_by_key(|it| it.requests),
        };
        most.map(|it| it.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_most_of_the_pool_is_who_is_waited_for() {
        let (reader, writer) = (ContextId(1), ContextId(2));
        let mut holders = Holders::default();
        holders.get(Owner::Task(reader), reader, true);
        (0..2).for_each(|_| holders.get(Owner::Named(0), writer, false));
        assert_eq!(holders.most(true), Some(writer), "the only pool");
        (0..2).for_each(|_| holders.get(Owner::Task(reader), reader, true));
        assert_eq!([true, false].map(|it| holders.most(it)), [Some(reader); 2]);
        (0..3).for_each(|_| holders.put(Owner::Task(reader), true));
        assert_eq!(holders.most(false), Some(writer));
    }
}
