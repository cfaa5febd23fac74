//! The device itself has the time, or the host.

use super::others::{bully, busiest_other, busiest_writer, moved, write_through};
use crate::explain::account::{Caller, Part};
use crate::explain::case::{BACK_TO_BACK, Case, time, waits};
use crate::explain::finding::{Change, Finding, Remedy, Weight};
use crate::metrics::CallKind;
use base::Duration;
use block::Stage;
use insight::Layer;

/// Reads of fewer bytes than this are short for who reads in sequence.
const SHORT: u64 = 16 << 10;
/// Who is with the device among others for this part of its time is slowed down by them.
const SHARED: f64 = 0.4;
/// From this part on the device has the time.
const MOST: f64 = 0.6;
/// Who waits so many times the median is held up, however seldom.
const TIMES: u64 = 20;
/// Who has so many calls under way means them to be served at once.
const AT_ONCE: f64 = 4.0;
/// The disk has so many times fewer commands than there are calls, if they come one by one.
const FEWER: f64 = 3.0;
/// Who makes so many times fewer calls than another has seldom to do with it.
const SELDOM: u64 = 20;
/// So many commands at a time, in thousandths, are hardly ever more than one.
const ALONE: u64 = 1500;
/// So many are one at a time.
const BARELY_ONE: u64 = 1100;
/// So many calls under way are more than one.
const TWO: f64 = 1.5;
/// Of fewer calls nobody says how they should be made.
const FEW: u64 = 100;
/// A call of so many bytes is long.
const SHORT_CALL: u64 = 256 << 10;
/// So many flushes make a rate.
const MANY: u64 = 20;
/// A discard that is soon done, in bytes.
const SMALL_DISCARD: i64 = 4 << 20;
/// Whose requests are with the device for less than this has little to do with it.
const LEAST: f64 = 0.05;
/// The nice value of who is to compute when nobody else does.
const NICEST: i8 = 19;
/// A request that is with the device for so long starves in it.
const STARVES: Duration = Duration::from_millis(500);

pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings = Vec::new();
    for caller in case.callers {
        findings.extend(starved(case, caller));
        findings.extend(shared(case, caller));
        findings.extend(streams(case, caller));
        findings.extend(growing(case, caller).or_else(|| one_by_one(case, caller)));
        findings.extend(partial(case, caller));
        findings.extend(flushes(case, caller));
        findings.extend(depth(case, caller));
        findings.extend(readahead(case, caller));
        findings.extend(discards(case, caller));
        findings.extend(cost(case, caller));
        findings.extend(host(case, caller));
        findings.extend(holds_the_time(case, caller));
    }
    findings
}

/// The drive has the commands of somebody else as well, and takes them in its own order.
fn shared(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_other = |name: &String| !case.is_kernel(name) || case.is_flusher(name);
    let is_about = |it: &Part| is_shared(caller, it) && it.behind.as_ref().is_some_and(is_other);
    let mut found = case.finding("device-shared", caller, is_about)?;
    let by_flusher = found.culprit.as_ref().is_some_and(|it| case.is_flusher(it));
    let writer = busiest_writer(case, caller).filter(|_| by_flusher);
    let other = writer.or(bully(case, caller));
    if found.share < SHARED || other.is_none() {
        found.weight = Weight::Note;
    }
    found.culprit = other.or(found.culprit);
    let trims = |it: &Caller| it.kind == CallKind::Trim && Some(&it.job) == found.culprit.as_ref();
    if case.callers.iter().any(trims) {
        // What is said of discards says it better.
        return None;
    }
    found.title = format!(
        "requests of {} are with the drive among those of {}",
        caller.job,
        found.culprit.as_deref().unwrap_or("others")
    );
    found.mechanism = "The scheduler gives the drive all it takes. There requests of all stand in \
        one queue, where no scheduler, weight or priority reaches them.";
    let parts = caller.parts.iter().filter(|it| is_about(it));
    let admitted = parts.filter_map(|it| it.stages.get(&Stage::Budget));
    let waits = admitted.fold(Duration::ZERO, |sum, it| sum + *it);
    if waits * 2 > found.cost {
        found.title = format!(
            "{} uses up the rate of the volume, and {} waits",
            found.culprit.as_deref().unwrap_or("another job"),
            caller.job
        );
        found.mechanism = "The volume admits so many commands or bytes a second, whoever they are \
            of. What one takes beyond its part is taken from the others.";
    }
    found.remedies = case.fair_schedulers();
    found.remedies.extend(case.other_schedulers(&["kyber"]));
    found.remedies.extend(case.one_at_a_time());
    Some(found)
}

