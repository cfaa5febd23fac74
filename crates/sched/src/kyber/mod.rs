//! Kyber: lets as many requests of each kind into a fast device as keep its latency at its targets.
//!
//! Requests are of a few *domains*: reads, writes, discards, others (rule kyber-1). Each waits in a
//! list of its core and domain, and needs one of the domain's *tokens* to leave, which it gives
//! back when it is freed. Domains take turns in batches. How many tokens there are follows the
//! latencies that were measured: `percentiles` on kernels from 5.1 on, `means` before.
//!
//! Cores share nothing but the tokens, so there is no lock, no order by sector, and only the newest
//! few requests of a list are looked at for a merge.

mod means;
mod percentiles;
mod rules;

pub use rules::{CHANGES, about_on};

use crate::async_depth::AsyncDepth;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Hz, Instant, Jiffies, Side, TimerWheel};
use block::kernel::ShallowDepth;
use block::scheduler::{Dispatched, HctxId, InsertAt, Placement, RunQueue};
use block::tags::TagMap;
use block::{
    About, Bio, Cx, DispatchReason, HoldReason, Kernel, Op, Request, RequestId, Scheduler,
};
use means::{FIRST_WINDOW_MS, Means, NEXT_WINDOW_MS};
use percentiles::{Found, Percentiles};
use rules::{Control, Limited, MOST_DOMAINS, Rules};

/// Requests of each domain, oldest first.
type Lists = [VecDeque<RequestId>; MOST_DOMAINS];

/// The scheduler.
#[derive(Clone)]
pub struct Kyber {
    rules: Rules,
    about: &'static About,
    hz: Hz,
    /// Target latencies in nanoseconds.
    targets: [u64; MOST_DOMAINS],
    tokens: Vec<TagMap<HctxId>>,
    /// What waits by core.
    cores: Vec<Core>,
    hctxs: Vec<Hctx>,
    members: Side<Request, Member>,
    queued: u32,
    async_depth: AsyncDepth,
    control: Latencies,
    /// The tick with which the timer goes off.
    timer: Option<Jiffies>,
}

/// What a core has submitted, and no hardware queue has taken yet.
#[derive(Clone, Default)]
struct Core {
    hctx: HctxId,
    lists: Lists,
}

/// A hardware queue.
#[derive(Clone, Default)]
struct Hctx {
    /// What it has taken from its cores.
    taken: Lists,
    /// Whose turn it is, and how many requests have left in it.
    turn: usize,
    batching: u32,
    /// For which tokens it waits.
    waits: [bool; MOST_DOMAINS],
}

/// A request that was bound.
#[derive(Clone, Copy)]
struct Member {
    domain: usize,
    token: Option<u32>,
}

/// What was measured.
#[derive(Clone)]
enum Latencies {
    Percentiles(Percentiles),
    Means(Means),
}

impl Kyber {
    /// With defaults, for a kernel that has it.
    pub fn new(kernel: &Kernel) -> Kyber {
        let rules = Rules::of(kernel);
        let mut targets = [u64::MAX; MOST_DOMAINS];
        for (target, domain) in targets.iter_mut().zip(rules.domains()) {
            *target = domain.target.unwrap_or(u64::MAX);
        }
        Kyber {
            rules,
            about: about_on(kernel),
            hz: kernel.hz,
            targets,
            tokens: Vec::new(),
            cores: Vec::new(),
            hctxs: Vec::new(),
            members: Side::new(),
            queued: 0,
            async_depth: AsyncDepth::default(),
            control: match rules.control {
                Control::Percentiles => Latencies::Percentiles(Percentiles::default()),
                Control::Means => Latencies::Means(Means::default()),
            },
            timer: None,
        }
    }

    fn hctx(&mut self, id: HctxId) -> &mut Hctx {
        let index = usize::from(id.0);
        if self.hctxs.len() <= index {
            self.hctxs.resize_with(index + 1, Hctx::default);
        }
        &mut self.hctxs[index]
    }

