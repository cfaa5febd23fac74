//! Small recordings of runs of the queue.

use super::*;
use crate::setup::Options;
use block::Ioprio;
use lab::recording::Recording;
use lab::recording::manifest::Manifest;
use trace::blktrace::{Action, Categories, Payload, Record, runs};

/// A virtio disk of 6.12 that may have so many requests.
fn manifest(queue_depth: u32, more: &str) -> Manifest {
    let text = format!(
        "kernel: 6.12\nhz: 250\ntransport: virtio\nqueue_depth: {queue_depth}\n\
         hardware_queues: 1\nqueue/nr_requests: 64\nqueue/scheduler: [mq-deadline]\n{more}"
    );
    Manifest::parse(&text, "m").unwrap()
}

/// A step that concerns no certain request.
pub(super) fn step(nanos: u64, task: u32, what: What) -> Step {
    let at = Instant::ZERO + Duration::from_nanos(nanos);
    Step { at, task: ContextId(task), rq: 0, what }
}

/// Records of lines `TASK ACTIONS OPERATION SECTOR+SECTORS`, with the class of priority behind an
/// insertion, 256 ns apart; `@MILLIS` in a line of its own is a pause until then. The letters `w`,
/// `b` and `s` are messages of runs: wanted, begins, sleeps.
fn recording(manifest: Manifest, lines: &str) -> Recording {
    let (mut now, mut records, mut priorities) = (1_000_000_000, Vec::new(), Vec::new());
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(millis) = line.strip_prefix('@') {
            now = millis.parse::<u64>().unwrap() * 1_000_000;
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let (sector, sectors) = words[3].split_once('+').unwrap();
        let is_write = if words[2] == "W" { Categories::WRITE } else { Categories::READ };
        for letter in words[1].chars() {
            now += 256;
            let said = match letter {
                'w' => Some(runs::WANTED),
                'b' => Some(runs::BEGINS),
                's' => Some(runs::SLEEPS),
                _ => None,
            };
            if let Some(said) = said {
                let (at, pid) = (Instant::from_nanos(now), words[0].parse().unwrap());
                records.push(Record { pid, ..Record::message(at, said) });
                continue;
            }
            let action = match letter {
                'Q' => Action::Queue,
                'G' => Action::GetRequest,
                'P' => Action::Plug,
                'U' => Action::Unplug,
                'I' => Action::Insert,
                'M' => Action::BackMerge,
                'D' => Action::Issue,
                _ => Action::Complete,
            };
            let class: u16 = words.get(4).map_or(2, |class| class.parse().unwrap());
            priorities.extend((letter == 'I').then(|| Ioprio::from_bits(class << 13)));
            let payload = if letter == 'U' { Payload::Unplug(1) } else { Payload::None };
            let (pid, bytes) = (words[0].parse().unwrap(), sectors.parse::<u32>().unwrap() * 512);
            let sector = Sector(sector.parse().unwrap());
            let at = Instant::from_nanos(now);
            let record = Record { sector, bytes, pid, payload, ..Record::event(action, at) };
            records.push(record.with(is_write));
        }
    }
    Recording { records, priorities, manifest, ..Recording::default() }
}

/// What the kernel issued, by sector, and whether ours agrees.
fn judged(recording: &Recording) -> Vec<(u64, bool)> {
    judged_assuming(recording, &Assumed::default())
}

fn judged_assuming(recording: &Recording, assumed: &Assumed) -> Vec<(u64, bool)> {
    let setup = Setup::new(&recording.manifest, &Options::default(), "m").unwrap();
    let history = History::read(setup.era(), recording, Instant::ZERO);
    assert_eq!(history.unmatched, 0);
    let outcome = replay(&history, &setup, Duration::ZERO, Until::End, assumed);
    let sector = |it: &Decision| history.requests[it.kernel].bio.sector.0;
    outcome.decisions.iter().map(|it| (sector(it), it.agrees())).collect()
}

/// Who issues the first of two requests leaves the other with the scheduler: a request of real
/// time that came later goes first.
fn left_by(issuer: u32) -> Vec<(u64, bool)> {
    let lines = format!(
        "7 QGPI W 800+8
         7 QGI W 900+8
         7 U W 0+0
         {issuer} D W 800+8
         8 QGPUI R 100+8 1
         0 C W 800+8
         20 D R 100+8
         0 C R 100+8
         20 D W 900+8
         0 C W 900+8"
    );
    judged(&recording(manifest(1, ""), &lines))
}

#[test]
fn a_task_may_leave_the_rest_of_its_run_to_a_worker() {
    assert_eq!(left_by(7), [(800, true), (100, true), (900, true)]);
    let by_worker = left_by(20);
    assert_eq!(by_worker[1], (100, false), "a worker has parked the other: {by_worker:?}");
}

#[test]
fn after_a_list_was_issued_the_scheduler_is_asked_once_more() {
    // While best effort is in flight, idle requests wait. Each look at them counts that the write
    // was passed over: when the second read of best effort is chosen, when its list ends, and then
    // it is no more.
    let lines = "7 QGPUI R 5000+8
                 7 D R 5000+8
                 8 QGPUI W 800+8 3
                 @1005
                 9 QGPUI R 100+8 3
                 7 QGPUI R 6000+8
                 7 D R 6000+8
                 7 D W 800+8
                 0 C R 5000+8
                 0 C R 6000+8
                 0 C W 800+8
                 20 D R 100+8
                 0 C R 100+8";
    let more = "iosched/prio_aging_expire: 4\niosched/fifo_batch: 0\niosched/writes_starved: 3";
    let judged = judged(&recording(manifest(31, more), lines));
    assert_eq!(judged, [(5000, true), (6000, true), (800, true), (100, true)]);
}

