//! Whose flusher a page concerns: what is counted for which group, and what its limits say.

use super::{FILE_PAGES, PageCache};
use crate::pages::Counts;
use crate::writeback::{Counted, Tested, Writeback};
use base::{Hz, TimerWheel};
use block::{CgroupId, ContextId};
use std::ops::Range;

impl PageCache {
    /// What is known of a group's writing back; that of the root where groups have none.
    pub fn writeback_of(&mut self, group: CgroupId) -> &mut Writeback {
        self.groups.writeback(group).unwrap_or(&mut self.writeback)
    }

    /// In which ticks time is counted.
    pub fn hz(&self) -> Hz {
        self.fresh.wheel.hz()
    }

    /// The tick in which a flusher wakes that falls asleep in this one.
    pub fn next_look(&self, now: u64) -> u64 {
        self.writeback.next_look(now)
    }

    /// When timers fire that are set in ticks.
    pub fn wheel(&self) -> TimerWheel {
        self.fresh.wheel
    }

    /// Sets a setting of writing back by its name; false if there is none, or not with this value.
    pub fn set(&mut self, name: &str, value: i64) -> bool {
        let dirtyable = self.dirtyable();
        self.writeback.set(name, value, dirtyable)
    }

    /// Groups have writeback of their own from now on, or none has.
    pub fn set_group_writeback(&mut self, is_on: bool) {
        self.groups.set_on(is_on);
    }

    /// Whether groups have writeback of their own.
    pub fn has_group_writeback(&self) -> bool {
        self.groups.is_on()
    }

    /// All groups that have files, and the root.
    pub fn groups(&self) -> Vec<CgroupId> {
        self.groups.all()
    }

    /// How many pages a group has, and how many of them must be written.
    pub fn counts_of(&self, group: CgroupId) -> Counts {
        self.groups.counts(group, self.pages.counts())
    }

    /// Whose a page is.
    pub fn owner(&self, page: u64) -> CgroupId {
        self.groups.owner(page / FILE_PAGES)
    }

    /// A group is about to dirty a page.
    pub fn claim(&mut self, page: u64, group: CgroupId) {
        if !self.groups.is_on() {
            return;
        }
        let (file, fresh) = (page / FILE_PAGES, self.fresh_writeback());
        self.groups.claim(file, group, fresh);
        if !self.holds(page) {
            self.groups.note_came(file, page, group);
        }
    }

    /// A visit of a file, or a part of it that somebody wanted durable, has been submitted; the
    /// file goes over to another group if that is due.
    pub fn end_round(&mut self, file: u64) {
        if !self.groups.has_history(file) {
            return;
        }
        let owner = self.groups.owner(file);
        let bandwidth = self.writeback_of(owner).estimate.average;
        let all = file * FILE_PAGES..(file + 1) * FILE_PAGES;
        let dirty = self.dirty_runs(all.clone()).iter().map(|run| run.end - run.start).sum();
        let (mut under_way, mut from) = (0, all.start);
        while let Some(page) = self.next_written(from..all.end) {
            (under_way, from) = (under_way + 1, page + 1);
        }
        let fresh = self.fresh_writeback();
        self.groups.end_round(file, bandwidth, (all, dirty, under_way), fresh);
    }

    /// Whether a writer of a page must pause, and the flusher start.
    pub fn test_writer(&mut self, task: ContextId, page: u64, now: u64) -> Tested {
        let group = self.owner(page);
        let (counted, dirtyable) = (self.counted(group, now), self.dirtyable());
        let writeback = self.groups.writeback(group).unwrap_or(&mut self.writeback);
        Tested { group, ..writeback.test(task, now, dirtyable, counted) }
    }

    /// The same for a writer who has paused.
    pub fn test_again(&mut self, task: ContextId, group: CgroupId, now: u64) -> Tested {
        let (counted, dirtyable) = (self.counted(group, now), self.dirtyable());
        let writeback = self.groups.writeback(group).unwrap_or(&mut self.writeback);
        Tested { group, ..writeback.balance(task, now, dirtyable, counted) }
    }

    /// Whether so little of a group was written of late that it has no share in what may be dirty.
    pub fn is_unknown(&self, group: CgroupId, now: u64) -> bool {
        self.counted(group, now).share.0 == 0
    }

    /// Whether the flusher of a group goes on.
    pub fn is_too_much(&self, group: CgroupId, now: u64) -> bool {
        let counted = self.counted(group, now);
        let writeback = self.groups.writeback_of(group).unwrap_or(&self.writeback);
        writeback.is_too_much(self.dirtyable(), counted)
    }

    /// How much one visit of the flusher of a group writes at most.
    pub fn visit(&mut self, group: CgroupId, now: u64, left: u64) -> u64 {
        let writeback = self.groups.writeback(group).unwrap_or(&mut self.writeback);
        writeback.visit(now, left)
    }

    /// Makes a new estimate of the bandwidth a group has, if it is time.
    pub fn estimate(&mut self, group: CgroupId, now: u64) {
        let writeback = self.groups.writeback(group).unwrap_or(&mut self.writeback);
        writeback.estimate(now);
    }

    /// A task has dirtied a page; the answer is whether its group had nothing dirty before.
    pub(super) fn note_dirtied(&mut self, task: ContextId, page: u64, now: u64) -> bool {
        let group = self.owner(page);
        self.groups.changed(page / FILE_PAGES, 1, 0);
        self.writeback_of(group).note_dirtied(task, now)
    }

    /// Dirty pages of a file are going to be written.
    pub(super) fn note_writing(&mut self, pages: Range<u64>, now: u64) {
        let (file, group) = (pages.start / FILE_PAGES, self.owner(pages.start));
        if self.groups.counts(group, self.pages.counts()).writeback == 0 {
            self.writeback_of(group).begins(now);
        }
        let (hz, count) = (self.ticks_per_second(), (pages.end - pages.start) as i64);
        self.groups.note_started(now, hz);
        self.groups.note_writing(file, pages);
        self.groups.changed(file, -count, count);
    }

    /// Pages of one file have been written.
    pub(super) fn note_written(&mut self, pages: Range<u64>, now: u64) {
        let (group, count) = (self.owner(pages.start), pages.end - pages.start);
        self.groups.changed(pages.start / FILE_PAGES, 0, -(count as i64));
        pages.for_each(|_| self.groups.note_completed(group));
        let is_last = self.groups.counts(group, self.pages.counts()).writeback == 0;
        self.writeback_of(group).note_written(now, count, is_last);
    }

    fn counted(&self, group: CgroupId, now: u64) -> Counted {
        let all = self.pages.counts();
        let share = self.groups.share(group, now, self.ticks_per_second());
        Counted { all, own: self.groups.counts(group, all), share }
    }

    fn ticks_per_second(&self) -> u64 {
        u64::from(self.writeback.hz().get())
    }

    /// What a new group begins with.
    fn fresh_writeback(&self) -> impl FnOnce() -> Writeback + use<> {
        let (fresh, limits) = (self.fresh, self.writeback.limits());
        move || Writeback::with(&fresh.rules, fresh.wheel, limits)
    }
}