    /// Whether anything of a domain waits for this hardware queue.
    fn has_any(&self, id: HctxId, domain: usize) -> bool {
        let taken = self.hctxs.get(usize::from(id.0)).map(|it| &it.taken[domain]);
        taken.is_some_and(|it| !it.is_empty())
            || self.cores.iter().any(|it| it.hctx == id && !it.lists[domain].is_empty())
    }

    /// Rule kyber-4: the batch goes on, or another domain has its turn.
    fn choose(&mut self, id: HctxId) -> Option<(RequestId, DispatchReason)> {
        let domains = self.rules.domains();
        let &mut Hctx { turn, batching, .. } = self.hctx(id);
        if batching < domains[turn].batch
            && let Some(rq) = self.take_from(id, turn)
        {
            let goes_on = batching > 0;
            let reason = match goes_on {
                true => DispatchReason::DomainContinues,
                false => DispatchReason::DomainBegins,
            };
            return Some((rq, reason));
        }
        self.hctx(id).batching = 0;
        for step in 1..=domains.len() {
            let domain = (turn + step) % domains.len();
            self.hctx(id).turn = domain;
            if let Some(rq) = self.take_from(id, domain) {
                return Some((rq, DispatchReason::DomainBegins));
            }
        }
        None
    }

    /// The oldest request of a domain, with a token (rule kyber-5).
    fn take_from(&mut self, id: HctxId, domain: usize) -> Option<RequestId> {
        if !self.has_any(id, domain) {
            return None;
        }
        let token = self.take_token(id, domain)?;
        if self.hctx(id).taken[domain].is_empty() {
            self.take_from_cores(id, domain);
        }
        let rq = self.hctx(id).taken[domain].pop_front().expect("something waits");
        self.leaves(id, rq, Some(token));
        Some(rq)
    }

    /// What the cores have of a domain goes to their hardware queue, core by core.
    fn take_from_cores(&mut self, id: HctxId, domain: usize) {
        let taken = &mut self.hctxs[usize::from(id.0)].taken[domain];
        for core in self.cores.iter_mut().filter(|core| core.hctx == id) {
            taken.append(&mut core.lists[domain]);
        }
    }

    /// A request leaves in the turn of its domain.
    fn leaves(&mut self, id: HctxId, rq: RequestId, token: Option<u32>) {
        self.members[rq].token = token;
        self.queued -= 1;
        self.hctx(id).batching += 1;
    }

    /// Rule kyber-6.
    fn take_token(&mut self, id: HctxId, domain: usize) -> Option<u32> {
        let tokens = &mut self.tokens[domain];
        let token = tokens.take(0, None);
        let waits = &mut self.hctxs[usize::from(id.0)].waits[domain];
        match (token, *waits) {
            (None, false) => {
                tokens.sleep(id);
                *waits = true;
            }
            (Some(_), true) => {
                tokens.leave(id);
                *waits = false;
            }
            _ => {}
        }
        token
    }

    /// A request does not need its token any more; who waits for one is run (rule kyber-7).
    fn give_back(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let Some(Member { domain, token: Some(token) }) = self.members.take(rq) else { return };
        let mut woken = Vec::new();
        self.tokens[domain].give(0, token, &mut woken);
        for id in woken {
            self.tokens[domain].leave(id);
            self.hctx(id).waits[domain] = false;
            cx.run_queue(RunQueue::Async);
        }
    }

    /// The timer is set, unless it goes off before that. It does if it was set before, as it is
    /// always set to as many ticks.
    fn set_timer(&mut self, now: Instant, ticks: u64) {
        if self.timer.is_none() {
            // Its slots lie at multiples of seconds: how long the machine has been up is the same.
            let wheel = TimerWheel::new(self.hz, 0);
            self.timer = Some(Jiffies(wheel.after(now.jiffies(self.hz).0, ticks)));
        }
    }

