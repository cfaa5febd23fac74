//! Single operations and where their time goes, so that the same ones can be set side by side under
//! two schedulers.
//!
//! An operation is named by its task (the n-th that its section has), its kind of call, and its
//! number among the calls of both. So it has one name under every scheduler. Each instant of it
//! counts for one [`Place`], the first that applies; the places add up to the whole. What has not
//! ended when the run does is only counted.
//!
//! Memory and work are bounded: of many operations a sample is watched, those whose scrambled names
//! are lowest. The name alone decides, so samples of two runs have the same operations.

use super::calls::{Actor, CallKind};
use base::{Duration, Instant, Rng};
use block::{Action, Event, Syscall};

/// Where an operation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A request of its is in the device.
    Device,
    /// Its task sleeps for a request: all are taken. So do calls that it has not submitted yet.
    Tag,
    /// Its task sleeps because writeback is throttled; calls that it has not submitted, too.
    Throttle,
    /// A bio of its, or of a task that makes no calls, waits for limits of its control group.
    Limits,
    /// A request of its is in the block layer.
    Scheduler,
    /// A task that makes no calls (journal, writeback, a worker) has a request in the device.
    OthersDevice,
    /// It has one in the block layer.
    OthersScheduler,
    /// No request is under way: cores, the page cache, locks.
    Nowhere,
}

impl Place {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them, each before those it goes before.
    pub const ALL: [Place; Place::COUNT] = [
        Place::Device,
        Place::Tag,
        Place::Throttle,
        Place::Limits,
        Place::Scheduler,
        Place::OthersDevice,
        Place::OthersScheduler,
        Place::Nowhere,
    ];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Place::Device => "device",
            Place::Tag => "tag",
            Place::Throttle => "throttle",
            Place::Limits => "limits",
            Place::Scheduler => "queue",
            Place::OthersDevice => "others_device",
            Place::OthersScheduler => "others_queue",
            Place::Nowhere => "no_layer",
        }
    }
}

/// An operation by name: under another scheduler the same name is the same operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Of its section's tasks the n-th.
    pub task: u32,
    /// What it is.
    pub kind: CallKind,
    /// Of this kind of the task the n-th.
    pub number: u64,
}

/// An operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub key: Key,
    /// What it waits at each [`Place`].
    pub parts: [Duration; Place::COUNT],
}

/// Operations of a job, or a sample of them, in the order of their names.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// Those that are kept.
    pub kept: Vec<Operation>,
    /// How many there were, by task and kind.
    pub counts: Vec<[u64; 4]>,
    /// The highest scrambled name that is kept.
    pub limit: u64,
}

impl Key {
    /// The same for the same name; else as good as random.
    pub fn scrambled(self) -> u64 {
        let place = u64::from(self.task) << 34 | (self.kind as u64) << 32;
        Rng::new(self.number ^ place.rotate_left(24)).next_u64()
    }
}

impl Operation {
    /// How long it takes.
    pub fn total(&self) -> Duration {
        self.parts.iter().fold(Duration::ZERO, |sum, part| sum + *part)
    }
}

impl Operations {
    /// Whether not every operation is kept.
    pub fn is_sample(&self) -> bool {
        self.limit < u64::MAX
    }

    /// The operation of a name, if it is kept.
    pub fn get(&self, key: Key) -> Option<&Operation> {
        let found = self.kept.binary_search_by_key(&key, |it| it.key);
        found.ok().map(|index| &self.kept[index])
    }

    fn keep(&mut self, operation: Operation, most: usize) {
        self.kept.push(operation);
        while self.kept.len() > most {
            self.limit /= 2;
            self.kept.retain(|it| it.key.scrambled() <= self.limit);
        }
    }
}

/// Where a task falls asleep, if the event says that one does.
pub(super) fn sleeps_at(event: &Event) -> Option<Place> {
    match event.action {
        Action::Sleep => Some(Place::Tag),
        Action::Throttled { .. } => Some(Place::Throttle),
        _ => None,
    }
}

