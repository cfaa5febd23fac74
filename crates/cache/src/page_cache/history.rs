//! Through whom pages left memory, and who made the dirty ones dirty: for those who ask why the
//! disk has to read them again, or to write them.
//!
//! Of pages that have left several times as many are remembered as memory has. (The kernel, which
//! counts refaults, remembers about as many as it has.)

use super::{FILE_PAGES, PageCache};
use block::{ContextId, PagesWhy};
use std::collections::BTreeMap;
use std::ops::Range;

/// So many times the pages of memory are remembered when they have left.
const REMEMBERED: u64 = 16;

/// Why a page is of interest, and who is to blame.
type Reason = (PagesWhy, ContextId);

/// What is remembered.
#[derive(Default)]
pub(super) struct History {
    /// Who acts.
    actor: ContextId,
    /// Pages that have left; the second map is the older half.
    gone: [BTreeMap<u64, Reason>; 2],
    /// So many make a half.
    half: usize,
    dirtied: BTreeMap<u64, ContextId>,
    /// What the one who acts has to do with, since it was last asked.
    met: BTreeMap<Reason, u32>,
}

impl History {
    /// A page leaves memory.
    pub fn leaves(&mut self, page: u64, why: PagesWhy) {
        if self.gone[0].len() >= self.half {
            self.gone[1] = std::mem::take(&mut self.gone[0]);
        }
        self.gone[0].insert(page, (why, self.actor));
        self.dirtied.remove(&page);
    }

    /// A page comes in and has to be read.
    pub fn comes(&mut self, page: u64) {
        let [new, old] = &mut self.gone;
        let reason = new.remove(&page).or_else(|| old.remove(&page));
        *self.met.entry(reason.unwrap_or((PagesWhy::Cold, self.actor))).or_default() += 1;
    }

    /// A page that was clean is dirty now.
    pub fn dirties(&mut self, page: u64, task: ContextId) {
        self.gone.iter_mut().for_each(|it| _ = it.remove(&page));
        self.dirtied.insert(page, task);
    }

    /// Pages are written.
    pub fn writes(&mut self, pages: Range<u64>) {
        for page in pages {
            let by = self.dirtied.remove(&page).filter(|by| *by != self.actor);
            if let Some(by) = by {
                *self.met.entry((PagesWhy::Dirtied, by)).or_default() += 1;
            }
        }
    }
}

impl PageCache {
    /// From now on it is remembered what becomes of pages, and through whom.
    pub fn keep_history(&mut self) {
        let half = (self.dirtyable() * REMEMBERED / 2).max(1) as usize;
        self.history = Some(Box::new(History { half, ..History::default() }));
    }

    /// What happens next is done by this task.
    pub fn acts(&mut self, task: ContextId) -> &mut PageCache {
        if let Some(history) = self.history.as_mut().filter(|it| it.actor != task) {
            history.actor = task;
            history.met.clear();
        }
        self
    }

    /// Pages that were read, and those of others that were written, since this was last asked: why,
    /// because of whom and how many. Nothing, unless a history is kept.
    pub fn take_met(&mut self) -> BTreeMap<(PagesWhy, ContextId), u32> {
        self.history.as_mut().map(|it| std::mem::take(&mut it.met)).unwrap_or_default()
    }

    pub(super) fn note_coming(&mut self, pages: Range<u64>) {
        if let Some(history) = &mut self.history {
            pages.for_each(|page| history.comes(page));
        }
    }

    pub(super) fn note_writing_of(&mut self, pages: Range<u64>) {
        // Blocks of metadata are many tasks' at once.
        if let Some(history) = self.history.as_mut().filter(|_| pages.start >= FILE_PAGES) {
            history.writes(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: ContextId = ContextId(1);
    const BACKUP: ContextId = ContextId(2);

    fn history(half: usize) -> History {
        History { half, ..History::default() }
    }

    fn met(history: &mut History) -> Vec<(Reason, u32)> {
        std::mem::take(&mut history.met).into_iter().collect()
    }

    #[test]
    fn who_reads_a_page_again_learns_who_had_it_leave() {
        let mut history = history(10);
        history.actor = BACKUP;
        history.leaves(7, PagesWhy::Evicted);
        history.leaves(8, PagesWhy::Dropped);
        history.actor = DB;
        (7..10).for_each(|page| history.comes(page));
        let expected = [
            ((PagesWhy::Cold, DB), 1),
            ((PagesWhy::Evicted, BACKUP), 1),
            ((PagesWhy::Dropped, BACKUP), 1),
        ];
        assert_eq!(met(&mut history), expected);
        history.comes(7);
        assert_eq!(met(&mut history), [((PagesWhy::Cold, DB), 1)]);
    }

    #[test]
    fn what_left_long_ago_is_forgotten() {
        let mut history = history(2);
        (0..5).for_each(|page| history.leaves(page, PagesWhy::Evicted));
        history.comes(0);
        history.comes(3);
        let nobody = history.actor;
        let expected = [((PagesWhy::Cold, nobody), 1), ((PagesWhy::Evicted, nobody), 1)];
        assert_eq!(met(&mut history), expected);
    }

    #[test]
    fn who_writes_pages_learns_who_else_has_made_them_dirty() {
        let mut history = history(10);
        history.dirties(3, BACKUP);
        history.dirties(4, DB);
        history.actor = DB;
        history.writes(3..6);
        assert_eq!(met(&mut history), [((PagesWhy::Dirtied, BACKUP), 1)]);
        history.writes(3..6);
        assert!(met(&mut history).is_empty());
    }
}