/// Whether a request was with the device together with those of another job.
fn is_shared(caller: &Caller, part: &Part) -> bool {
    part.layer == Layer::Shared && part.behind.as_ref() != Some(&caller.job)
}

/// Calls that are to be under way at once reach the disk one after the other.
fn one_by_one(case: &Case, caller: &Caller) -> Option<Finding> {
    case.row()?;
    let asked = case.asked_at_once(caller);
    // Who is served one by one has no more commands than calls under way.
    let (at_once, depth) = match asked >= FEWER * caller.at_once() {
        true => (asked, caller.at_once()),
        false => (caller.at_once(), case.mean_depth() as f64 / 1000.0),
    };
    let is_about = |it: &Part| matches!(it.layer, Layer::Device | Layer::Shared);
    if at_once < AT_ONCE || depth * FEWER > at_once {
        return None;
    }
    let is_asynchronous = case.job_is_asynchronous(&caller.job);
    let mut found = case.finding("one-by-one", caller, is_about).filter(|_| is_asynchronous)?;
    if found.share < MOST {
        return None;
    }
    found.weight = Weight::Cause;
    found.culprit = None;
    found.title = one_by_one_title(caller, at_once, depth);
    found.mechanism = "The calls are asynchronous by name only. Through the page cache one read \
        waits for the other (io_submit), and posixaio has one thread for each file.";
    found.remedies.push(Remedy::told("O_DIRECT (direct=1) with libaio or io_uring"));
    found.remedies.push(Remedy::told("several threads or processes (numjobs)"));
    Some(found)
}

/// Direct writes that make a file longer are done one after the other, however many are asked for.
fn growing(case: &Case, caller: &Caller) -> Option<Finding> {
    case.row()?.mount.as_ref()?;
    let (at_once, depth) = (caller.at_once(), case.mean_depth());
    let is_it = caller.kind == CallKind::Write && case.submits_directly(&caller.job);
    if !is_it || at_once < TWO || depth > BARELY_ONE {
        return None;
    }
    let is_about = |it: &Part| matches!(it.layer, Layer::Device | Layer::Shared);
    let mut found = case.finding("one-by-one", caller, is_about).filter(|it| it.share >= MOST)?;
    // That the file grows is a guess until it is tried.
    found.suspect();
    found.culprit = None;
    found.title = one_by_one_title(caller, at_once, depth as f64 / 1000.0);
    found.mechanism = "The calls are asynchronous by name only. A direct write beyond the end of a \
        file changes its size, and is done before io_submit returns. Writes to what the file has \
        already are under way together.";
    found.remedies.push(Remedy::tried(
        format!("write the files of {} as a whole before", caller.job),
        Change::Written(caller.job.clone()),
    ));
    found.remedies.push(Remedy::told("give the file its size before (fallocate -l, truncate -s)"));
    Some(found)
}

fn one_by_one_title(caller: &Caller, at_once: f64, depth: f64) -> String {
    format!(
        "{} has {at_once:.0} {}s under way at once, and the disk {depth:.1} commands",
        caller.job,
        caller.kind.name()
    )
}