/// From one moment to another.
type Span = (Instant, Instant);

/// Watches the tasks of one section.
pub(super) struct Watch {
    most: usize,
    operations: Operations,
    tasks: Vec<OfTask>,
    scratch: Vec<Span>,
    /// Lists of spans that nobody uses.
    spare: Vec<Vec<(Place, Span)>>,
}

/// A task that is watched.
#[derive(Default)]
struct OfTask {
    open: Table,
    /// The mark of the call that it is in and that is watched, if it is not asynchronous.
    inside: Option<u64>,
    /// Since when it sleeps for a request, or for leave to have one, and for which operation.
    asleep: Option<(Place, Instant, u64)>,
    /// When it slept for one.
    slept: Vec<Span>,
    /// When it slept for leave.
    throttled: Vec<Span>,
}

/// An operation that is watched and has not ended.
struct Open {
    token: u64,
    key: Key,
    spans: Vec<(Place, Span)>,
}

/// Operations by their marks. The low bits of marks say where: those of operations under way at the
/// same time differ there, so a table large enough has a place for each.
#[derive(Default)]
struct Table(Vec<Option<Open>>);

impl Table {
    /// So many places are enough for everybody.
    const MOST: usize = 1 << 16;

    fn index(&self, token: u64) -> Option<usize> {
        let index = token as usize & self.0.len().wrapping_sub(1);
        self.0.get(index)?.as_ref().filter(|it| it.token == token).map(|_| index)
    }

    fn get(&mut self, token: u64) -> Option<&mut Open> {
        let index = self.index(token)?;
        self.0[index].as_mut()
    }

    fn take(&mut self, token: u64) -> Option<Open> {
        let index = self.index(token)?;
        self.0[index].take()
    }

    fn put(&mut self, open: Open) {
        let index = open.token as usize & self.0.len().wrapping_sub(1);
        match self.0.get(index) {
            Some(None) => self.0[index] = Some(open),
            Some(Some(_)) if self.0.len() >= Table::MOST => {}
            _ => {
                let larger = (2 * self.0.len()).max(16);
                let all = std::mem::take(&mut self.0);
                self.0.resize_with(larger, || None);
                all.into_iter().flatten().chain([open]).for_each(|it| self.put(it));
            }
        }
    }
}

/// When tasks that make no calls had a request in the device, and in the block layer or there; and
/// when a bio of theirs waited for limits.
#[derive(Default)]
pub(super) struct Busy {
    device: Vec<Span>,
    queued: Vec<Span>,
    /// When a bio of theirs waited for limits of its control group.
    limited: Vec<Span>,
}

/// So many spans of others are looked back to at least; more of one operation are joined.
const MOST_SPANS: usize = 4096;

impl Busy {
    /// Something happened in the context of such a task.
    pub fn see(&mut self, event: &Event) {
        match event.action {
            Action::BioDone { queued, issued } => {
                push_joined(&mut self.device, (issued, event.at));
                push_joined(&mut self.queued, (queued, event.at));
            }
            Action::Released { since } => push_joined(&mut self.limited, (since, event.at)),
            _ => {}
        }
    }
}

/// Adds a span that ends last, joined with those that it meets.
fn push_joined(spans: &mut Vec<Span>, mut span: Span) {
    while let Some(last) = spans.pop_if(|last| last.1 >= span.0) {
        span.0 = span.0.min(last.0);
    }
    if spans.len() >= 2 * MOST_SPANS {
        spans.drain(..MOST_SPANS);
    }
    spans.push(span);
}

impl Watch {
    /// At most so many operations are kept.
    pub fn new(most: usize) -> Watch {
        let operations = Operations { limit: u64::MAX, ..Operations::default() };
        let (tasks, scratch, spare) = (Vec::new(), Vec::new(), Vec::new());
        Watch { most, operations, tasks, scratch, spare }
    }

