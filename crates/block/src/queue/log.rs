//! What a queue writes into its log of events, where one is kept.

use super::Core;
use crate::bio::{Bio, BioId, ContextId};
use crate::event::{Action, Event};
use crate::request::{Request, RequestId};
use base::Instant;

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
            self.write_request_event(at, context, action, rq);
        }
    }

    #[inline(never)]
    fn write_request_event(
        &mut self,
        at: Instant,
        context: ContextId,
        action: Action,
        rq: RequestId,
    ) {
        let cpu = self.seen.cpu_of(context);
        let &Request { op, flags, sector, sectors, .. } = &self.seen.requests[rq];
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