/// A write that covers a part of a page reads the page first.
fn partial(case: &Case, caller: &Caller) -> Option<Finding> {
    case.row()?;
    let is_it = caller.kind == CallKind::Write && !case.is_direct(&caller.job);
    if !is_it || caller.reading() < SHARED {
        return None;
    }
    // Not what somebody reads who has a lock meanwhile.
    let is_about = |it: &Part| it.reading > it.locked;
    let mut found = case.finding("partial-writes", caller, is_about)?;
    found.weight = Weight::Cause;
    found.culprit = None;
    if case.maps(&caller.job) {
        found.title = format!("stores of {} wait until their pages have been read", caller.job);
        found.mechanism = "A store to a page of a mapped file that is not in memory is a fault, \
            which reads the page first, however much of it is then written.";
        found.remedies.push(Remedy::told("read the file before, so that its pages are in memory"));
        found.weight = Weight::Note;
        return Some(found);
    }
    if case.writes_whole_pages(&caller.job) {
        return None;
    }
    found.title = format!("writes of {} read first what they do not cover", caller.job);
    found.mechanism = "A write through the page cache that covers a part of a page or block needs \
        the rest of it, and waits until that is read.";
    found.remedies.push(Remedy::told("write whole blocks of 4 KiB, at places that they divide"));
    found.remedies.push(Remedy::told("read the file before, so that its pages are in memory"));
    Some(found)
}

/// A disk that turns goes from one reader to the next and back.
fn streams(case: &Case, caller: &Caller) -> Option<Finding> {
    let disk = &case.result()?.disk;
    let readers = case.callers.iter().filter(|it| it.kind == CallKind::Read).count();
    let seeks = 2 * disk.sequential < disk.commands;
    if !case.turns() || caller.kind != CallKind::Read || readers < 2 || !seeks {
        return None;
    }
    let is_about = |it: &Part| waits(it.layer) || matches!(it.layer, Layer::Device | Layer::Shared);
    let mut found = case.finding("streams-interleaved", caller, is_about)?;
    found.suspect();
    found.culprit = busiest_other(case, caller);
    // Who waits little of the time has what it wants, and who comes seldom makes few seeks.
    let other = case.callers.iter().filter(|it| Some(&it.job) == found.culprit.as_ref());
    let others = other.map(|it| it.calls).max().unwrap_or(0);
    let comes_seldom = others > SELDOM * caller.calls || others_come_seldom(case, caller);
    if found.passes * 4 < caller.active || comes_seldom {
        return None;
    }
    found.title = format!(
        "the disk seeks between {} and {} at each request",
        caller.job,
        found.culprit.as_deref().unwrap_or("others")
    );
    found.mechanism = "Requests of one lie far from those of another, and the heads move there and \
        back. They move less if each has the disk for a while.";
    found.remedies = case.other_schedulers(&["cfq", "bfq", "anticipatory"]);
    found.remedies.extend(case.setting("read_ahead_kb", 1024));
    Some(found)
}

/// Whether reads of all others are few that wait for the device, beside those of this one.
fn others_come_seldom(case: &Case, caller: &Caller) -> bool {
    let served = |it: &Caller| -> u64 {
        let is_device = |part: &&Part| matches!(part.layer, Layer::Device | Layer::Shared);
        let own = it.parts.iter().filter(is_device).filter(|part| part.who == it.job);
        own.map(|part| part.calls).max().unwrap_or(0)
    };
    let is_other = |it: &&Caller| it.job != caller.job && it.kind == CallKind::Read;
    let others: u64 = case.callers.iter().filter(is_other).map(served).sum();
    others * SELDOM < served(caller)
}

/// Report 4: whatever the scheduler does, the device has the time.
fn holds_the_time(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| {
        matches!(it.layer, Layer::Device | Layer::Flush | Layer::Shared) && !is_shared(caller, it)
    };
    let mut found = case.finding("device-bound", caller, is_about)?;
    let waiting = caller.share(|it| waits(it.layer) || is_shared(caller, it));
    if found.share < MOST || waiting > 0.1 {
        return None;
    }
    found.weight = Weight::Note;
    found.title = format!(
        "the device has {:.0} % of the time of {}; no scheduler changes that",
        100.0 * found.share,
        caller.job
    );
    found.evidence.push(format!("waiting for it takes {:.1} %", 100.0 * waiting));
    found.mechanism = "A request is with the device as soon as it is there, so there is nothing \
        to choose from. Only a faster device, fewer or other requests make it shorter.";
    let takes_more = case.depth() > 1 && !case.turns();
    // Who pauses between calls is as fast as it wants to be.
    let makes_the_next = (BACK_TO_BACK..TWO).contains(&caller.at_once());
    let is_alone = takes_more && case.mean_depth() < ALONE && makes_the_next;
    if is_alone && case.row().is_some() && caller.calls > FEW {
        say_one_at_a_time(case, caller, &mut found);
    }
    Some(found)
}

