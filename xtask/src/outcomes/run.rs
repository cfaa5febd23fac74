//! What a recording ran, on a simulated machine.

use base::{Bytes, Duration, Instant};
use block::command::{Command, Facts, Tag};
use block::{Action, Attach, ContextId, Event};
use device::{Device, Model};
use lab::kernels::parse_kernel;
use lab::recordings::{Figure, Recording};
use machine::{ControlGroup, Host, Job, Mount, Native, Observer, Program, Setup, Task, TaskInfo};
use programs::{Line, Script};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The kernel of the recordings.
const KERNEL: &str = "4.19";
/// Schedulers that are compared.
const SCHEDULERS: [&str; 7] = ["noop", "deadline", "cfq", "mq-deadline", "none", "bfq", "kyber"];

/// Its memory without the disk, which lies in it. How much may be dirty follows it, and slowly when
/// it is set to less. Fitted to the writes a second of f-hdd-cfq-async-vs-seq.
const MEMORY: Bytes = Bytes(512 << 20);

/// What came of each seed.
pub type Runs = Vec<Vec<Figure>>;

/// Runs a recording's load with so many seeds, or says why not.
pub fn all(
    recording: &Recording,
    seeds: u64,
    record: Option<&Path>,
) -> Result<Runs, Box<dyn Error>> {
    if !SCHEDULERS.contains(&recording.scheduler.as_str()) {
        return Err(format!("{} is not modelled", recording.scheduler).into());
    }
    let model = recording.model.ok_or("no model of its disk")?;
    let model = Model::builtin(model)?;
    let mut runs = Vec::new();
    for seed in 1..=seeds {
        let tracer = Tracer::default();
        let setup = Setup { seed, ..setup(recording, &model, &tracer, seed)? };
        let mut calls = Calls::default();
        let mut counter = tracer.clone();
        let mut trace = match record.filter(|_| seed == 1) {
            Some(directory) => Some(super::trace::Writer::create(directory, &recording.name)?),
            None => None,
        };
        let mut observers: Vec<&mut dyn Observer> = vec![&mut calls, &mut counter];
        observers.extend(trace.as_mut().map(|it| it as &mut dyn Observer));
        let outcome = machine::run(setup, &mut machine::Several(observers))?;
        if let Some(trace) = trace {
            trace.finish()?;
        }
        let lines = outcome.jobs.iter().flat_map(|job| &job.messages);
        let said: Vec<Figure> = lines.filter_map(|line| Figure::of_lg(line)).collect();
        runs.push(if said.is_empty() { calls.figures(&recording.figures) } else { said });
    }
    Ok(runs)
}

fn setup(
    recording: &Recording,
    model: &Model,
    tracer: &Tracer,
    seed: u64,
) -> Result<Setup, Box<dyn Error>> {
    let kernel = parse_kernel(KERNEL, "the recordings' kernel")?;
    let attach = Attach::of(sched::build(&recording.scheduler, kernel)?);
    let facts = Facts { rotational: recording.rotational, ..model.facts().clone() };
    let device = Box::new(Told { facts, device: model.build(seed) });
    let mut jobs = jobs(&recording.command, &recording.order()?)?;
    jobs.push(tracer.job());
    let on_files = recording.command.contains("/mnt/");
    let host = Host::named("icount")?;
    let shell = host.guest.habits.shell;
    let mut setup = Setup::new(kernel, attach, device, host, jobs);
    setup.settings = recording.settings.clone();
    let group = |(path, weight): &(String, u32)| ControlGroup {
        path: path.clone(),
        weight: Some(*weight),
        ..ControlGroup::default()
    };
    setup.cgroups = recording.cgroups.iter().map(group).collect();
    let journal_cgroup = if recording.note.starts_with("jbd2 in the same") { "c1" } else { "" };
    let mount = Mount { journal_cgroup: journal_cgroup.to_string(), ..Mount::default() };
    setup.mount = on_files.then_some(mount);
    setup.preparation = Script::of(preparation(recording)?, shell);
    setup.memory = MEMORY;
    if is_writeback(recording) {
        setup.settings.push(("dirty_background_bytes".to_string(), 16 << 20));
        setup.settings.push(("dirty_bytes".to_string(), 64 << 20));
    }
    setup.events = true;
    setup.messages = true;
    Ok(setup)
}

