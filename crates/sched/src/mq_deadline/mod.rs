//! mq-deadline: deadline for blk-mq, once for each class of priority.
//!
//! Within a class it is `deadline/`: batches in sector order, reads preferred, the oldest request
//! looked at between batches. A class is served only while no better class has anything queued or
//! with the device, except that a request older than `prio_aging_expire` goes first.
//!
//! Its rules are named where they are followed (rules mq-deadline); up to 5.13 it has no classes.
//! Zoned devices are left out.

mod rules;

use crate::async_depth::AsyncDepth;
use crate::settings::{Settings, from_millis, to_millis};
use crate::sorted_fifo::SortedFifo;
use crate::starvation::Starvation;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use base::{Jiffies, Links, List, Sector, Side};
use block::kernel::ShallowDepth;
use block::scheduler::{Dispatched, HctxId, InsertAt, Merge, Placement};
use block::tags::bits_per_word;
use block::{
    About, Bio, Cx, Direction, DispatchReason, HoldReason, Ioprio, IoprioClass, Kernel, Op,
    Request, RequestId, Scheduler,
};
use rules::{Announced, DepthChange, Heads, Rules, Sweep};

pub use rules::{CHANGES, about_on};

/// Classes in order of service: real time, best effort, idle.
const CLASSES: usize = 3;
const BEST_EFFORT: usize = 1;

/// The mq-deadline elevator.
#[derive(Clone)]
pub struct MqDeadline {
    rules: Rules,
    about: &'static About,
    settings: Settings,
    prio_aging_expire: Jiffies,
    async_depth: AsyncDepth,
    classes: [Class; CLASSES],
    /// Requests inserted at the head, of all classes ([`Heads::Common`]).
    heads: List<Request>,
    head_links: Links<Request>,
    /// Every request it was given and that is not freed.
    members: Side<Request, Member>,
    /// Direction of the current batch. All classes share it, the batch and the starvation count.
    last_direction: Direction,
    /// Requests dispatched in the current batch.
    batching: i64,
    /// Requests in directions and lists.
    waiting: u32,
    starvation: Starvation,
}

/// What a class of priority has for itself.
#[derive(Clone, Default)]
struct Class {
    /// By direction.
    directions: [SortedFifo; 2],
    /// Requests inserted at the head ([`Heads::OfClass`]).
    heads: List<Request>,
    /// By direction: the request the sweep goes on with (not of [`Sweep::Position`]).
    next: [Option<RequestId>; 2],
    /// By direction: start of the last dispatched request ([`Sweep::Position`]).
    last: [Sector; 2],
    /// Requests inserted and not freed, those with the device included (rule mq-deadline-6).
    unfinished: u32,
}

#[derive(Clone, Copy)]
struct Member {
    class: usize,
    /// When it was inserted, if at the head.
    since: Jiffies,
}

/// A request to dispatch, and why.
#[derive(Clone, Copy)]
struct Choice {
    rq: RequestId,
    direction: Direction,
    reason: DispatchReason,
}

impl MqDeadline {
    /// The elevator of `kernel` with default settings; it learns the queue's depth when attached.
    pub fn new(kernel: &Kernel) -> MqDeadline {
        MqDeadline {
            rules: Rules::of(kernel),
            about: about_on(kernel),
            settings: Settings::new(kernel.hz),
            prio_aging_expire: kernel.hz.jiffies_from_millis(10_000),
            async_depth: AsyncDepth::of(1, 1),
            classes: Default::default(),
            heads: List::new(),
            head_links: Links::new(),
            members: Side::new(),
            last_direction: Direction::Write,
            batching: 0,
            waiting: 0,
            starvation: Starvation::default(),
        }
    }

    /// Class NONE counts as best effort, and so does everything in kernels without classes.
    fn class_of(&self, ioprio: Ioprio) -> usize {
        match ioprio.class {
            _ if !self.rules.has_classes => BEST_EFFORT,
            IoprioClass::RealTime => 0,
            IoprioClass::None | IoprioClass::BestEffort => BEST_EFFORT,
            IoprioClass::Idle => 2,
        }
    }

    fn choose(&mut self, cx: &Cx<'_>) -> Option<Choice> {
        // Rule mq-deadline-1.
        if let Some(rq) = self.heads.head() {
            return Some(self.take_head(cx, rq));
        }
        self.choose_aged(cx).or_else(|| self.choose_by_class(cx))
    }