/// Says that the device could serve more than one call at a time.
fn say_one_at_a_time(case: &Case, caller: &Caller, found: &mut Finding) {
    let kind = caller.kind.name();
    found.title = format!(
        "{} has one {kind} under way at a time, and the device could serve more",
        caller.job
    );
    found.mechanism = "Each call waits until the one before is done, and the device hardly ever \
        has two. With several under way, or longer ones, it moves more in the same time.";
    found.remedies.push(Remedy::told(
        "several calls at once: threads, or a queue (iodepth=8 with libaio or io_uring)",
    ));
    let mean = moved(case, &caller.job, |it| it == caller.kind) / caller.calls;
    if mean < SHORT_CALL {
        let told = format!("calls longer than {} KiB, if they follow each other", mean >> 10);
        found.remedies.push(Remedy::told(told));
    }
}

/// A request is with the device for very long while others are served.
fn starved(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_device = |layer| matches!(layer, Layer::Device | Layer::Shared);
    let is_about = |it: &Part| is_device(it.layer) && it.passed_over >= STARVES;
    if case.depth() < 2 || case.mean_depth() < 2000 {
        return None;
    }
    let mut found = case.finding("starved-in-the-drive", caller, is_about)?;
    found.weight = Weight::Cause;
    let worst = caller.parts.iter().filter(|it| is_about(it)).max_by_key(|it| it.passed_over)?;
    let long = time(worst.passed_over);
    found.title = format!("a request of {} waits for its turn in the drive for {long}", worst.who);
    if worst.who != caller.job {
        found.title.push_str(&format!(", and {} waits for it", caller.job));
    }
    found.culprit = busiest_other(case, caller);
    found.mechanism = "The drive has several commands and takes those that lie near. What lies far \
        waits until nothing is nearer, and no scheduler can change that any more.";
    found.remedies.extend(case.one_at_a_time());
    Some(found)
}

/// The device flushes its cache most of the time.
fn flushes(case: &Case, caller: &Caller) -> Option<Finding> {
    if caller.kind == CallKind::Read {
        return None;
    }
    let mut found = case.finding("flushes", caller, |it| it.layer == Layer::Flush)?;
    let rate = case.flush_rate();
    let writer = busiest_writer(case, caller);
    let other = bully(case, caller);
    // A rate is of many, and one sync is what somebody wants.
    let is_often = rate > 50.0 && case.flushes() >= MANY;
    let is_storm = found.share > 0.5 && (is_often || (writer.is_some() && caller.calls > 1));
    found.weight = if is_storm { Weight::Cause } else { Weight::Note };
    found.is_rare = !is_often && case.is_minor(&found);
    let often = format!("the disk flushes its cache {rate:.0} times a second");
    found.title = match (&writer, &other) {
        (Some(writer), _) => {
            format!("flushes for {} write out what {writer} has in the disk's cache", caller.job)
        }
        (None, Some(other)) => {
            format!("flushes for {} are with the disk among requests of {other}", caller.job)
        }
        (None, None) => often.clone(),
    };
    let commits = commits_itself(caller);
    let each = match commits {
        true => format!("each {} of {} commits the journal: ", caller.kind.name(), caller.job),
        false => String::new(),
    };
    found.acquitted = Some(format!("{each}{often}"));
    found.title.insert_str(0, &each);
    if commits {
        found.remedies.push(Remedy::tried(
            format!("write the files of {} as a whole before (dd conv=notrunc)", caller.job),
            Change::Written(caller.job.clone()),
        ));
        found.evidence.push(format!("{} commits were asked for by {}", asked(caller), caller.job));
    }
    if writer.is_none() && other.is_some() && !is_storm {
        found.suspect();
        found.remedies.extend(case.one_at_a_time());
    }
    found.culprit = writer.or(other);
    found.mechanism = match commits {
        true => {
            "Where a file grows, or is written for the first time where fallocate or a hole gave \
             it nothing but room, its size or its blocks change, and a sync needs a commit of the \
             journal, with a flush. Over blocks that hold data a sync needs none."
        }
        false => {
            "Each fsync, and each commit of the journal, has the device write out its cache. All \
             who are in the same commit share one flush; who comes later needs another."
        }
    };
    found
        .remedies
        .push(Remedy::told("commit more at once: fewer calls of fsync, fdatasync, O_DSYNC"));
    found.remedies.push(write_through(case));
    Some(found)
}