    /// What was seen.
    pub fn finish(mut self) -> Operations {
        self.operations.kept.sort_by_key(|it| it.key);
        self.operations
    }

    /// Whether the section's n-th task has made no call, but may carry out those of others.
    pub fn is_helper(&self, task: u32) -> bool {
        self.operations.counts.get(task as usize).is_none_or(|it| *it == [0; 4])
    }

    /// Whether an event may be one of those that [`Watch::see_sleep`] notes.
    #[inline]
    pub fn is_about_sleep(event: &Event) -> bool {
        matches!(
            event.action,
            Action::Sleep
                | Action::Throttled { .. }
                | Action::GetRequest
                | Action::BackMerge
                | Action::FrontMerge
        )
    }

    /// The section's n-th task falls asleep for a request, or goes on; `asleep` counts who sleeps.
    pub fn see_sleep(&mut self, task: u32, event: &Event, asleep: &mut usize) {
        let of_task = self.of(task);
        let place = sleeps_at(event);
        let next = place.map(|place| (place, event.at, event.token));
        let before = std::mem::replace(&mut of_task.asleep, next);
        *asleep = *asleep + usize::from(next.is_some()) - usize::from(before.is_some());
        if let Some((place, since, token)) = before {
            let spans = match place {
                Place::Throttle => &mut of_task.throttled,
                _ => &mut of_task.slept,
            };
            push_joined(spans, (since, event.at));
            self.add(task, token, &[(place, (since, event.at))]);
        }
    }

    /// Something happened in the context of the section's n-th task; the section says whether what
    /// ends now is counted.
    pub fn see(&mut self, task: u32, event: &Event, of: &Actor, busy: &Busy) {
        match event.action {
            Action::SyscallEnter(call) => self.enter(task, event.token, call),
            Action::SyscallExit { entered, .. } => {
                let window = of.counts_at(event.at).then_some((entered, event.at));
                self.end(task, event.token, window, busy);
            }
            Action::SyscallUnfinished { .. } => self.end(task, event.token, None, busy),
            Action::BioDone { queued, issued } => {
                let waits = (Place::Scheduler, (queued, issued));
                self.add(task, event.token, &[waits, (Place::Device, (issued, event.at))]);
            }
            Action::Released { since } => {
                self.add(task, event.token, &[(Place::Limits, (since, event.at))]);
            }
            _ => {}
        }
    }

    fn of(&mut self, task: u32) -> &mut OfTask {
        let index = task as usize;
        if index >= self.tasks.len() {
            self.meet(index);
        }
        &mut self.tasks[index]
    }

    #[cold]
    fn meet(&mut self, index: usize) {
        self.tasks.resize_with(index + 1, OfTask::default);
        self.operations.counts.resize(index + 1, [0; 4]);
    }

    fn enter(&mut self, task: u32, token: u64, call: Syscall) {
        self.of(task);
        let kind = CallKind::of(call);
        let count = &mut self.operations.counts[task as usize][kind as usize];
        let key = Key { task, kind, number: *count };
        *count += 1;
        if self.operations.is_sample() && key.scrambled() > self.operations.limit {
            return;
        }
        let is_synchronous = !matches!(call, Syscall::AsyncRead | Syscall::AsyncWrite);
        let spans = self.spare.pop().unwrap_or_default();
        let of_task = &mut self.tasks[task as usize];
        of_task.inside = is_synchronous.then_some(token).or(of_task.inside);
        of_task.open.put(Open { token, key, spans });
    }