    /// Rule mq-deadline-5: first what has waited too long in a lower class.
    fn choose_aged(&mut self, cx: &Cx<'_>) -> Option<Choice> {
        let occupied = self.classes.iter().filter(|class| class.unfinished > 0).count();
        if !self.rules.ages || occupied < 2 {
            return None;
        }
        let now = cx.now.jiffies(cx.kernel().hz);
        // Before the machine is as old as the ageing time nothing can be that old; the passes
        // over the classes still have their effects (rule mq-deadline-7).
        let latest = now.0 as i64 - self.prio_aging_expire.0 as i64;
        let aged =
            (BEST_EFFORT..CLASSES).find_map(|class| self.choose_from(cx, class, Some(latest)))?;
        Some(Choice { reason: DispatchReason::Aged, ..aged })
    }

    /// Rule mq-deadline-6: no class is served while a better one has anything unfinished.
    fn choose_by_class(&mut self, cx: &Cx<'_>) -> Option<Choice> {
        // A class with nothing unfinished has nothing to choose from, and looking changes nothing.
        let class = self.classes.iter().position(|class| class.unfinished > 0)?;
        self.choose_from(cx, class, None)
    }

    /// Rules mq-deadline-7 and mq-deadline-8: takes one request of a class, if it had arrived by
    /// `latest`. What is decided on the way (direction, batch, starvation) stays decided if it had
    /// not.
    // Divergence: without `latest` ages are not looked at. The kernel compares with the present
    // there, which fails only after an expiry was shortened with requests queued.
    fn choose_from(&mut self, cx: &Cx<'_>, class: usize, latest: Option<i64>) -> Option<Choice> {
        if let Some(rq) = self.classes[class].heads.head() {
            let since = self.members[rq].since;
            let is_due = latest.is_none_or(|latest| since.0 as i64 <= latest);
            return is_due.then(|| self.take_head(cx, rq));
        }
        let choice = self.continue_batch(class).or_else(|| self.start_batch(cx, class))?;
        // Rule mq-deadline-7.
        if let Some(latest) = latest {
            let requests = &self.classes[class].directions[choice.direction as usize];
            if !self.arrived_by(latest, requests.deadline(choice.rq), choice.direction) {
                return None;
            }
        }
        self.take(cx, class, choice);
        Some(choice)
    }

    /// Whether a request with this deadline had arrived by `latest`, to today's expiry.
    fn arrived_by(&self, latest: i64, deadline: Jiffies, direction: Direction) -> bool {
        deadline.0 as i64 - self.settings.expire[direction as usize].0 as i64 <= latest
    }

    /// Rule mq-deadline-8.
    fn take(&mut self, cx: &Cx<'_>, class: usize, choice: Choice) {
        self.batching += 1;
        self.waiting -= 1;
        let class = &mut self.classes[class];
        match self.rules.sweep {
            Sweep::Request => class.go_on_behind(choice.direction, choice.rq),
            Sweep::RequestOfEach => class.go_on_in(choice.direction, choice.rq),
            Sweep::Position => class.pass(choice.direction, cx.request(choice.rq).sector),
        }
        class.directions[choice.direction as usize].remove(choice.rq);
    }

    /// Rule mq-deadline-8.
    fn continue_batch(&self, class: usize) -> Option<Choice> {
        if self.batching >= self.settings.fifo_batch {
            return None;
        }
        let class = &self.classes[class];
        let (rq, direction) = match self.rules.sweep {
            Sweep::Request => [Direction::Write, Direction::Read]
                .into_iter()
                .find_map(|direction| Some((class.next[direction as usize]?, direction)))?,
            Sweep::RequestOfEach => {
                (class.next[self.last_direction as usize]?, self.last_direction)
            }
            Sweep::Position => (class.above(self.last_direction)?, self.last_direction),
        };
        Some(Choice { rq, direction, reason: DispatchReason::BatchContinues })
    }

    /// Rules deadline-6 and deadline-7.
    fn start_batch(&mut self, cx: &Cx<'_>, class: usize) -> Option<Choice> {
        let class = &self.classes[class];
        let [reads, writes] = &class.directions;
        let direction = self.starvation.choose(
            !reads.is_empty(),
            !writes.is_empty(),
            self.settings.writes_starved,
        )?;
        let requests = &class.directions[direction as usize];
        let oldest = requests.oldest().expect("a direction is chosen only if it has requests");
        let next = match self.rules.sweep {
            Sweep::Request | Sweep::RequestOfEach => class.next[direction as usize],
            Sweep::Position => class.above(direction),
        };
        let now = cx.now.jiffies(cx.kernel().hz);
        let (rq, reason) = match next {
            _ if now >= requests.deadline(oldest) => (oldest, DispatchReason::Expired),
            None => (oldest, DispatchReason::NoneAbove),
            Some(next) => (next, DispatchReason::BatchStarts),
        };
        self.last_direction = direction;
        self.batching = 0;
        Some(Choice { rq, direction, reason })
    }

