//! Kyber once more, after the text of `docs/rules/kyber.md`: what waits in two unsorted lists, each
//! token a place in a list of all, each latency kept until somebody looks at it.

use super::shadow::Naive;
use base::{Duration, Instant, Sector};
use block::kernel::ShallowDepth;
use block::{Bio, Cx, Kernel, Op, RequestId, Version};

#[derive(Clone, Copy)]
struct Item {
    rq: RequestId,
    cpu: u16,
    domain: usize,
    /// Where it begins and ends.
    place: (Sector, Sector),
}

/// A latency that was measured, in quarters of the target.
struct Sample {
    domain: usize,
    is_total: bool,
    bucket: u64,
}

/// The tokens of a domain.
struct Tokens {
    /// Who has each place.
    held: Vec<Option<RequestId>>,
    /// Places that were given back, and are not found before their word has no other.
    late: Vec<bool>,
    depth: usize,
    word: usize,
    hint: usize,
    clears_late: bool,
}

impl Tokens {
    fn take(&mut self, rq: RequestId) -> bool {
        let words = self.depth.div_ceil(self.word);
        // What lies beyond begins anywhere: with the first.
        if self.hint >= self.depth {
            self.hint = 0;
        }
        let first = self.hint / self.word;
        let mut found = None;
        'search: for word in (0..words).map(|step| (first + step) % words) {
            for _ in 0..2 {
                let all = word * self.word..(word + 1) * self.word;
                let usable = all.start..all.end.min(self.depth);
                found = usable.into_iter().find(|it| self.held[*it].is_none() && !self.late[*it]);
                if found.is_some() {
                    break 'search;
                }
                self.late[all].fill(false);
            }
        }
        self.hint = match found {
            None => 0,
            Some(place) if place == self.hint && place + 2 < self.depth => place + 1,
            Some(place) if place == self.hint => 0,
            Some(_) => self.hint,
        };
        let Some(place) = found else { return false };
        self.held[place] = Some(rq);
        true
    }

    fn give(&mut self, rq: RequestId) {
        let Some(place) = self.held.iter().position(|it| *it == Some(rq)) else { return };
        self.held[place] = None;
        self.late[place] = self.clears_late;
        if place < self.depth {
            self.hint = place;
        }
    }

    fn limit(&mut self, depth: usize) {
        self.late.fill(false);
        self.depth = depth;
    }

    fn is_free(&self) -> bool {
        self.held[..self.depth].iter().any(Option::is_none)
    }
}

/// The twin.
pub struct NaiveKyber {
    version: Version,
    names: &'static [&'static str],
    most: &'static [usize],
    batches: &'static [u32],
    targets: [u64; 4],
    own: Vec<Item>,
    taken: Vec<Item>,
    turn: usize,
    batching: u32,
    tokens: Vec<Tokens>,
    samples: Vec<Sample>,
    due: [Option<u64>; 4],
    saved: [Option<u64>; 4],
    /// By domain, how long the device had requests in this window.
    window: Vec<(usize, u64)>,
    timer: Option<u64>,
    async_depth: u64,
    requests: u64,
    hz: u64,
}

impl NaiveKyber {
    pub fn new(kernel: &Kernel) -> NaiveKyber {
        let has_means = kernel.version == Version::V4_19;
        let multi = kernel.multi.expect("blk-mq");
        let most: &[usize] = if has_means { &[256, 128, 64] } else { &[256, 128, 64, 16] };
        let tokens = most.iter().map(|depth| Tokens {
            held: vec![None; *depth],
            late: vec![false; *depth],
            depth: *depth,
            word: [64, 32, 16, 8, 4].into_iter().find(|it| it * 4 <= *depth).unwrap(),
            hint: 0,
            clears_late: multi.clears_late,
        });
        NaiveKyber {
            version: kernel.version,
            names: match has_means {
                true => &["READ", "SYNC_WRITE", "OTHER"],
                false => &["READ", "WRITE", "DISCARD", "OTHER"],
            },
            most,
            batches: if has_means { &[16, 8, 8] } else { &[16, 8, 1, 1] },
            targets: [2_000_000, 10_000_000, 5_000_000_000, 0],
            own: Vec::new(),
            taken: Vec::new(),
            turn: 0,
            batching: 0,
            tokens: tokens.collect(),
            samples: Vec::new(),
            due: [None; 4],
            saved: [None; 4],
            window: Vec::new(),
            timer: None,
            async_depth: 0,
            requests: 0,
            hz: u64::from(kernel.hz.get()),
        }
    }