    /// Rules kyber-10 and kyber-15: how long a request took, and the device with it.
    fn measure(&mut self, cx: &Cx<'_>, domain: usize, total: u64, io: u64) {
        let (target, has_target) =
            (self.targets[domain], self.rules.domains()[domain].target.is_some());
        match &mut self.control {
            Latencies::Percentiles(_) if !has_target => {}
            Latencies::Percentiles(histograms) => {
                histograms.add(domain, total, io, target);
                self.set_timer(cx.now, u64::from(self.hz.get()) / 10);
            }
            Latencies::Means(means) if self.timer.is_some() => means.add(domain, io),
            Latencies::Means(_) => {
                if has_target && io > target {
                    self.set_timer(cx.now, self.hz.jiffies_from_millis(FIRST_WINDOW_MS).0);
                }
            }
        }
    }

    /// Rule kyber-14: a domain has another number of tokens.
    fn resize(&mut self, cx: &mut Cx<'_>, domain: usize, tokens: u32) {
        if self.tokens[domain].depth() != tokens {
            self.tokens[domain].limit(tokens);
            let name = self.rules.domains()[domain].name;
            cx.message(format_args!("kyber_adjust: {name} {tokens}"));
        }
    }

    fn adjust_by_percentiles(&mut self, cx: &mut Cx<'_>) {
        let Latencies::Percentiles(histograms) = &mut self.control else { return };
        let domains = self.rules.domains();
        let (now, second) = (cx.now.jiffies(self.hz), Jiffies(u64::from(self.hz.get())));
        let mut found = Vec::new();
        let tokens = &self.tokens;
        let depths = |domain: usize| tokens[domain].depth();
        histograms.adjust(domains, now, second, depths, &mut found);
        for found in found {
            match found {
                Found::Latency { domain, what, bucket, samples } => {
                    let (name, quarters) = (domains[domain].name, bucket + 1);
                    cx.message(format_args!(
                        "kyber_latency: {name} {what} {quarters}/4 samples={samples}"
                    ));
                }
                Found::Tokens { domain, tokens } => self.resize(cx, domain, tokens),
            }
        }
    }

    fn adjust_by_means(&mut self, cx: &mut Cx<'_>) {
        let Latencies::Means(means) = &mut self.control else { return };
        let most = core::array::from_fn(|domain| self.rules.domains()[domain].tokens);
        let mut depths = core::array::from_fn(|domain| self.tokens[domain].depth());
        let goes_on = means.adjust(&self.targets, &most, &mut depths);
        for (domain, wanted) in depths.into_iter().enumerate() {
            self.resize(cx, domain, wanted);
        }
        if goes_on {
            self.set_timer(cx.now, self.hz.jiffies_from_millis(NEXT_WINDOW_MS).0);
        }
    }

    /// Rule kyber-9: three quarters of the tags, or of a word of them.
    fn default_depth(cx: &Cx<'_>) -> AsyncDepth {
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        let requests = cx.limits().nr_requests;
        let all = match multi.shallow {
            ShallowDepth::WholeMap => requests,
            ShallowDepth::PerWord => cx.tags_per_word(),
        };
        AsyncDepth::of((all * 3 / 4).into(), requests.into())
    }

    /// Takes a request out of wherever it waits.
    fn remove(&mut self, id: HctxId, rq: RequestId, domain: usize) {
        if !self.hctx(id).taken[domain].contains(&rq) {
            self.take_from_cores(id, domain);
        }
        self.hctx(id).taken[domain].retain(|other| *other != rq);
    }
}