/// Whether most calls have a commit made, for changes of their own.
fn commits_itself(caller: &Caller) -> bool {
    caller.calls < 2 * asked(caller) && caller.commits.handles.contains_key(&caller.job)
}

/// How many commits a caller asked for that its calls waited for.
fn asked(caller: &Caller) -> u64 {
    caller.commits.asked_by.get(&Some(caller.job.clone())).copied().unwrap_or_default()
}

/// The device takes fewer commands than it could serve.
fn depth(case: &Case, caller: &Caller) -> Option<Finding> {
    let depth = case.depth();
    let could_more = case.row()?.model.facts().queue_depth > 2 * depth;
    if depth > 2 || !could_more {
        return None;
    }
    let is_about = |it: &Part| matches!(it.layer, Layer::Full | Layer::Others | Layer::Tag);
    let mut found = case.finding("queue-depth", caller, is_about)?;
    let commands = if depth == 1 { "command" } else { "commands" };
    found.title = format!("the disk is given {depth} {commands} at a time, and takes more");
    found.mechanism = "A disk with a queue orders its commands, or serves several at once. With \
        one at a time it does neither.";
    found.remedies.extend(case.commands_at_a_time(32).map(Remedy::told));
    Some(found)
}

/// Reads in sequence wait for each window.
fn readahead(case: &Case, caller: &Caller) -> Option<Finding> {
    let window = case.value("read_ahead_kb")?;
    let disk = &case.result()?.disk;
    let mean = disk.read_bytes.0 / disk.reads.max(1);
    let in_sequence =
        disk.sequential * 2 > disk.commands && case.goes_in_sequence(&caller.job) != Some(false);
    if in_sequence && mean <= SHORT && case.advises_random(&caller.job) {
        return unasked(case, caller, mean);
    }
    let is_by_window = mean <= (window.max(4) as u64) << 10 && mean * 2 > (window as u64) << 10;
    if caller.kind != CallKind::Read || !in_sequence || !is_by_window {
        return None;
    }
    let is_about = |it: &Part| matches!(it.layer, Layer::Device | Layer::Shared | Layer::Page);
    let mut found = case.finding("readahead", caller, is_about)?;
    found.suspect();
    found.title = format!("{} reads ahead {window} KiB at a time", caller.job);
    found.evidence.push(format!("reads of {} KiB on average", mean >> 10));
    found.mechanism = "A reader in sequence waits for each window that was not asked for early \
        enough. Longer windows are fewer commands, with more under way meanwhile.";
    found.remedies = case.setting("read_ahead_kb", window.max(64) * 4).into_iter().collect();
    Some(found)
}

/// A program reads in sequence, and has said that it would not.
fn unasked(case: &Case, caller: &Caller, mean: u64) -> Option<Finding> {
    let is_about = |it: &Part| matches!(it.layer, Layer::Device | Layer::Shared | Layer::Page);
    let mut found =
        case.finding("readahead", caller, is_about).filter(|_| caller.kind == CallKind::Read)?;
    found.title = format!("{} reads in sequence, and nothing is read ahead for it", caller.job);
    found.evidence.push(format!("reads of {} KiB on average", mean >> 10));
    found.mechanism = "The program says that it reads here and there (POSIX_FADV_RANDOM). The \
        kernel believes that, and reads what each call asks for, one after the other.";
    found.remedies.push(Remedy::told("leave POSIX_FADV_RANDOM away (fio: fadvise_hint=1)"));
    found.remedies.push(Remedy::told("longer calls"));
    Some(found)
}