    fn has_means(&self) -> bool {
        self.names.len() == 3
    }

    fn domain(&self, op: Op, is_sync: bool) -> usize {
        match op {
            Op::Read => 0,
            Op::Write if self.has_means() && !is_sync => 2,
            Op::Write => 1,
            Op::Discard => 2,
        }
    }

    fn try_domain(&mut self, domain: usize) -> Option<RequestId> {
        let waits = |items: &[Item]| items.iter().any(|it| it.domain == domain);
        if !waits(&self.own) && !waits(&self.taken) {
            return None;
        }
        if !self.tokens[domain].is_free() {
            // It looks everywhere, and what was given back late is free from then on.
            let nobody = self.own.iter().chain(&self.taken).next().unwrap().rq;
            assert!(!self.tokens[domain].take(nobody), "a token that is not free");
            return None;
        }
        if !waits(&self.taken) {
            for cpu in 0..64 {
                let moves = |it: &Item| it.domain == domain && it.cpu == cpu;
                self.taken.extend(self.own.iter().filter(|it| moves(it)));
                self.own.retain(|it| !moves(it));
            }
        }
        let at = self.taken.iter().position(|it| it.domain == domain).unwrap();
        let rq = self.taken.remove(at).rq;
        self.batching += 1;
        assert!(self.tokens[domain].take(rq), "a token that is free");
        Some(rq)
    }

    fn jiffies(&self, cx: &Cx<'_>) -> u64 {
        cx.now.jiffies(cx.kernel().hz).0
    }

    /// A tick later than asked: the one that runs does not count. (The test has no tick that is so
    /// short that it matters how timers are rounded.)
    fn arm(&mut self, now: u64, millis: u64) {
        let due = now + (millis * self.hz).div_ceil(1000) + 1;
        self.timer = Some(self.timer.map_or(due, |it| it.min(due)));
    }

    fn default_depth(cx: &Cx<'_>) -> u64 {
        let all = match cx.kernel().multi.expect("blk-mq").shallow {
            ShallowDepth::WholeMap => cx.limits().nr_requests,
            ShallowDepth::PerWord => cx.tags_per_word(),
        };
        u64::from(all) * 3 / 4
    }

    fn percentile(&mut self, domain: usize, is_total: bool, percent: u64, now: u64) -> Option<u64> {
        let is_its = |it: &Sample| it.domain == domain && it.is_total == is_total;
        let mut all: Vec<u64> =
            self.samples.iter().filter(|it| is_its(it)).map(|it| it.bucket).collect();
        if all.is_empty() {
            return None;
        }
        let due = *self.due[domain].get_or_insert(now + self.hz);
        if all.len() < 500 && now < due {
            return None;
        }
        self.due[domain] = None;
        self.samples.retain(|it| !is_its(it));
        all.sort_unstable();
        let rank = (all.len() as u64 * percent).div_ceil(100);
        Some(all[rank as usize - 1])
    }

    fn by_percentiles(&mut self, now: u64) {
        let mut is_bad = false;
        for domain in 0..3 {
            is_bad |= self.percentile(domain, false, 90, now).is_some_and(|it| it >= 4);
        }
        for domain in 0..3 {
            let mut p99 = self.percentile(domain, true, 99, now);
            if is_bad {
                p99 = p99.or(self.saved[domain]);
                self.saved[domain] = None;
            } else if p99.is_some() {
                self.saved[domain] = p99;
            }
            let Some(p99) = p99 else { continue };
            if is_bad || p99 >= 4 {
                let depth = self.tokens[domain].depth * (p99 as usize + 1) / 4;
                let depth = depth.clamp(1, self.most[domain]);
                if depth != self.tokens[domain].depth {
                    self.tokens[domain].limit(depth);
                }
            }
        }
    }