/// The jobs of a command line: `lg …`, `fio … | grep …`, or shells that enter a control group and
/// start dd.
fn jobs(command: &str, order: &[usize]) -> Result<Vec<Job>, Box<dyn Error>> {
    const SHELL: &str = "sh -c 'echo $$ > /cg/blkio/";
    let mut jobs = Vec::new();
    let parts: Vec<&str> = match command.starts_with(SHELL) {
        true => command.split(SHELL).skip(1).collect(),
        false => vec![command.split(" | ").next().unwrap_or_default()],
    };
    for part in parts {
        let (cgroup, line) = match part.split_once("/cgroup.procs; exec g") {
            Some((cgroup, rest)) => (cgroup, rest.split('\'').next().unwrap_or_default()),
            None => ("", part),
        };
        let order: Vec<String> = order.iter().map(|it| it.to_string()).collect();
        let line = match line.strip_prefix("lg ") {
            Some(rest) if !order.is_empty() => format!("lg --order={} {rest}", order.join(",")),
            _ => line.to_string(),
        };
        let program = programs::parse(&line)?.program;
        let cgroup = cgroup.trim_start_matches('.');
        jobs.push(job(&format!("dd.{}", jobs.len()), program, cgroup));
    }
    Ok(jobs)
}

fn job(name: &str, program: Arc<dyn Program>, cgroup: &str) -> Job {
    Job { cgroup: cgroup.to_string(), ..Job::new(name, program) }
}

/// Whether it is of the series of buffered writers, for which less may be dirty: 16 MiB before the
/// flusher begins, 64 MiB at most.
fn is_writeback(recording: &Recording) -> bool {
    recording.name.starts_with("f-") && recording.command.contains("w.dat")
}

/// The files that were there before, with their sizes in MiB as the traces show them.
fn preparation(recording: &Recording) -> Result<Vec<Line>, Box<dyn Error>> {
    let files: &[(&str, u32)] = match recording.name.split('-').next() {
        Some("d") => &[("r.dat", 400), ("w.dat", 128), ("s.dat", 128)],
        Some("f") if recording.command.contains("/mnt/") => &[("r.dat", 300), ("w.dat", 300)],
        _ => return Ok(Vec::new()),
    };
    let make = |(name, size): &(&str, u32)| {
        format!("dd if=/dev/zero of=/mnt/{name} bs=1M count={size} conv=fsync")
    };
    let mut lines: Vec<String> = files.iter().map(make).collect();
    if is_writeback(recording) {
        // Others of the series wrote before: limits and estimates of the page cache are theirs.
        let writer = "lg name=wr,file=/mnt/w.dat,rw=write,bs=64k,size=300m,loop=1,direct=0";
        let made: u64 = files.iter().map(|(_, size)| u64::from(*size) << 11).sum();
        let blocks = recording.written.saturating_sub(made) / 128;
        lines.push(format!("{writer},n={blocks}"));
        lines.push("sync".to_string());
    }
    let line = |text: String| Ok(Line { program: programs::parse(&text)?.program, text });
    lines.into_iter().map(line).collect()
}

/// The program that fetches what is traced. Whenever a buffer of 512 KiB is full it computes, so
/// that nobody else does. It does more the first time.
#[derive(Clone, Default)]
struct Tracer {
    /// Bytes that were traced.
    written: Arc<AtomicU64>,
}

impl Tracer {
    const RECORD: u64 = 48;
    const BUFFER: u64 = 512 << 10;
    /// h-fast-deadline-seq4: gaps of 1.5 and 3.2 ms at records 10,921 and 10,936; 5.1 ms at record
    /// 10,921 of b-fast-deadline-n3-direct.
    const FIRST: Duration = Duration::from_micros(4_900);
    /// From its first to its last record at the second and third buffer: 500 and 501 us in
    /// f-fast-cfq-slice_idle0-seeky8-qd1, 503 and 502 in f-fast-cfq-seeky8-qd1.
    const FURTHER: Duration = Duration::from_micros(500);
    /// How soon it sees that a buffer is full, at most: it is there 14 to 1,500 bytes behind the
    /// end of a buffer, in recordings of five to ten bytes a microsecond.
    const SOON: Duration = Duration::from_micros(100);
    /// How long it looks away where little is traced. Ours, so assumed: it costs two
    /// switches.
    const AWAY: Duration = Duration::from_millis(20);

