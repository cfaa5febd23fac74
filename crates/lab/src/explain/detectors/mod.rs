//! The detectors, a file for each place where time is lost. Each looks at a `Case` and says what
//! it found, if anything.

mod device;
mod drive;
mod idling;
mod layout;
mod limits;
mod locks;
mod memory;
mod neighbours;
mod others;
mod settings;

use super::case::Case;
use super::finding::{Change, Finding, Remedy, Weight};
use crate::metrics::CallKind;
use insight::Confidence;

/// What is less than one of so many parts of something is little beside it.
const LITTLE: u64 = 10;

/// Findings that say why the device has the time.
const REASONS: [&str; 3] = ["one-by-one", "partial-writes", "fragmented"];

/// Findings that blame somebody who calls sync or fsync.
const OF_SYNCS: [&str; 2] = ["behind-a-sync", "behind-flushes"];

/// A detector.
type Detector = fn(&Case) -> Vec<Finding>;

/// All of them.
const DETECTORS: [Detector; 9] = [
    settings::detect,
    idling::detect,
    limits::detect,
    neighbours::detect,
    device::detect,
    drive::detect,
    memory::detect,
    locks::detect,
    layout::detect,
];

/// The finding about what somebody has set.
pub const SETTING: &str = "setting";

/// What all of them say, the causes first and among these the dearest.
pub fn detect(case: &Case) -> Vec<Finding> {
    let mut findings: Vec<Finding> = DETECTORS.iter().flat_map(|it| it(case)).collect();
    leave_out_what_says_less(&mut findings);
    for it in findings.iter_mut().filter(|it| !it.is_setting()) {
        let Some(culprit) = it.culprit.clone() else { continue };
        it.limit = case.half_of(&culprit);
        // Who moves nothing, and has others write, takes nothing with it.
        let is_job = case.row().is_some() && case.job(&culprit).is_some();
        if OF_SYNCS.contains(&it.name) && is_job && it.limit.is_none() {
            let stop = format!("stop {culprit}, or run it at another time");
            it.remedies.push(Remedy::tried(stop, Change::Without(culprit)));
        }
    }
    sort(&mut findings);
    findings
}

/// That the device has the time says less than why it has it.
fn leave_out_what_says_less(findings: &mut Vec<Finding>) {
    let is_reason = |it: &&Finding| REASONS.contains(&it.name);
    let said: Vec<(String, CallKind)> =
        findings.iter().filter(is_reason).map(|it| (it.victim.clone(), it.kind)).collect();
    findings.retain(|it| {
        let is_said = said.iter().any(|(victim, kind)| *victim == it.victim && *kind == it.kind);
        it.name != "device-bound" || !is_said
    });
}

/// Causes first; among these what somebody loses who takes nothing from others and is waited for,
/// and what costs most of the time that passes. Whoever makes many calls at once, and keeps others
/// waiting by that, is not the first to be helped.
pub fn sort(findings: &mut [Finding]) {
    // Who is in the background makes nobody guilty by what is little beside what others lose.
    let most = findings.iter().filter(|it| it.is_cause()).map(|it| it.passes).max();
    let is_little = |it: &Finding| it.is_in_background && Some(it.passes * LITTLE) < most;
    let causes = findings.iter().filter(|it| it.is_cause() && !is_little(it));
    let blamed: Vec<(String, String)> =
        causes.filter_map(|it| Some((it.culprit.clone()?, it.victim.clone()))).collect();
    let is_guilty = |victim: &str| {
        let by = |it: &&(String, String)| it.0 == victim;
        blamed
            .iter()
            .filter(by)
            .any(|(_, other)| !blamed.iter().any(|it| it.0 == *other && it.1 == victim))
    };
    findings.sort_by_cached_key(|it| {
        let counts = std::cmp::Reverse(it.counts());
        (it.weight, is_guilty(&it.victim), it.is_in_background, counts, !it.is_setting())
    });
}

/// Tells once what was found for several alike, with the same remedies.
pub fn merge(findings: &mut Vec<Finding>) {
    let commands =
        |it: &Finding| -> Vec<String> { it.remedies.iter().map(|it| it.command.clone()).collect() };
    merge_where(findings, |first, it| {
        // What is set is one matter, whichever calls pay for it.
        let matter = |it: &Finding| (!it.is_setting()).then(|| (it.kind, it.culprit.is_some()));
        let of = |it: &Finding| (it.name, it.weight, matter(it), commands(it));
        !it.remedies.is_empty() && of(first) == of(it)
    });
}