    /// 2 great, 1 good, 0 unknown, -1 bad, -2 awful.
    fn status(&self, domain: usize) -> i32 {
        let all: Vec<u64> = self.window.iter().filter(|it| it.0 == domain).map(|it| it.1).collect();
        let target = self.targets[domain];
        if all.is_empty() {
            return 0;
        }
        let mean = all.iter().sum::<u64>() / all.len() as u64;
        match () {
            () if mean >= target * 2 => -2,
            () if mean > target => -1,
            () if mean <= target / 2 => 2,
            () => 1,
        }
    }

    fn rival(&self, domain: usize, own: i32, other: i32) -> i64 {
        let depth = self.tokens[domain].depth as i64;
        if own == 0 || own.signum() == other.signum() {
            return 0;
        }
        match (own, other) {
            (_, 0) => 1,
            (1, -2) => -(depth / 4).max(1),
            (1, _) => -(depth / 8).max(1),
            (2, -2) => -(depth / 2).max(1),
            (2, _) => -(depth / 4).max(1),
            (-2, 2) => 2,
            _ => 1,
        }
    }

    fn by_means(&mut self, now: u64) {
        let (read, write) = (self.status(0), self.status(1));
        let had_others = self.window.iter().any(|it| it.0 == 2);
        let best = match (read, write) {
            (0, known) | (known, 0) => known,
            (read, write) => read.max(write),
        };
        let depth = self.tokens[2].depth as i64;
        let other = match best {
            0 => 2,
            _ if !had_others => 0,
            -2 => -(depth / 2).max(1),
            -1 => -(depth / 4).max(1),
            good => i64::from(good),
        };
        let changes = [self.rival(0, read, write), self.rival(1, write, read), other];
        for (domain, change) in changes.into_iter().enumerate() {
            let before = self.tokens[domain].depth as i64;
            let depth = (before + change).clamp(1, self.most[domain] as i64);
            if depth != before {
                self.tokens[domain].limit(depth as usize);
            }
        }
        self.window.clear();
        if read < 0 || write < 0 || self.tokens[2].depth < 64 {
            self.arm(now, 100);
        }
    }
}

impl Naive for NaiveKyber {
    fn attached(&mut self, cx: &Cx<'_>) {
        self.async_depth = NaiveKyber::default_depth(cx);
        self.requests = u64::from(cx.limits().nr_requests);
    }

