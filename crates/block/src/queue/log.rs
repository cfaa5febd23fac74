//! What a queue writes into its log of events, where one is kept.

use super::Core;
use crate::bio::{Bio, BioId, ContextId};
use crate::event::{Action, Event};
use crate::request::{Request, RequestId};
use base::{Instant, Sectors};

impl Core {
    /// Writes an event about a request, if events are wanted.
    #[inline]
    pub(super) fn log_request(
        &mut self,
        at: Instant,
        context: ContextId,
        action: Action,
        rq: RequestId,
    ) {
        if self.seen.log.is_on() {
            let sectors = self.seen.requests[rq].sectors;
            self.write_request_event(at, context, action, rq, sectors);
        }
    }

    /// The last flush of a sequence is done; the end of its data was told before. So no length is
    /// told (observed on 6.12.117 in recordings of blktrace).
    pub(super) fn log_flushed(
        &mut self,
        at: Instant,
        context: ContextId,
        issued: Instant,
        rq: RequestId,
    ) {
        if self.seen.log.is_on() {
            self.write_request_event(at, context, Action::Complete { issued }, rq, Sectors(0));
        }
    }

    #[inline(never)]
    fn write_request_event(
        &mut self,
        at: Instant,
        context: ContextId,
        action: Action,
        rq: RequestId,
        sectors: Sectors,
    ) {
        let cpu = self.seen.cpu_of(context);
        let &Request { op, flags, sector, .. } = &self.seen.requests[rq];
        let request = Some(rq);
        let note = Event::note(action);
        self.seen.log.push(|| Event {
            at,
            context,
            cpu,
            op,
            flags,
            sector,
            sectors,
            request,
            ..note
        });
    }

    /// Writes an event about a bio, and perhaps the request it went into, if events are wanted.
    #[inline]
    pub(super) fn log_bio(
        &mut self,
        at: Instant,
        action: Action,
        id: BioId,
        request: Option<RequestId>,
    ) {
        if self.seen.log.is_on() {
            self.write_bio_event(at, action, id, request);
        }
    }

    #[inline(never)]
    fn write_bio_event(
        &mut self,
        at: Instant,
        action: Action,
        id: BioId,
        request: Option<RequestId>,
    ) {
        let &Bio { op, flags, sector, sectors, origin, token, .. } = &self.bios[id].bio;
        let (context, cpu, bio) = (origin.context, origin.cpu, Some(id));
        self.seen.log.push(|| Event {
            at,
            action,
            context,
            cpu,
            op,
            flags,
            sector,
            sectors,
            bio,
            request,
            token,
        });
    }

    /// Writes an event that concerns no particular request.
    #[inline]
    pub(super) fn log_note(&mut self, at: Instant, context: ContextId, action: Action) {
        let cpu = self.seen.cpu_of(context);
        self.seen.log.push(|| Event { at, context, cpu, ..Event::note(action) });
    }
}