/// Makes those that are the same as one before further victims of that.
fn merge_where(findings: &mut Vec<Finding>, is_same: impl Fn(&Finding, &Finding) -> bool) {
    for it in std::mem::take(findings) {
        match findings.iter_mut().find(|first| is_same(first, &it)) {
            Some(first) => first.add_victim(&it),
            None => findings.push(it),
        }
    }
}

/// What detectors can find, by name, and what it means.
pub const KNOWN: &[(&str, &str)] = &[
    (SETTING, "what somebody has set is worse than the default"),
    ("dependent-tasks-apart", "the scheduler idles for one of two tasks that wait for each other"),
    (
        "cooperating-tasks-apart",
        "processes of one job have queues of their own, and each is idled for",
    ),
    ("idling-on-flash", "a fast disk is kept for one job while another waits"),
    ("idling-for-another", "the same on a disk that turns, where it may pay"),
    ("few-at-a-time", "the scheduler lets few requests go at a time"),
    ("turns-of-others", "each has the disk for a while, and all others wait"),
    ("idle-class", "a job of the idle class gets what the others leave"),
    ("lower-class", "requests of a lower I/O class wait until there is nothing else"),
    ("writeback-starved", "others pass buffered writes that somebody waits for"),
    ("throttled-writeback", "writeback throttling holds writes back that somebody waits for"),
    ("limit-reached", "io.max or blkio.throttle holds back a job, or what it is waited for"),
    ("limit-bypassed", "buffered writes pass a limit of version 1"),
    ("requests-run-out", "all requests or tags are taken"),
    ("no-token", "kyber's targets leave few tokens"),
    ("dirty-limit", "a writer pauses because too much is dirty"),
    ("dirty-backlog", "a sync writes what was made dirty long before"),
    ("weights-without-effect", "the scheduler does not look at weights or priorities that are set"),
    ("buffered-unweighted", "buffered writes are the flusher's, so weights do not count"),
    ("little-weight", "a job has what its weight says, and that is little"),
    ("priority-inversion", "a job waits for what somebody of a lower class has under way"),
    ("commit-waits-for-others", "a commit of the journal waits for data of somebody else"),
    ("behind-a-flood", "requests stand behind many of somebody else"),
    ("behind-a-sync", "requests wait while what somebody else syncs is written"),
    ("starved-in-the-scheduler", "some calls are passed over for very long"),
    ("starved-in-the-drive", "a request is with the drive for very long while it serves others"),
    ("device-shared", "requests are with the drive among those of somebody who has more"),
    ("one-by-one", "asynchronous calls reach the disk one after the other"),
    ("fragmented", "who reads in sequence has a disk seek, because the file lies in pieces"),
    ("dropped", "somebody drops pages from memory that another one reads again"),
    ("dirty-pages-of-others", "a sync or a direct read writes what others have made dirty"),
    ("evicted", "somebody pushes out of memory what another reads again"),
    ("partial-writes", "writes read first what they do not cover"),
    ("streams-interleaved", "a disk that turns seeks between several readers at each request"),
    ("device-bound", "the device has the time; no scheduler changes that"),
    ("flushes", "the device flushes its cache most of the time"),
    ("behind-flushes", "the drive flushes its cache for somebody else, and serves nobody"),
    ("behind-cached-writes", "the drive is busy with writes that it had acknowledged"),
    ("queue-depth", "the device is given fewer commands than it takes"),
    ("readahead", "a reader in sequence waits for each short window"),
    ("discards", "reads wait behind discards"),
    ("scheduler-cost", "the scheduler costs more than the device takes"),
    ("lock-held", "somebody holds a lock of a file or directory while it writes"),
    ("host-full", "tasks wait for a core"),
];

/// The same as a table of the documentation.
pub fn markdown() -> (&'static str, String) {
    let rows = KNOWN.iter().map(|(name, about)| format!("| `{name}` | {about} |\n"));
    ("findings", format!("| finding | what it means |\n|---|---|\n{}", rows.collect::<String>()))
}

/// What they say of a recording. What a detector finds for several is told once, for whoever lost
/// most, and what rests on a guess of low confidence is no cause.
pub fn detect_in_recording(case: &Case) -> Vec<Finding> {
    let mut all = detect(case);
    for found in all.iter_mut().filter(|it| it.confidence == Some(Confidence::Low)) {
        found.weight = Weight::Note;
    }
    sort(&mut all);
    merge_where(&mut all, |first, it| first.name == it.name);
    all
}
