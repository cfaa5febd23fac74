//! The guard: counts and states that prove the scheduler keeps its contract. Always on.

use crate::request::{Request, RequestState};

/// Conservation counts of the scheduler that is attached.
#[derive(Default)]
pub(super) struct Guard {
    /// Requests given to the scheduler, or tried to be.
    inserted: u64,
    /// Of these, absorbed by others.
    merged: u64,
    /// Requests the scheduler let go.
    issued: u64,
    /// Requests given back by the driver.
    requeued: u64,
}

impl Guard {
    /// A request goes to the scheduler.
    #[track_caller]
    pub fn insert(&mut self, rq: &mut Request) {
        assert_eq!(rq.state, RequestState::Allocated, "inserted twice: {rq:?}");
        rq.state = RequestState::Inserted;
        self.inserted += 1;
    }

    /// The scheduler lets a request go.
    #[track_caller]
    pub fn issue(&mut self, rq: &mut Request) {
        assert_eq!(
            rq.state,
            RequestState::Inserted,
            "issued but not held by the scheduler: {rq:?}"
        );
        rq.state = RequestState::Dispatched;
        self.issued += 1;
    }

    /// A request held by the scheduler was absorbed by another one.
    #[track_caller]
    pub fn merge(&mut self, rq: &Request) {
        assert_eq!(rq.state, RequestState::Inserted, "absorbed but not held by the scheduler");
        self.merged += 1;
    }

    /// The driver gave a request back and the scheduler will see it again.
    pub fn requeue(&mut self, rq: &mut Request) {
        assert_eq!(rq.state, RequestState::Issued, "given back but not with the driver: {rq:?}");
        rq.state = RequestState::Allocated;
        self.requeued += 1;
    }

    /// A request given back waits in the dispatch list, out of the scheduler's hands.
    pub fn requeue_bypassing(&mut self, rq: &mut Request) {
        assert_eq!(rq.state, RequestState::Issued, "given back but not with the driver: {rq:?}");
        rq.state = RequestState::Dispatched;
    }

    /// Checks the scheduler's own count against ours.
    #[track_caller]
    pub fn check_held(&self, queued: u32) {
        assert_eq!(self.held(), u64::from(queued), "the scheduler's count of requests is wrong");
    }

    /// Requests that the scheduler has.
    pub fn held(&self) -> u64 {
        self.inserted - self.merged - self.issued
    }

    /// At teardown: everything inserted was merged away or issued.
    pub fn assert_balanced(&self) {
        assert_eq!(
            self.inserted,
            self.merged + self.issued,
            "inserted != merged + issued (requeued: {})",
            self.requeued
        );
    }
}