    /// A bio of a task was somewhere. It belongs to the operation whose mark it has; one of the
    /// page cache, to the call that the task is in.
    fn add(&mut self, task: u32, token: u64, spans: &[(Place, Span)]) {
        let of_task = self.of(task);
        let is_marked = of_task.open.index(token).is_some();
        let token = if is_marked { Some(token) } else { of_task.inside };
        let Some(open) = token.and_then(|it| of_task.open.get(it)) else { return };
        let own = &mut open.spans;
        own.extend(spans.iter().filter(|(_, (from, to))| from < to));
        if own.len() >= MOST_SPANS && own.len().is_power_of_two() {
            join_by_place(own);
        }
    }

    /// An operation ended; it is kept if it counts, which is when it has a window.
    fn end(&mut self, task: u32, token: u64, window: Option<Span>, busy: &Busy) {
        let of_task = self.of(task);
        let Some(open) = of_task.open.take(token) else { return };
        of_task.inside = of_task.inside.filter(|it| *it != token);
        self.keep(task, open, window, busy);
    }

    /// Of long runs few operations come to this.
    #[inline(never)]
    fn keep(&mut self, task: u32, mut open: Open, window: Option<Span>, busy: &Busy) {
        if let Some(window) = window {
            let parts = self.parts(window, task, &open.spans, busy);
            self.operations.keep(Operation { key: open.key, parts }, self.most);
        }
        open.spans.clear();
        self.spare.push(open.spans);
    }

    /// Where the time of a window goes: each instant to the first place that has it.
    fn parts(
        &mut self,
        window: Span,
        task: u32,
        own: &[(Place, Span)],
        busy: &Busy,
    ) -> [Duration; Place::COUNT] {
        let of_task = &self.tasks[task as usize];
        let (slept, throttled) = (of_task.slept.as_slice(), of_task.throttled.as_slice());
        let (device, queued) = (busy.device.as_slice(), busy.queued.as_slice());
        let is_over = |spans: &[Span]| spans.last().is_none_or(|it| it.1 <= window.0);
        let limited = busy.limited.as_slice();
        let is_alone = [slept, throttled, limited, device, queued].into_iter().all(is_over);
        if let Some(parts) = parts_of_one_bio(window, own).filter(|_| is_alone) {
            return parts;
        }
        let steps: Steps = [
            (Place::Device, &[]),
            (Place::Tag, &[]),
            (Place::Throttle, &[]),
            (Place::Limits, &[]),
            (Place::Scheduler, &[]),
            (Place::Tag, slept),
            (Place::Throttle, throttled),
            (Place::OthersDevice, device),
            (Place::OthersScheduler, queued),
            (Place::Limits, limited),
        ];
        parts_in_steps(window, own, steps, &mut self.scratch)
    }
}

/// Places, the first before the others, each with spans that are not of the operation alone.
type Steps<'s> = [(Place, &'s [Span]); 10];

/// Where the time of a window goes; `covered` is for its use.
fn parts_in_steps(
    window: Span,
    own: &[(Place, Span)],
    steps: Steps,
    covered: &mut Vec<Span>,
) -> [Duration; Place::COUNT] {
    let whole = window.1.saturating_since(window.0);
    let (mut parts, mut before) = ([Duration::ZERO; Place::COUNT], Duration::ZERO);
    covered.clear();
    for (place, shared) in steps {
        if before == whole {
            break;
        }
        let own = own.iter().filter(|(it, _)| *it == place).map(|(_, span)| *span);
        let shared = shared.iter().rev().take_while(|it| it.1 > window.0).copied();
        let clipped = own.chain(shared).map(|(a, b)| (a.max(window.0), b.min(window.1)));
        covered.extend(clipped.filter(|(from, to)| from < to));
        let until_now = join(covered);
        parts[place as usize] += until_now - before;
        before = until_now;
    }
    parts[Place::Nowhere as usize] = whole - before;
    parts
}

