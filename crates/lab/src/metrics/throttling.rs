//! Who was held back before it had a request: by writeback throttling, for how long, at which depth
//! and why the depth was what it was; and by limits of its control group.

use base::{Duration, Instant};
use block::{Action, ContextId, Event, WbtEvent, WbtStatus};
use serde::Serialize;

/// They sleep because writeback is throttled.
pub const WRITEBACK: &str = "writeback";
/// Their bios wait for limits of their control groups.
pub const LIMITS: &str = "limits";

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Throttling {
    /// Who was held back, the longest in all first.
    pub waited: Vec<Waited>,
    /// How many windows were like what.
    pub windows: Windows,
    /// How often there was a step to fewer slots.
    pub narrowed: u64,
    /// How often there was one to more.
    pub widened: u64,
    /// The fewest slots that there were for writes that somebody waits for; nothing without a step.
    pub least_depth: Option<u32>,
    /// Of the reads that were late the latest, or how long it had been under way.
    #[serde(rename = "latest_read_ns")]
    pub latest_read: Duration,
}

/// How many windows were like what (rule wbt-11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Windows {
    /// Reads were in time.
    pub ok: u64,
    /// They were late.
    pub exceeded: u64,
    /// There were too few samples to tell, and writes.
    pub unknown_writes: u64,
    /// There were too few, and no writes.
    pub unknown: u64,
}

/// How long the tasks of a name were held back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// What they are called.
    pub task: String,
    /// By what: one of [`WRITEBACK`] and [`LIMITS`].
    pub by: &'static str,
    /// How often.
    pub times: u64,
    /// All that together.
    #[serde(rename = "time_ns")]
    pub time: Duration,
    /// The longest.
    #[serde(rename = "longest_ns")]
    pub longest: Duration,
    /// The slots that there were for them when they fell asleep, fewest and most; for writeback.
    pub depth: Option<[u32; 2]>,
}

impl Throttling {
    /// Whether anything was throttled or judged.
    pub fn is_empty(&self) -> bool {
        self.waited.is_empty() && self.windows == Windows::default()
    }

    /// What runs have in the mean: counts and times; of what is longest, least or most that of all.
    pub fn mean<'a>(runs: impl ExactSizeIterator<Item = &'a Throttling>) -> Throttling {
        let (count, mut all) = (runs.len().max(1) as u64, Throttling::default());
        for run in runs {
            for waited in &run.waited {
                match all.waited.iter_mut().find(|it| it.is_same(waited)) {
                    Some(known) => known.add(waited),
                    None => all.waited.push(waited.clone()),
                }
            }
            let mut of_run = run.windows;
            for (sum, windows) in all.windows.each_mut().into_iter().zip(of_run.each_mut()) {
                *sum += *windows;
            }
            all.narrowed += run.narrowed;
            all.widened += run.widened;
            all.least_depth = all.least_depth.into_iter().chain(run.least_depth).min();
            all.latest_read = all.latest_read.max(run.latest_read);
        }
        let of = |sum: u64| (sum + count / 2) / count;
        for waited in &mut all.waited {
            (waited.times, waited.time) = (of(waited.times), waited.time / count);
        }
        all.waited.sort_by(|a, b| b.time.cmp(&a.time).then(a.task.cmp(&b.task)));
        all.windows.each_mut().into_iter().for_each(|windows| *windows = of(*windows));
        (all.narrowed, all.widened) = (of(all.narrowed), of(all.widened));
        all
    }
}

impl Windows {
    fn each_mut(&mut self) -> [&mut u64; 4] {
        [&mut self.ok, &mut self.exceeded, &mut self.unknown_writes, &mut self.unknown]
    }

    fn of(&mut self, status: WbtStatus) -> &mut u64 {
        match status {
            WbtStatus::Ok => &mut self.ok,
            WbtStatus::Exceeded => &mut self.exceeded,
            WbtStatus::UnknownWrites => &mut self.unknown_writes,
            WbtStatus::Unknown => &mut self.unknown,
        }
    }
}

impl Waited {
    fn is_same(&self, other: &Waited) -> bool {
        self.task == other.task && self.by == other.by
    }

    fn add(&mut self, other: &Waited) {
        self.times += other.times;
        self.time += other.time;
        self.longest = self.longest.max(other.longest);
        other.depth.into_iter().flatten().for_each(|depth| self.note_depth(depth));
    }

    fn note_depth(&mut self, depth: u32) {
        let [fewest, most] = self.depth.unwrap_or([depth; 2]);
        self.depth = Some([fewest.min(depth), most.max(depth)]);
    }

    fn note_time(&mut self, time: Duration) {
        self.time += time;
        self.longest = self.longest.max(time);
    }
}

/// Adds up a run as it goes.
#[derive(Default)]
pub struct ThrottlingMeter {
    totals: Throttling,
    /// By context.
    names: Vec<String>,
    asleep: Vec<(ContextId, Instant)>,
    step: i32,
}

impl ThrottlingMeter {
    /// A context is called like this from now on.
    pub fn meet(&mut self, who: ContextId, name: &str) {
        let number = who.0 as usize;
        if number >= self.names.len() {
            self.names.resize(number + 1, String::new());
        }
        self.names[number] = name.to_string();
    }