impl Scheduler for Kyber {
    fn about(&self) -> &'static About {
        self.about
    }

    fn get(&self, _cx: &Cx<'_>, tunable: &str) -> i64 {
        match tunable {
            "read_lat_nsec" => self.targets[0] as i64,
            "write_lat_nsec" => self.targets[1] as i64,
            "async_depth" => self.async_depth.value(),
            _ => panic!("kyber has no tunable {tunable}"),
        }
    }

    fn set(&mut self, _cx: &mut Cx<'_>, tunable: &str, value: i64) {
        let target = u64::try_from(value).expect("the queue checks ranges");
        match tunable {
            "read_lat_nsec" => self.targets[0] = target,
            "write_lat_nsec" => self.targets[1] = target,
            "async_depth" => self.async_depth.set(value),
            _ => panic!("kyber has no tunable {tunable}"),
        }
    }

    /// Rule kyber-9.
    fn limit_depth(&mut self, cx: &mut Cx<'_>, bio: &Bio) -> Option<u32> {
        let is_limited = match self.rules.limits {
            Limited::Async => !bio.is_sync(),
            Limited::AllButReads => bio.op != Op::Read,
        };
        // Observed on 6.1.192 with words of one tag, of which three quarters are none: whoever may
        // use none may use all.
        self.min_depth(cx).filter(|depth| is_limited && *depth > 0)
    }

    fn min_depth(&self, _cx: &Cx<'_>) -> Option<u32> {
        u32::try_from(self.async_depth.value()).ok()
    }

    /// All tokens are there; the depth is announced next.
    fn attached(&mut self, cx: &mut Cx<'_>) {
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        // Which of its free tokens a domain gives out makes no difference, so cores share a hint.
        let map = |tokens| TagMap::of(&multi, tokens, 1);
        self.tokens = self.rules.domains().iter().map(|domain| map(domain.tokens)).collect();
        self.async_depth = Kyber::default_depth(cx);
    }

    /// Rule kyber-9.
    fn depth_changed(&mut self, cx: &mut Cx<'_>) {
        if self.rules.has_async_depth {
            self.async_depth.follow(cx.limits().nr_requests.into());
        } else {
            self.async_depth = Kyber::default_depth(cx);
        }
    }

    /// Rule kyber-2.
    fn recent(&self, bio: &Bio, newer: usize) -> Option<RequestId> {
        let domain = self.rules.domain_of(bio.op, bio.is_sync());
        let list = &self.cores.get(usize::from(bio.origin.cpu))?.lists[domain];
        list.get(list.len().checked_sub(newer + 1)?).copied()
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let domain = self.rules.domain_of(request.op, request.is_sync());
        self.members.set(rq, Member { domain, token: None });
    }

    /// Rule kyber-3.
    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, at: InsertAt) {
        let request = cx.request(rq);
        let (cpu, hctx) = (usize::from(request.origin.cpu), request.hctx());
        if self.cores.len() <= cpu {
            self.cores.resize_with(cpu + 1, Core::default);
        }
        let core = &mut self.cores[cpu];
        core.hctx = hctx;
        let list = &mut core.lists[self.members[rq].domain];
        match at {
            InsertAt::Head => list.push_front(rq),
            InsertAt::Sorted => list.push_back(rq),
        }
        self.queued += 1;
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>, hctx: HctxId, _force: bool) -> Dispatched {
        if !self.has_work(hctx) {
            return Dispatched::Empty;
        }
        match self.choose(hctx) {
            Some((rq, reason)) => {
                cx.issue(rq, Placement::Tail, reason);
                Dispatched::Some(1)
            }
            None => Dispatched::Hold(HoldReason::NoToken),
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>, rq: RequestId) -> bool {
        let (id, domain) = (cx.request(rq).hctx(), self.members[rq].domain);
        let batch = self.rules.domains()[domain].batch;
        let hctx = self.hctx(id);
        let goes_on = hctx.turn == domain && (1..batch).contains(&hctx.batching);
        if !goes_on {
            (hctx.turn, hctx.batching) = (domain, 0);
        }
        let token = self.take_token(id, domain);
        self.remove(id, rq, domain);
        self.leaves(id, rq, token);
        cx.issue(rq, Placement::Tail, DispatchReason::DomainBegins);
        true
    }

    /// Where searches for tokens begin that begin anywhere, and how many tokens there are.
    fn heed(&mut self, cx: &mut Cx<'_>, said: &str, _rq: Option<RequestId>) {
        let mut words = said.split(' ');
        let (Some(what), Some(name), Some(number)) = (words.next(), words.next(), words.next())
        else {
            return;
        };
        let domains = self.rules.domains();
        let domain = domains.iter().position(|domain| domain.name == name);
        let (Some(domain), Ok(number)) = (domain, number.parse::<u32>()) else { return };
        match what {
            "kyber_searches:" => self.tokens[domain].search_from(number),
            "kyber_searches_word:" => self.tokens[domain].search_word(number),
            "kyber_adjust:" if (1..=domains[domain].tokens).contains(&number) => {
                self.resize(cx, domain, number);
            }
            _ => {}
        }
    }

    fn fork(&self) -> Option<Box<dyn Scheduler>> {
        Some(Box::new(self.clone()))
    }

    fn requeued(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.give_back(cx, rq);
    }

    fn completed(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let total = cx.now.saturating_since(request.allocated_at).as_nanos();
        let io = cx.now.saturating_since(request.issued_at).as_nanos();
        self.measure(cx, self.members[rq].domain, total, io);
    }

    /// Rule kyber-16: it counts as a write that the device had since the boot.
    fn flushed(&mut self, cx: &mut Cx<'_>, since: Instant, has_data: bool) {
        if self.rules.control == Control::Percentiles {
            let total = if has_data { 0 } else { cx.now.saturating_since(since).as_nanos() };
            let domain = self.rules.domain_of(Op::Write, true);
            self.measure(cx, domain, total, u64::MAX);
        }
    }

    fn finished(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.give_back(cx, rq);
    }

    fn next_timer(&self) -> Option<Instant> {
        let ticks = self.timer?.0;
        Some(Instant::from_nanos(ticks * self.hz.tick().as_nanos()))
    }

    fn timer(&mut self, cx: &mut Cx<'_>) {
        self.timer = None;
        self.adjust_by_percentiles(cx);
        self.adjust_by_means(cx);
    }

    fn has_work(&self, hctx: HctxId) -> bool {
        self.queued > 0 && (0..self.rules.domains().len()).any(|it| self.has_any(hctx, it))
    }

    fn queued(&self) -> u32 {
        self.queued
    }

    fn check(&self, cx: &Cx<'_>) {
        let mut queued = 0;
        let cores = self.cores.iter().map(|core| (core.hctx, &core.lists));
        let taken = self.hctxs.iter().zip(0..).map(|(it, number)| (HctxId(number), &it.taken));
        for (hctx, lists) in cores.chain(taken) {
            for (domain, list) in lists.iter().enumerate() {
                for rq in list {
                    let Member { domain: own, token } = self.members[*rq];
                    assert_eq!((own, token), (domain, None), "{rq:?} waits in its list");
                    assert_eq!(cx.request(*rq).hctx(), hctx, "hardware queue of {rq:?}");
                    queued += 1;
                }
            }
        }
        assert_eq!(self.queued, queued, "requests in lists");
        for (domain, tokens) in self.rules.domains().iter().zip(&self.tokens) {
            assert!((1..=domain.tokens).contains(&tokens.depth()), "tokens of {}", domain.name);
        }
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        let tokens: Vec<_> = (self.rules.domains().iter().zip(&self.tokens))
            .map(|(domain, it)| (domain.name, it.in_use(), it.depth()))
            .collect();
        let turns: Vec<_> = (self.hctxs.iter())
            .map(|it| (self.rules.domains()[it.turn].name, it.batching, it.waits))
            .collect();
        format!(
            "kyber: {} queued, (domain, tokens in use, tokens) {tokens:?}, (turn, batching, waits) \
             of hardware queues {turns:?}, timer {:?}",
            self.queued, self.timer,
        )
    }
}
