//! Kyber: lets as many requests of each kind into a fast device as keep its latency at its targets.
//!
//! Requests are of a few *domains*: reads, writes, discards, others (rule kyber-1). Each waits in a
//! list of its core and domain, and needs one of the domain's *tokens* to leave, which it gives
//! back when it is freed. Domains take turns in batches. How many tokens there are follows the
//! latencies that were measured: `percentiles` on kernels from 5.1 on, `means` before.
//!
//! Cores share nothing but the tokens, so there is no lock, no order by sector, and only the newest
//! few requests of a list are looked at for a merge.

mod hctx;
mod means;
mod percentiles;
mod rules;
mod untaken;

pub use rules::{CHANGES, about_on};

use crate::async_depth::AsyncDepth;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use base::{Hz, Instant, Jiffies, Side, TimerWheel};
use block::kernel::ShallowDepth;
use block::scheduler::{Dispatched, HctxId, InsertAt, Merge, Placement, RunQueue};
use block::tags::TagMap;
use block::{
    About, Bio, Cx, DispatchReason, HoldReason, Kernel, Op, Request, RequestId, Scheduler,
};
use hctx::{Core, Hctx};
use means::{FIRST_WINDOW_MS, Means, NEXT_WINDOW_MS};
use percentiles::{Found, Percentiles};
use rules::{Control, Domain, Kinds, Limited, MOST_DOMAINS, Rules};
use untaken::Untaken;

/// The scheduler.
#[derive(Clone)]
pub struct Kyber {
    rules: Rules,
    domains: &'static [Domain],
    kinds: Kinds,
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
    /// Hardware queues that a token which is given back wakes; empty in between.
    woken: Vec<HctxId>,
}

/// A request that was bound.
#[derive(Clone, Copy)]
struct Member {
    domain: u8,
    token: Option<u32>,
}