    /// Takes note of an event.
    #[inline]
    pub fn see(&mut self, event: &Event) {
        match &event.action {
            Action::Throttled { depth } => self.falls_asleep(event, *depth),
            Action::GetRequest if !self.asleep.is_empty() => self.goes_on(event.context, event.at),
            Action::Released { since } => {
                let waited = self.waited(event.context, LIMITS);
                waited.times += 1;
                waited.note_time(event.at.saturating_since(*since));
            }
            Action::Wbt(said) => self.hear(said),
            _ => {}
        }
    }

    /// The totals, at the end of the run.
    pub fn finish(mut self, end: Instant) -> Throttling {
        while let Some((who, _)) = self.asleep.first() {
            self.goes_on(*who, end);
        }
        self.totals.waited.sort_by(|a, b| b.time.cmp(&a.time).then(a.task.cmp(&b.task)));
        self.totals
    }

    #[cold]
    fn falls_asleep(&mut self, event: &Event, depth: u32) {
        self.asleep.push((event.context, event.at));
        let waited = self.waited(event.context, WRITEBACK);
        waited.times += 1;
        waited.note_depth(depth);
    }

    fn goes_on(&mut self, who: ContextId, now: Instant) {
        let Some(place) = self.asleep.iter().position(|it| it.0 == who) else { return };
        let slept = now.saturating_since(self.asleep.swap_remove(place).1);
        self.waited(who, WRITEBACK).note_time(slept);
    }

    fn waited(&mut self, who: ContextId, by: &'static str) -> &mut Waited {
        let known = self.names.get(who.0 as usize).filter(|it| !it.is_empty());
        let task = known.cloned().unwrap_or_else(|| format!("task {}", who.0));
        let all = &mut self.totals.waited;
        let place = all.iter().position(|it| it.task == task && it.by == by).unwrap_or_else(|| {
            let (time, longest) = (Duration::ZERO, Duration::ZERO);
            all.push(Waited { task, by, times: 0, time, longest, depth: None });
            all.len() - 1
        });
        &mut all[place]
    }

    #[cold]
    fn hear(&mut self, said: &WbtEvent) {
        let totals = &mut self.totals;
        match *said {
            WbtEvent::Timer { status, .. } => *totals.windows.of(status) += 1,
            WbtEvent::Latency { latency } => totals.latest_read = totals.latest_read.max(latency),
            WbtEvent::Statistics { .. } => {}
            WbtEvent::Step { step, max, .. } => {
                totals.narrowed += u64::from(step > self.step);
                totals.widened += u64::from(step < self.step);
                totals.least_depth = Some(totals.least_depth.map_or(max, |least| least.min(max)));
                self.step = step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(micros: u64, context: u32, action: Action) -> Event {
        let at = Instant::from_nanos(micros * 1000);
        Event { at, context: ContextId(context), ..Event::note(action) }
    }

    #[test]
    fn who_sleeps_waits_until_it_has_a_request_or_the_run_ends() {
        let mut meter = ThrottlingMeter::default();
        meter.meet(ContextId(1), "kworker/u9:2");
        let sleeps = |depth| Action::Throttled { depth };
        for event in [
            event(10, 1, sleeps(4)),
            event(12, 2, Action::GetRequest),
            event(20, 1, Action::GetRequest),
            event(30, 2, sleeps(2)),
            event(40, 1, sleeps(8)),
            event(41, 1, Action::GetRequest),
        ] {
            meter.see(&event);
        }
        let micros = Duration::from_micros;
        let seen = meter.finish(Instant::from_nanos(100_000));
        let [first, second] = &seen.waited[..] else { panic!("{seen:?}") };
        assert_eq!((first.task.as_str(), first.times, first.time), ("task 2", 1, micros(70)));
        assert_eq!((second.task.as_str(), second.times), ("kworker/u9:2", 2));
        assert_eq!(
            (second.time, second.longest, second.depth),
            (micros(11), micros(10), Some([4, 8]))
        );
    }

    #[test]
    fn steps_are_counted_with_what_windows_were_like() {
        let mut meter = ThrottlingMeter::default();
        let window = Duration::from_millis(100);
        let mut step = |step, max| {
            let status = if step > 0 { WbtStatus::Exceeded } else { WbtStatus::Ok };
            let latency = Duration::from_millis(80);
            let step = WbtEvent::Step { step, window, background: 1, normal: 1, max };
            for said in [
                WbtEvent::Timer { status, step: 0, in_flight: 3 },
                WbtEvent::Latency { latency },
                step,
            ] {
                meter.see(&event(0, 0, Action::Wbt(said)));
            }
        };
        step(1, 8);
        step(2, 4);
        step(0, 16);
        let seen = meter.finish(Instant::ZERO);
        assert_eq!((seen.narrowed, seen.widened, seen.least_depth), (2, 1, Some(4)));
        assert_eq!((seen.windows.exceeded, seen.windows.ok), (2, 1));
        assert_eq!(seen.latest_read, Duration::from_millis(80));
    }
}