    /// Takes a request that was inserted at the head; batch and starvation are not touched.
    fn take_head(&mut self, cx: &Cx<'_>, rq: RequestId) -> Choice {
        let class = self.members[rq].class;
        let heads = self.heads_of(class);
        heads.0.remove(heads.1, rq);
        self.waiting -= 1;
        let (direction, sector) = (cx.request(rq).direction(), cx.request(rq).sector);
        self.classes[class].pass(direction, sector);
        Choice { rq, direction, reason: DispatchReason::Requeued }
    }

    /// The list in which requests of a class wait that are inserted at the head, and its links.
    fn heads_of(&mut self, class: usize) -> (&mut List<Request>, &mut Links<Request>) {
        let list = match self.rules.heads {
            Heads::Common => &mut self.heads,
            Heads::OfClass => &mut self.classes[class].heads,
        };
        (list, &mut self.head_links)
    }
}

impl Class {
    /// The next request at or above the last dispatched one (rule mq-deadline-8).
    fn above(&self, direction: Direction) -> Option<RequestId> {
        self.directions[direction as usize].at_or_after(self.last[direction as usize])
    }

    /// The sweep has come to `sector`.
    fn pass(&mut self, direction: Direction, sector: Sector) {
        self.last[direction as usize] = sector;
    }

    /// The sweep goes on behind a request that is dispatched (rule deadline-5).
    fn go_on_behind(&mut self, direction: Direction, rq: RequestId) {
        self.next = [None; 2];
        self.next[direction as usize] = self.directions[direction as usize].after(rq);
    }

    /// The same, where each direction has its own (rule mq-deadline-12).
    fn go_on_in(&mut self, direction: Direction, rq: RequestId) {
        self.next[direction as usize] = self.directions[direction as usize].after(rq);
    }

    fn queued(&self) -> u32 {
        self.directions[0].len() + self.directions[1].len() + self.heads.len()
    }
}