impl Member {
    fn domain(self) -> usize {
        usize::from(self.domain)
    }
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
        let domains = rules.domains();
        let mut targets = [u64::MAX; MOST_DOMAINS];
        for (target, domain) in targets.iter_mut().zip(domains) {
            *target = domain.target.unwrap_or(u64::MAX);
        }
        Kyber {
            rules,
            domains,
            kinds: Kinds::of(rules),
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
                Control::Percentiles => Latencies::Percentiles(Percentiles::new(&targets)),
                Control::Means => Latencies::Means(Means::default()),
            },
            timer: None,
            woken: Vec::new(),
        }
    }

    /// The place of a hardware queue, made when it is first named.
    fn hctx(&mut self, id: HctxId) -> &mut Hctx {
        let index = usize::from(id.0);
        if self.hctxs.len() <= index {
            self.hctxs.resize_with(index + 1, Hctx::default);
        }
        &mut self.hctxs[index]
    }

    /// Rule kyber-4: the batch goes on, or another domain has its turn.
    #[inline]
    fn choose(&mut self, id: HctxId) -> Option<(RequestId, DispatchReason)> {
        let &Hctx { turn, batching, .. } = &self.hctxs[usize::from(id.0)];
        if batching < self.domains[turn].batch
            && let Some(rq) = self.take_from(id, turn)
        {
            let reason = match batching > 0 {
                true => DispatchReason::DomainContinues,
                false => DispatchReason::DomainBegins,
            };
            return Some((rq, reason));
        }
        self.change_turn(id, turn)
    }

    #[inline(never)]
    fn change_turn(&mut self, id: HctxId, turn: usize) -> Option<(RequestId, DispatchReason)> {
        self.hctx(id).batching = 0;
        for step in 1..=self.domains.len() {
            let domain = (turn + step) % self.domains.len();
            self.hctx(id).turn = domain;
            if let Some(rq) = self.take_from(id, domain) {
                return Some((rq, DispatchReason::DomainBegins));
            }
        }
        None
    }

    /// The oldest request of a domain, with a token (rule kyber-5).
    #[inline]
    fn take_from(&mut self, id: HctxId, domain: usize) -> Option<RequestId> {
        let hctx = &mut self.hctxs[usize::from(id.0)];
        if hctx.waiting[domain] == 0 {
            return None;
        }
        let token = hctx.take_token(id, domain, &mut self.tokens[domain])?;
        let rq = hctx.take_oldest(id, domain, &mut self.cores);
        hctx.leaves(domain);
        self.members[rq].token = Some(token);
        self.queued -= 1;
        Some(rq)
    }

    /// A request does not need its token any more; who waits for one is run (rule kyber-7).
    fn give_back(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let Some(member) = self.members.take(rq) else { return };
        let Some(token) = member.token else { return };
        self.tokens[member.domain()].give(0, token, &mut self.woken);
        if !self.woken.is_empty() {
            self.wake(cx, member.domain());
        }
    }

    #[cold]
    fn wake(&mut self, cx: &mut Cx<'_>, domain: usize) {
        while let Some(id) = self.woken.pop() {
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
    // On the way of every request; the compiler would not choose to put it into its callers.
    #[inline(always)]
    fn measure(&mut self, cx: &Cx<'_>, domain: usize, total: u64, io: u64) {
        let has_target = self.domains[domain].target.is_some();
        match &mut self.control {
            Latencies::Percentiles(_) if !has_target => {}
            Latencies::Percentiles(histograms) => {
                histograms.add(domain, total, io);
                if self.timer.is_none() {
                    self.set_timer(cx.now, u64::from(self.hz.get()) / 10);
                }
            }
            Latencies::Means(means) if self.timer.is_some() => means.add(domain, io),
            Latencies::Means(_) => {
                if has_target && io > self.targets[domain] {
                    self.set_timer(cx.now, self.hz.jiffies_from_millis(FIRST_WINDOW_MS).0);
                }
            }
        }
    }

    /// A domain is to have another latency, in nanoseconds.
    fn set_target(&mut self, domain: usize, target: u64) {
        self.targets[domain] = target;
        if let Latencies::Percentiles(histograms) = &mut self.control {
            histograms.set_target(domain, target);
        }
    }

    /// Rule kyber-14: a domain has another number of tokens.
    fn resize(&mut self, cx: &mut Cx<'_>, domain: usize, tokens: u32) {
        if self.tokens[domain].depth() != tokens {
            self.tokens[domain].limit(tokens);
            let name = self.domains[domain].name;
            cx.message(format_args!("kyber_adjust: {name} {tokens}"));
        }
    }

    fn adjust_by_percentiles(&mut self, cx: &mut Cx<'_>) {
        let Latencies::Percentiles(histograms) = &mut self.control else { return };
        let domains = self.domains;
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
        let most = core::array::from_fn(|domain| self.domains[domain].tokens);
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
            "read_lat_nsec" => self.set_target(0, target),
            "write_lat_nsec" => self.set_target(1, target),
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
        let depth = self.min_depth(cx)?;
        // Observed on 6.1.192 with words of one tag, of which three quarters are none: whoever may
        // use none may use all.
        (is_limited & (depth > 0)).then_some(depth)
    }

    fn min_depth(&self, _cx: &Cx<'_>) -> Option<u32> {
        u32::try_from(self.async_depth.value()).ok()
    }

    /// All tokens are there; the depth is announced next.
    fn attached(&mut self, cx: &mut Cx<'_>) {
        let multi = cx.kernel().multi.expect("a kernel with blk-mq");
        // Which of its free tokens a domain gives out makes no difference, so cores share a hint.
        let map = |tokens| TagMap::of(&multi, tokens, 1);
        self.tokens = self.domains.iter().map(|domain| map(domain.tokens)).collect();
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
    fn recent(&self, bio: &Bio) -> Option<&VecDeque<RequestId>> {
        let domain = self.kinds.domain_of(bio.op, bio.is_sync());
        let untaken = &self.cores.get(usize::from(bio.origin.cpu))?.domains[usize::from(domain)];
        untaken.may_touch(bio).then(|| untaken.list())
    }

    fn bio_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, _bio: &Bio, _merge: Merge) {
        let cpu = usize::from(cx.request(rq).origin.cpu);
        self.cores[cpu].domains[self.members[rq].domain()].look_again(cx);
    }

    fn bind(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let domain = self.kinds.domain_of(request.op, request.is_sync());
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
        let domain = usize::from(self.kinds.domain_of(request.op, request.is_sync()));
        match at {
            InsertAt::Head => core.domains[domain].push_front(rq, cx),
            InsertAt::Sorted => core.domains[domain].push_back(rq, request),
        }
        self.hctx(hctx).enters(domain);
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
        let (id, domain) = (cx.request(rq).hctx(), self.members[rq].domain());
        let batch = self.domains[domain].batch;
        let hctx = &mut self.hctxs[usize::from(id.0)];
        let goes_on = hctx.turn == domain && (1..batch).contains(&hctx.batching);
        if !goes_on {
            (hctx.turn, hctx.batching) = (domain, 0);
        }
        let token = hctx.take_token(id, domain, &mut self.tokens[domain]);
        hctx.remove(id, rq, domain, &mut self.cores);
        hctx.leaves(domain);
        self.members[rq].token = token;
        self.queued -= 1;
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
        let domains = self.domains;
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
        self.measure(cx, self.members[rq].domain(), total, io);
    }

    /// Rule kyber-16: it counts as a write that the device had since the boot.
    fn flushed(&mut self, cx: &mut Cx<'_>, since: Instant, has_data: bool) {
        if self.rules.control == Control::Percentiles {
            let total = if has_data { 0 } else { cx.now.saturating_since(since).as_nanos() };
            let domain = self.kinds.domain_of(Op::Write, true);
            self.measure(cx, usize::from(domain), total, u64::MAX);
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
        let hctx = self.hctxs.get(usize::from(hctx.0));
        hctx.is_some_and(|it| it.all_waiting > 0)
    }

    fn queued(&self) -> u32 {
        self.queued
    }

    fn check(&self, cx: &Cx<'_>) {
        let mut queued = 0;
        let mut waiting = alloc::vec![[0; MOST_DOMAINS]; self.hctxs.len()];
        let cores = self.cores.iter().map(|it| (it.hctx, it.domains.each_ref().map(Untaken::list)));
        let taken = self.hctxs.iter().zip(0..).map(|(it, id)| (HctxId(id), it.taken.each_ref()));
        for (hctx, lists) in cores.chain(taken) {
            for (domain, list) in lists.into_iter().enumerate() {
                for rq in list {
                    let member = self.members[*rq];
                    let own = (member.domain(), member.token);
                    assert_eq!(own, (domain, None), "{rq:?} waits in its list");
                    assert_eq!(cx.request(*rq).hctx(), hctx, "hardware queue of {rq:?}");
                    waiting[usize::from(hctx.0)][domain] += 1;
                    queued += 1;
                }
            }
        }
        assert_eq!(self.queued, queued, "requests in lists");
        let counted: Vec<_> = self.hctxs.iter().map(|it| it.waiting).collect();
        assert_eq!(counted, waiting, "requests that wait by hardware queue and domain");
        let sums = self.hctxs.iter().map(|it| it.all_waiting);
        assert!(sums.eq(waiting.iter().map(|it| it.iter().sum::<u32>())), "requests that wait");
        for (domain, tokens) in self.domains.iter().zip(&self.tokens) {
            assert!((1..=domain.tokens).contains(&tokens.depth()), "tokens of {}", domain.name);
        }
    }

    fn describe(&self, _cx: &Cx<'_>) -> String {
        let tokens: Vec<_> = (self.domains.iter().zip(&self.tokens))
            .map(|(domain, it)| (domain.name, it.in_use(), it.depth()))
            .collect();
        let turns: Vec<_> = (self.hctxs.iter())
            .map(|it| (self.domains[it.turn].name, it.batching, it.waits))
            .collect();
        format!(
            "kyber: {} queued, (domain, tokens in use, tokens) {tokens:?}, (turn, batching, waits) \
             of hardware queues {turns:?}, timer {:?}",
            self.queued, self.timer,
        )
    }
}