    fn job(&self) -> Job {
        let tracer = self.clone();
        let program = Native::new("blktrace", move |task| {
            let tracer = tracer.clone();
            async move {
                let begun = task.now();
                for buffer in 1.. {
                    tracer.wait_for(buffer, begun, &task).await;
                    task.compute(if buffer == 1 { Tracer::FIRST } else { Tracer::FURTHER }).await;
                }
                0
            }
        });
        Job { background: true, ..job("blktrace", program, "") }
    }

    /// Sleeps until so many buffers are full: looks when half of what is missing may be there.
    async fn wait_for(&self, buffers: u64, begun: Instant, task: &Task) {
        let mut rng = task.rng(&format!("blktrace/{buffers}"));
        loop {
            let written = self.written.load(Ordering::Relaxed);
            let Some(left) = (buffers * Tracer::BUFFER).checked_sub(written).filter(|it| *it > 0)
            else {
                return;
            };
            let elapsed = task.now().since(begun).as_nanos();
            let half = u128::from(elapsed) * u128::from(left) / u128::from(2 * written.max(1));
            let half = half.min(u128::from(Tracer::AWAY.as_nanos())) as u64;
            let soon = 1 + rng.below(Tracer::SOON.as_nanos());
            task.sleep(Duration::from_nanos(half.max(soon))).await;
        }
    }
}

impl Observer for Tracer {
    fn see(&mut self, event: &Event) {
        let bytes = match &event.action {
            Action::Message { text, .. } => Tracer::RECORD + text.len() as u64,
            Action::Queue
            | Action::Split { .. }
            | Action::BackMerge
            | Action::FrontMerge
            | Action::GetRequest
            | Action::Sleep
            | Action::Plug
            | Action::Insert
            | Action::Issue
            | Action::Requeue
            | Action::Complete { .. } => Tracer::RECORD,
            // With the number of requests.
            Action::Unplug { .. } | Action::TimerUnplug { .. } => Tracer::RECORD + 8,
            _ => 0,
        };
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// A disk of which the kernel was told something else.
struct Told {
    facts: Facts,
    device: Box<dyn Device>,
}

impl Device for Told {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.device.accept(now, command);
    }

    fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        self.device.advance(now, completed);
    }
}

/// Counts the calls of each task, for programs that do not say themselves what they saw.
#[derive(Default)]
struct Calls {
    names: BTreeMap<ContextId, String>,
    seen: BTreeMap<String, Seen>,
}

struct Seen {
    calls: u64,
    latencies: Duration,
    first: Instant,
    last: Instant,
}

impl Observer for Calls {
    fn meet(&mut self, who: &TaskInfo) {
        self.names.insert(who.context, who.name.clone());
    }

    fn see(&mut self, event: &Event) {
        let Action::SyscallExit { entered, .. } = event.action else { return };
        let Some(name) = self.names.get(&event.context) else { return };
        let new = Seen { calls: 0, latencies: Duration::ZERO, first: entered, last: event.at };
        let seen = self.seen.entry(name.clone()).or_insert(new);
        seen.calls += 1;
        seen.latencies += event.at.since(entered);
        seen.last = event.at;
    }
}

impl Calls {
    /// The figures of the jobs that the recording has. dd reports its time, not its calls'.
    fn figures(&self, recorded: &[Figure]) -> Vec<Figure> {
        let of = |figure: &Figure| {
            let seen = self.seen.get(&figure.name)?;
            let elapsed = seen.last.since(seen.first).as_nanos() as f64 / 1e3;
            let rate = seen.calls as f64 * 1e6 / elapsed;
            let latency = match figure.name.starts_with("dd.") {
                true => 1e6 / rate,
                false => seen.latencies.as_nanos() as f64 / 1e3 / seen.calls as f64,
            };
            let name = figure.name.clone();
            Some(Figure { name, rate, calls: seen.calls, latency, ..Figure::default() })
        };
        recorded.iter().filter_map(of).collect()
    }
}