    fn detached(&mut self, _cx: &Cx<'_>) {}

    fn depth_changed(&mut self, cx: &Cx<'_>) {
        let requests = u64::from(cx.limits().nr_requests);
        self.async_depth = match self.version == Version::V7_3 {
            true => (self.async_depth * requests / self.requests).max(1),
            false => NaiveKyber::default_depth(cx),
        };
        self.requests = requests;
    }

    fn set(&mut self, name: &str, value: i64) {
        match name {
            "read_lat_nsec" => self.targets[0] = value as u64,
            "write_lat_nsec" => self.targets[1] = value as u64,
            _ => self.async_depth = (value as u64).min(self.requests),
        }
    }

    fn may_queue(&mut self, _cx: &Cx<'_>, _bio: &Bio) -> bool {
        false
    }

    fn depth(&mut self, _cx: &Cx<'_>, bio: &Bio) -> Option<u32> {
        let is_late = self.version >= Version::V6_18;
        let is_limited = if is_late { bio.op != Op::Read } else { !bio.is_sync() };
        (is_limited && self.async_depth != 0).then_some(self.async_depth as u32)
    }

    fn recent(&self, bio: &Bio) -> Vec<RequestId> {
        let domain = self.domain(bio.op, bio.is_sync());
        let is_its = |it: &&Item| it.domain == domain && it.cpu == bio.origin.cpu;
        let all: Vec<&Item> = self.own.iter().rev().filter(is_its).collect();
        let touches = |it: &&Item| it.place.1 == bio.sector || it.place.0 == bio.end();
        match all.iter().take(8).any(touches) {
            true => all.into_iter().map(|it| it.rq).collect(),
            false => Vec::new(),
        }
    }

    /// Requests may have grown.
    fn look_at_time(&mut self, cx: &Cx<'_>) {
        for item in &mut self.own {
            let request = cx.request(item.rq);
            item.place = (request.sector, request.end());
        }
    }

    fn bind(&mut self, _cx: &Cx<'_>, _rq: RequestId) {}

    fn fronts(&self, _cx: &Cx<'_>, _bio: &Bio) -> Vec<RequestId> {
        panic!("nobody asks Kyber for what lies behind a bio")
    }

    fn moved(&mut self, _cx: &Cx<'_>, _rq: RequestId) -> Vec<RequestId> {
        Vec::new()
    }

    fn joined(&mut self, _cx: &Cx<'_>, _rq: RequestId, _next: RequestId) {
        panic!("Kyber joins no requests")
    }

    fn sorted(&self, _cx: &Cx<'_>, _rq: RequestId) -> Vec<RequestId> {
        Vec::new()
    }

    fn insert(&mut self, cx: &Cx<'_>, rq: RequestId) -> Vec<RequestId> {
        let request = cx.request(rq);
        let domain = self.domain(request.op, request.is_sync());
        let place = (request.sector, request.end());
        self.own.push(Item { rq, cpu: request.origin.cpu, domain, place });
        Vec::new()
    }

    fn insert_at_head(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.insert(cx, rq);
        self.own.rotate_right(1);
    }

    fn dispatch(&mut self, _cx: &Cx<'_>) -> Vec<RequestId> {
        if self.batching < self.batches[self.turn]
            && let Some(rq) = self.try_domain(self.turn)
        {
            return vec![rq];
        }
        self.batching = 0;
        for _ in 0..self.names.len() {
            self.turn = (self.turn + 1) % self.names.len();
            if let Some(rq) = self.try_domain(self.turn) {
                return vec![rq];
            }
        }
        Vec::new()
    }

    fn drain(&mut self, cx: &Cx<'_>) -> Vec<RequestId> {
        self.dispatch(cx)
    }

    fn activated(&mut self, _cx: &Cx<'_>, _rq: RequestId) {}

    fn deactivated(&mut self, _rq: RequestId) {}

    fn completed(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let domain = self.domain(request.op, request.is_sync());
        let since = |then| cx.now.saturating_since(then).as_nanos();
        let (total, io) = (since(request.allocated_at), since(request.issued_at));
        let now = self.jiffies(cx);
        if self.has_means() {
            if self.timer.is_some() {
                self.window.push((domain, io));
            } else if domain < 2 && io > self.targets[domain] {
                self.arm(now, 10);
            }
            return;
        }
        let width = (self.targets[domain] / 4).max(1);
        for (is_total, latency) in [(true, total), (false, io)] {
            let bucket = latency.div_ceil(width).saturating_sub(1).min(7);
            self.samples.push(Sample { domain, is_total, bucket });
        }
        self.arm(now, 100);
    }

    fn flushed(&mut self, cx: &Cx<'_>, since: Instant, has_data: bool) {
        if self.has_means() {
            return;
        }
        let total = if has_data { 0 } else { cx.now.saturating_since(since).as_nanos() };
        let width = (self.targets[1] / 4).max(1);
        let bucket = total.div_ceil(width).saturating_sub(1).min(7);
        self.samples.push(Sample { domain: 1, is_total: true, bucket });
        self.samples.push(Sample { domain: 1, is_total: false, bucket: 7 });
        let now = self.jiffies(cx);
        self.arm(now, 100);
    }

    fn finished(&mut self, _cx: &Cx<'_>, rq: RequestId) {
        self.tokens.iter_mut().for_each(|it| it.give(rq));
    }

    fn timer(&self) -> Option<i64> {
        let tick = Duration::from_secs(1).as_nanos() / self.hz;
        self.timer.map(|it| (it * tick) as i64)
    }

    fn timer_fires(&mut self, cx: &Cx<'_>) {
        self.timer = None;
        let now = self.jiffies(cx);
        match self.has_means() {
            true => self.by_means(now),
            false => self.by_percentiles(now),
        }
    }

    fn exit(&mut self, _cx: &Cx<'_>, _io_context: u32) {}

    fn queued(&self) -> usize {
        self.own.len() + self.taken.len()
    }

    fn has_work(&self) -> bool {
        self.queued() > 0
    }

    /// Tokens of each domain, in use and all.
    fn describes(&self) -> Option<String> {
        let of = |(name, it): (&&str, &Tokens)| {
            let held = it.held.iter().flatten().count();
            format!("(\"{name}\", {held}, {})", it.depth)
        };
        let all: Vec<String> = self.names.iter().zip(&self.tokens).map(of).collect();
        Some(format!("[{}]", all.join(", ")))
    }
}