#[test]
fn a_plug_that_is_full_is_flushed_and_the_queue_run_before_what_comes_then() {
    // The first request is parked with nothing behind it. So the next batch begins with the oldest.
    let lists = |between: &str| {
        let lines = format!(
            "7 QGPUI R 100+8
             7 D R 100+8
             8 QGP R 200+8
             8 QG R 500+8
             8 QG R 400+8
             8 U R 0+0
             8 I R 200+8
             {between}
             8 I R 500+8
             8 I R 400+8
             @1006
             0 C R 100+8
             20 D R 200+8
             0 C R 200+8
             20 D R 500+8
             0 C R 500+8
             20 D R 400+8"
        );
        let mut manifest = manifest(1, "");
        manifest.kernel = Some("6.1".into());
        judged(&recording(manifest, &lines)).iter().all(|it| it.1)
    };
    assert!(lists("8 PU R 0+0"));
    assert!(!lists(""), "one list, and one run behind it");
}

#[test]
fn a_worker_may_have_the_core_before_the_task_that_wakes_it_goes_on() {
    // Its run parks the write before the read is there, which else would go first.
    let lines = "7 QGPUI R 5000+8
                 7 D R 5000+8
                 8 QGI W 100+8
                 8 QGI R 200+8
                 @1005
                 0 C R 5000+8
                 20 D W 100+8
                 0 C W 100+8
                 20 D R 200+8";
    let recording = recording(manifest(1, ""), lines);
    assert_eq!(judged(&recording)[1], (100, false), "it waits for the task");
    // From the second bio of the task on.
    let goes_first = BTreeMap::from([(5, true)]);
    let assumed = Assumed { goes_first, ..Assumed::default() };
    assert_eq!(judged_assuming(&recording, &assumed)[1..], [(100, true), (200, true)]);
}

#[test]
fn who_issues_before_it_sleeps_for_a_tag_has_parked_nothing() {
    // While a request of real time is in flight, best effort is withheld. Task 7 finds no tag and
    // issues what it inserted. The completion then has the queue run by nobody.
    let lines = "7 QGPUI R 5000+8 1
                 7 D R 5000+8
                 8 QGPUI R 100+8
                 7 QGI R 6000+8 1
                 7 Q R 7000+8
                 7 D R 6000+8
                 @1001
                 0 C R 6000+8
                 7 GI R 7000+8 1
                 20 D R 7000+8";
    let recording = recording(manifest(4, ""), lines);
    let setup = Setup::new(&recording.manifest, &Options::default(), "m").unwrap();
    let history = History::read(setup.era(), &recording, Instant::ZERO);
    let outcome = replay(&history, &setup, Duration::ZERO, Until::End, &Assumed::default());
    assert!(outcome.decisions.iter().all(Decision::agrees));
    // One more, at the completion, if it were taken to have been parked.
    assert_eq!((outcome.withheld, outcome.both_withheld), (5, 5));
}

#[test]
fn what_messages_tell_of_runs_is_not_guessed() {
    // The write is there before the read. Whether a worker parks it depends on when it ran.
    let lines = |between: &str, first: &str, second: &str| {
        format!(
            "7 QGPUI R 5000+8
             7 D R 5000+8
             8 QGI W 100+8
             8 w W 0+0
             {between}
             8 QGI R 200+8
             20 b R 0+0
             @1005
             0 C R 5000+8
             20 bD {first}
             0 C {first}
             20 bD {second}"
        )
    };
    let all = |lines: String| judged(&recording(manifest(1, ""), &lines)).iter().all(|it| it.1);
    let (write, read) = ("W 100+8", "R 200+8");
    assert!(all(lines("20 b W 0+0", write, read)));
    assert!(all(lines("", read, write)));
    assert!(!all(lines("", write, read)) && !all(lines("20 b W 0+0", read, write)));
}

#[test]
fn a_task_runs_the_queue_before_it_sleeps_and_whenever_it_is_woken() {
    // Each run in vain counts that the idle write was passed over: when the read of best effort
    // was inserted, before its task sleeps twice, and when it gets its tag.
    let lines = |sleeps: &str| {
        format!(
            "7 QGPUI R 5000+8
             7 D R 5000+8
             7 b R 0+0
             8 QGPUI W 800+8 3
             9 QGPUI R 100+8 3
             @1010
             8 Q R 900+8
             8 {sleeps} R 0+0
             8 GI R 900+8 3
             0 C R 5000+8
             20 bD W 800+8
             0 C W 800+8"
        )
    };
    let more = "iosched/prio_aging_expire: 10000\niosched/fifo_batch: 0\niosched/writes_starved: ";
    let withheld = |sleeps| {
        let manifest = manifest(31, &format!("{more}3"));
        let recording = recording(manifest, &lines(sleeps));
        let setup = Setup::new(&recording.manifest, &Options::default(), "m").unwrap();
        let history = History::read(setup.era(), &recording, Instant::ZERO);
        replay(&history, &setup, Duration::ZERO, Until::End, &Assumed::default()).withheld
    };
    assert_eq!(withheld("ss"), withheld("s") + 1);
}