impl Scheduler for MqDeadline {
    fn about(&self) -> &'static About {
        self.about
    }

    fn get(&self, cx: &Cx<'_>, tunable: &str) -> i64 {
        match tunable {
            "prio_aging_expire" => to_millis(cx.kernel().hz, self.prio_aging_expire),
            "async_depth" => self.async_depth.value(),
            _ => match self.settings.get(cx.kernel().hz, tunable) {
                Some(value) => value,
                None => panic!("mq-deadline has no tunable {tunable}"),
            },
        }
    }

    fn set(&mut self, cx: &mut Cx<'_>, tunable: &str, value: i64) {
        match tunable {
            "prio_aging_expire" => self.prio_aging_expire = from_millis(cx.kernel().hz, value),
            "async_depth" if self.rules.async_depth == Some(DepthChange::KeepsRatio) => {
                self.async_depth.set(value);
            }
            "async_depth" => {
                self.async_depth = AsyncDepth::of(value, cx.limits().nr_requests.into());
            }
            _ => {
                let known = self.settings.set(cx.kernel().hz, tunable, value);
                assert!(known, "mq-deadline has no tunable {tunable}");
            }
        }
    }

    /// Rule mq-deadline-10: synchronous reads, which all reads are, may use every tag.
    fn limit_depth(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        if self.rules.async_depth.is_none() || bio.op == Op::Read {
            return None;
        }
        let depth = u64::try_from(self.async_depth.value()).expect("the queue checks ranges");
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        let limit = match multi.shallow {
            ShallowDepth::WholeMap => depth,
            ShallowDepth::PerWord => {
                let requests = cx.limits().nr_requests;
                (depth * u64::from(bits_per_word(requests))).div_ceil(u64::from(requests))
            }
        };
        Some(u32::try_from(limit).unwrap_or(u32::MAX))
    }

    fn min_depth(&self, _cx: &Cx<'_>) -> Option<u32> {
        match self.rules.announces {
            Announced::Nothing => None,
            Announced::One => Some(1),
            Announced::AsyncDepth => u32::try_from(self.async_depth.value()).ok(),
        }
    }

    /// Rule mq-deadline-10.
    fn depth_changed(&mut self, cx: &mut Cx<'_>) {
        let requests = i64::from(cx.limits().nr_requests.max(1));
        match self.rules.async_depth {
            Some(DepthChange::KeepsRatio) => {
                self.async_depth.follow(requests);
            }
            Some(DepthChange::Reset) | None => {
                self.async_depth = AsyncDepth::of(requests, requests);
            }
        }
    }

    /// Rule mq-deadline-4: in the class of the bio.
    fn front_merge(&mut self, _cx: &mut Cx<'_>, bio: &Bio) -> Option<RequestId> {
        if !self.settings.front_merges {
            return None;
        }
        let class = &self.classes[self.class_of(bio.ioprio)];
        class.directions[bio.direction() as usize].starting_at(bio.end())
    }

    /// Rule deadline-3.
    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, merge: Merge) {
        if merge == Merge::Front {
            let request = cx.request(rq);
            let class = &mut self.classes[self.members[rq].class];
            class.directions[request.direction() as usize].reposition(rq, request.sector);
        }
    }

    /// Rule mq-deadline-4. A request that is absorbed on arrival was never counted.
    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, next: RequestId) {
        let Some(member) = self.members.get(next) else { return };
        let direction = cx.request(next).direction() as usize;
        let class = &mut self.classes[member.class];
        if class.next[direction] == Some(next) {
            class.next[direction] = class.directions[direction].after(next);
        }
        class.directions[direction].join(rq, next);
        self.waiting -= 1;
    }

    fn former(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let class = &self.classes[self.members[rq].class];
        class.directions[cx.request(rq).direction() as usize].before(rq)
    }

    fn latter(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let class = &self.classes[self.members[rq].class];
        class.directions[cx.request(rq).direction() as usize].after(rq)
    }

    /// Rule mq-deadline-4: a requeued request is not counted twice, and keeps its class.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        let request = cx.request(rq);
        let now = cx.now.jiffies(cx.kernel().hz);
        let class = match self.members.get(rq) {
            Some(member) => member.class,
            None => {
                let class = self.class_of(request.ioprio);
                self.classes[class].unfinished += 1;
                class
            }
        };
        self.members.set(rq, Member { class, since: now });
        self.waiting += 1;
        match at {
            InsertAt::Head => {
                let (list, links) = self.heads_of(class);
                list.push_front(links, rq);
            }
            InsertAt::Sorted => {
                let direction = request.direction() as usize;
                let deadline = now + self.settings.expire[direction];
                self.classes[class].directions[direction].insert(rq, request.sector, deadline);
            }
        }
    }

    /// Rules mq-deadline-5 and mq-deadline-6.
    fn dispatch(&mut self, cx: &mut Cx<'_>, _hctx: HctxId, _force: bool) -> Dispatched {
        if self.waiting == 0 {
            return Dispatched::Empty;
        }
        match self.choose(cx) {
            Some(choice) => {
                cx.issue(choice.rq, Placement::Tail, choice.reason);
                Dispatched::Some(1)
            }
            None => Dispatched::Hold(HoldReason::HigherClassInFlight),
        }
    }

    /// Rule mq-deadline-6.
    fn finished(&mut self, _cx: &mut Cx<'_>, rq: RequestId) {
        if let Some(member) = self.members.take(rq) {
            self.classes[member.class].unfinished -= 1;
        }
    }

    /// Rule mq-deadline-6.
    fn has_work(&self, _hctx: HctxId) -> bool {
        self.waiting > 0
    }

    fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> bool {
        let class = self.members[rq].class;
        let direction = cx.request(rq).direction();
        let reason = if self.head_links.contains(rq) {
            self.take_head(cx, rq).reason
        } else {
            let goes_on = self.continue_batch(class).is_some_and(|choice| choice.rq == rq);
            if !goes_on {
                let lanes = &self.classes[class].directions;
                let [reads, writes] = lanes.each_ref().map(|it| !it.is_empty());
                self.starvation.follow(direction, reads, writes);
                self.last_direction = direction;
                self.batching = 0;
            }
            let reason = DispatchReason::BatchStarts;
            self.take(cx, class, Choice { rq, direction, reason });
            reason
        };
        cx.issue(rq, Placement::Tail, reason);
        true
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    fn queued(&self) -> u32 {
        self.waiting
    }

    fn check(&self, cx: &Cx<'_>) {
        for (number, class) in self.classes.iter().enumerate() {
            for (requests, next) in class.directions.iter().zip(class.next) {
                requests.check(|rq| {
                    assert_eq!(self.members[rq].class, number, "class of {rq:?}");
                    cx.request(rq).sector
                });
                let cached = next.filter(|_| self.rules.sweep != Sweep::Position);
                assert!(
                    cached.is_none_or(|next| requests.contains(next)),
                    "next {next:?} is queued"
                );
            }
            assert!(class.queued() <= class.unfinished, "class {number} counts its requests");
        }
        let in_lanes: u32 = self.classes.iter().map(Class::queued).sum();
        let in_lists = self.heads.len();
        assert_eq!(self.waiting, in_lanes + in_lists, "requests in directions and lists");
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        let classes = self.classes.each_ref().map(|class| {
            (
                class.directions[0].len(),
                class.directions[1].len(),
                class.heads.len(),
                class.unfinished,
                class.next,
                class.last,
            )
        });
        format!(
            "mq-deadline: (reads, writes, heads, unfinished, next, last) of RT, BE, IDLE \
             {classes:?}, heads {:?}, {:?} batching {}, starved {}",
            self.heads.len(),
            self.last_direction,
            self.batching,
            self.starvation.passed_over(),
        )
    }
}