/// Discards keep the device busy.
fn discards(case: &Case, caller: &Caller) -> Option<Finding> {
    let trims = case.callers.iter().find(|it| it.kind == CallKind::Trim && it.job != caller.job)?;
    let is_about = |it: &Part| {
        let is_slow = matches!(it.layer, Layer::Shared | Layer::Full | Layer::Others | Layer::Tag);
        is_slow && it.behind.as_ref().is_none_or(|it| *it == trims.job)
    };
    let mut found = case.finding("discards", caller, is_about)?;
    let longest = caller.parts.iter().filter(|it| is_about(it)).map(|it| it.longest).max()?;
    if longest > caller.median * TIMES {
        found.weight = Weight::Cause;
    }
    found.title = format!("{} waits behind discards of {}", caller.job, trims.job);
    found.culprit = Some(trims.job.clone());
    let count = trims.calls.max(1);
    let mean = moved(case, &trims.job, |kind| kind == CallKind::Trim) / count;
    if (mean as i64) < SMALL_DISCARD {
        found.evidence.push(format!("{count} discards of {} KiB on average", mean >> 10));
        found.mechanism = "Each discard is a command that keeps the device for a while, however \
            little it discards. Few that discard much cost less than many.";
        let told = "discard now and then with fstrim, instead of at once (mount -o discard)";
        found.remedies.push(Remedy::told(told));
        return Some(found);
    }
    found.mechanism = "A discard of much is long work for a device, and reads wait until it is \
        done. Between shorter ones others are served.";
    let small = ("discard_max_bytes", SMALL_DISCARD);
    found.remedies.extend(case.setting(small.0, small.1));
    // They all are with the device at once, unless somebody holds them back.
    found.remedies.extend(case.settings(&[small, ("wbt_lat_usec", -1)]));
    found.remedies.push(Remedy::told("fstrim when nobody waits, without mount -o discard"));
    Some(found)
}

/// The scheduler costs more time than it saves.
fn cost(case: &Case, caller: &Caller) -> Option<Finding> {
    case.row()?;
    if case.turns() || matches!(case.scheduler(), "none" | "noop") {
        return None;
    }
    let is_about = |it: &Part| matches!(it.layer, Layer::Computing | Layer::Host | Layer::Core);
    let mut found = case.finding("scheduler-cost", caller, is_about)?;
    // Who merely copies to and from memory costs no scheduler anything.
    let device = caller.share(|it| matches!(it.layer, Layer::Device | Layer::Shared));
    if device < LEAST || device > found.share {
        return None;
    }
    found.suspect();
    found.is_rare |= case.is_minor(&found);
    found.title =
        format!("{} costs {} more time than the device takes", case.scheduler(), caller.job);
    found.culprit = None;
    found.mechanism = "Each request passes one lock and the scheduler's own work. On a fast \
        device that is most of what a request takes.";
    found.remedies = case.plain_schedulers();
    Some(found)
}

/// Who computes is to be nice. Where tasks take turns, the simulator has no use for that.
fn nicer(case: &Case, other: &str) -> Option<Remedy> {
    let host = &case.row()?.host;
    let command = format!("nice -n {NICEST} for {other}");
    Some(match host.weighs_nice() {
        true => Remedy::tried(command, Change::Nice(other.to_string(), NICEST)),
        false => Remedy::told(format!(
            "{command} (not tried: on {} tasks take turns, however nice they are)",
            host.name
        )),
    })
}

/// Cores or a lock are full.
fn host(case: &Case, caller: &Caller) -> Option<Finding> {
    let is_about = |it: &Part| matches!(it.layer, Layer::Core);
    let mut found = case.finding("host-full", caller, is_about)?;
    found.title = format!("{} waits for a core", caller.job);
    found.mechanism = "All cores that it may use compute: for programs, for the block layer, for \
        interrupts. Then requests reach the disk later than it could serve them.";
    found.culprit = case.computing(caller);
    if let Some(other) = &found.culprit {
        found.title = format!("{} waits for a core on which {other} computes", caller.job);
        found.remedies.push(Remedy::told(format!("other cores for {other}")));
        found.remedies.extend(nicer(case, other));
    }
    found.remedies.push(Remedy::told("more cores, cheaper calls (io_uring, larger blocks)"));
    found.remedies.extend(case.plain_schedulers());
    Some(found)
}