/// The parts of an operation that has one bio and waits for nobody else, as most do; the general
/// way has the same.
fn parts_of_one_bio(window: Span, own: &[(Place, Span)]) -> Option<[Duration; Place::COUNT]> {
    let [(Place::Scheduler, queue), (Place::Device, device)] = own else { return None };
    let clip = |at: Instant| at.clamp(window.0, window.1);
    let of = |span: &Span| clip(span.1).saturating_since(clip(span.0));
    let (waits, served) = (of(queue), of(device));
    let mut parts = [Duration::ZERO; Place::COUNT];
    parts[Place::Scheduler as usize] = waits;
    parts[Place::Device as usize] = served;
    parts[Place::Nowhere as usize] = of(&window) - waits - served;
    (queue.1 == device.0).then_some(parts)
}

/// Makes spans of the same place disjoint.
fn join_by_place(spans: &mut Vec<(Place, Span)>) {
    spans.sort_unstable();
    spans.dedup_by(|(place, next), (of, last)| {
        let meet = place == of && next.0 <= last.1;
        if meet {
            last.1 = last.1.max(next.1);
        }
        meet
    });
}

/// Makes spans disjoint; how long they are together.
fn join(spans: &mut Vec<Span>) -> Duration {
    spans.sort_unstable();
    spans.dedup_by(|next, last| {
        let meet = next.0 <= last.1;
        if meet {
            last.1 = last.1.max(next.1);
        }
        meet
    });
    spans.iter().fold(Duration::ZERO, |sum, span| sum + span.1.saturating_since(span.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// A section of which everything counts.
    fn counts() -> Actor {
        let mut actor = Actor::new(None, "", Duration::ZERO);
        actor.first = Some(Instant::ZERO);
        actor
    }

    fn event(micros: u64, token: u64, action: Action) -> Event {
        Event { at: at(micros), token, ..Event::note(action) }
    }

    fn exit(call: Syscall, entered: u64) -> Action {
        Action::SyscallExit { call, entered: at(entered), submitted: at(entered) }
    }

    fn done(queued: u64, issued: u64) -> Action {
        Action::BioDone { queued: at(queued), issued: at(issued) }
    }

    fn micros(operation: &Operation) -> [u64; Place::COUNT] {
        operation.parts.map(|it| it.as_nanos() / 1000)
    }

    fn watch(events: &[Event], busy: &Busy) -> Operations {
        let mut watch = Watch::new(100);
        let mut asleep = 0;
        for event in events {
            match Watch::is_about_sleep(event) {
                true => watch.see_sleep(0, event, &mut asleep),
                false => watch.see(0, event, &counts(), busy),
            }
        }
        watch.finish()
    }

    #[test]
    fn calls_behind_one_that_sleeps_for_a_request_wait_for_it_too() {
        let read = Syscall::AsyncRead;
        let events = [
            event(0, 1, Action::SyscallEnter(read)),
            event(0, 2, Action::SyscallEnter(read)),
            event(1, 1, Action::Sleep),
            event(6, 1, Action::GetRequest),
            event(8, 1, done(1, 7)),
            event(9, 2, done(6, 7)),
            event(10, 1, exit(read, 0)),
            event(10, 2, exit(read, 0)),
        ];
        let seen = watch(&events, &Busy::default());
        assert_eq!(micros(&seen.kept[0]), [1, 5, 0, 0, 1, 0, 0, 3]);
        assert_eq!(micros(&seen.kept[1]), [2, 5, 0, 0, 1, 0, 0, 2]);
    }

    #[test]
    fn many_spans_of_an_operation_are_joined() {
        let mut events = vec![event(0, 1, Action::SyscallEnter(Syscall::Write))];
        let bios = (1..10_000).map(|now| event(now + 1, 1, done(now, now)));
        events.extend(bios);
        events.push(event(10_000, 1, exit(Syscall::Write, 0)));
        let mut watch = Watch::new(100);
        let busy = Busy::default();
        events.iter().rev().skip(1).rev().for_each(|event| watch.see(0, event, &counts(), &busy));
        assert!(watch.tasks[0].open.get(1).unwrap().spans.len() <= 2 * MOST_SPANS);
        watch.see(0, events.last().unwrap(), &counts(), &busy);
        assert_eq!(micros(&watch.finish().kept[0]), [9999, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn waiting_for_limits_is_a_place_of_its_own() {
        let mut busy = Busy::default();
        busy.see(&event(90, 0, Action::Released { since: at(70) }));
        let events = [
            event(0, 7, Action::SyscallEnter(Syscall::Write)),
            event(50, 7, Action::Released { since: at(10) }),
            event(65, 7, done(50, 55)),
            event(100, 7, exit(Syscall::Write, 0)),
        ];
        let seen = watch(&events, &busy);
        // Its own bio for 40 us, and one of the flusher's for 20.
        assert_eq!(micros(&seen.kept[0]), [10, 0, 0, 60, 5, 0, 0, 25]);
    }

    #[test]
    fn each_instant_counts_once_and_the_parts_are_the_whole() {
        let mut busy = Busy::default();
        busy.see(&event(80, 0, done(50, 75)));
        busy.see(&event(95, 0, done(85, 90)));
        let events = [
            event(0, 7, Action::SyscallEnter(Syscall::Sync)),
            event(10, 7, Action::Sleep),
            event(20, 7, Action::GetRequest),
            event(60, 7, done(10, 30)),
            // Of the page cache; partly at the same time.
            event(70, 1 << 63, done(40, 55)),
            event(100, 7, exit(Syscall::Sync, 0)),
        ];
        let seen = watch(&events, &busy);
        assert_eq!(micros(&seen.kept[0]), [40, 10, 0, 0, 10, 10, 10, 20]);
        assert_eq!(seen.kept[0].total(), Duration::from_micros(100));
    }

    #[test]
    fn a_bio_counts_for_the_operation_whose_mark_it_has() {
        let read = Syscall::AsyncRead;
        let events = [
            event(0, 1, Action::SyscallEnter(read)),
            event(0, 2, Action::SyscallEnter(read)),
            event(8, 2, done(0, 3)),
            event(9, 1, done(1, 5)),
            event(10, 2, exit(read, 0)),
            event(10, 1, exit(read, 0)),
        ];
        let seen = watch(&events, &Busy::default());
        assert_eq!(micros(&seen.kept[0]), [4, 0, 0, 0, 4, 0, 0, 2]);
        assert_eq!(micros(&seen.kept[1]), [5, 0, 0, 0, 3, 0, 0, 2]);
        assert_eq!(seen.counts, [[2, 0, 0, 0]]);
    }

    #[test]
    fn samples_of_two_runs_have_the_same_operations() {
        let run = |count: u64| {
            let mut watch = Watch::new(64);
            for number in 0..count {
                let call = Syscall::Write;
                let now = number * 10;
                let enter = event(now, number, Action::SyscallEnter(call));
                watch.see(0, &enter, &counts(), &Busy::default());
                watch.see(0, &event(now + 5, number, exit(call, now)), &counts(), &Busy::default());
            }
            watch.finish()
        };
        let (short, long) = (run(1000), run(3000));
        assert!(long.kept.len() > 32 && long.kept.len() <= 64 && long.is_sample());
        assert_eq!(long.counts, [[0, 3000, 0, 0]]);
        let mut early = long.kept.iter().filter(|it| it.key.number < 1000).peekable();
        assert!(early.peek().is_some() && early.all(|it| short.get(it.key).is_some()));
    }

    #[test]
    fn what_has_not_ended_is_counted_and_not_kept() {
        let call = Syscall::Read;
        let unfinished = Action::SyscallUnfinished { call, entered: at(0), submitted: at(0) };
        let events = [event(0, 1, Action::SyscallEnter(call)), event(9, 1, unfinished)];
        let seen = watch(&events, &Busy::default());
        assert!(seen.kept.is_empty());
        assert_eq!(seen.counts[0][CallKind::Read as usize], 1);
    }
}
