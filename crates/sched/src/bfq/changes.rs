//! What changed between the kernels of BFQ, in words: a row for each field of its rules.

use super::inject::Injecting;
use super::rules::Rules;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use block::changes::{Change, Table, change};
use block::{Kernel, Version};

/// The tables of BFQ: its rules, how it measures for injection, and what it says.
pub static CHANGES: [Table; 3] = [
    Table { about: "bfq", shows: |kernel| format!("{:#?}", Rules::of(kernel)), rows: &RULES },
    Table { about: "bfq, injection", shows: measuring, rows: &MEASURING },
    Table {
        about: "bfq, messages",
        shows: |kernel| format!("{:#?}", Rules::of(kernel).messages),
        rows: &MESSAGES,
    },
];

/// How a kernel measures; what has no meaning on it is `–`.
fn measuring(kernel: &Kernel) -> String {
    let rules = Rules::of(kernel);
    let shown = format!("{:#?}", rules.measuring);
    if rules.injecting == Injecting::ByServiceTime {
        return shown;
    }
    let blank = |line: &str| match line.split_once(": ") {
        Some((field, _)) => format!("{field}: –,"),
        None => String::from(line),
    };
    shown.lines().map(blank).collect::<Vec<_>>().join("\n")
}

/// Recordings of 4.19.79 tell: with the rule of another kernel they agree less.
const OLD: &[Version] = &[Version::V4_19];
/// So do recordings of both.
const BOTH: &[Version] = &[Version::V4_19, Version::V6_12];
/// Nobody looked.
const NONE: &[Version] = &[];

const RULES: [Change; 34] = [
    change("on_flash", "whether queues merge on flash disks that queue commands", NONE),
    change(
        "late_queues_part",
        "that a queue was served for too long comes before a merge that was planned",
        NONE,
    ),
    change("follows_chains", "of a chain of queues that merge, the last one is the target", NONE),
    change("plans_disown", "a queue that is to be merged is nobody's own", OLD),
    change(
        "forgets_position",
        "where the queue in service goes on is forgotten when one comes into service",
        NONE,
    ),
    change("merges_stably", "queues that come into being together merge", OLD),
    change("saves_weight", "who has its own queue again gets its weight back", NONE),
    change("saves_injection", "and what was known of injection", NONE),
    change("restores_raising_always", "and raising, even without `low_latency`", NONE),
    change("injecting", "what may go while a queue is waited for", OLD),
    change("has_wakers", "who wakes whom is found out, and may go meanwhile", NONE),
    change(
        "spares_lightest",
        "queues of the least weight are not waited for because others weigh more",
        NONE,
    ),
    change("classes_differ", "queues of several classes make the scenario asymmetric", NONE),
    change("groups_differ", "which groups make it asymmetric", OLD),
    change("guarantees", "when a queue is waited for because of what it is promised", OLD),
    change("waits_long_for_raised", "a raised queue is waited for at least 20 ms", OLD),
    change("small_never_ends_wait", "a small request never ends a wait", NONE),
    change(
        "charges_all_alike",
        "where the scenario is asymmetric, nobody is charged more for writing",
        NONE,
    ),
    change("deep", "requests in the driver beyond which the disk queues commands", OLD),
    change("knows_shallow", "a queue in service that sends one by one tells nothing of that", OLD),
    change("samples_as_queues", "a long dispatch is sequential on flash, wherever it is", NONE),
    change("raises_usual_weight_only", "only queues of the usual weight are raised", OLD),
    change("totally_seeky", "what it means that a queue has only jumped about of late", NONE),
    change("may_play", "when an interactive queue may turn out to play in real time", NONE),
    change("bursts_while_busy", "queues are part of a burst whoever is busy", NONE),
    change("preemption", "who stops the queue in service", OLD),
    change("looks_back", "statistics are taken down behind each arrival", OLD),
    change("io_bound", "whether a queue is bound by I/O", OLD),
    change("minds_rest", "a rest of a budget counts if it is more than nothing", OLD),
    change(
        "charges_for_gone",
        "groups are charged twice for the last turn of a queue whose process has another",
        BOTH,
    ),
    change("weights_refer", "the weight of a queue with requests refers to it", OLD),
    change("limits_shares", "whoever has more requests than its share gets no more", OLD),
    change("has_async_depth", "a limited depth is derived from the queue's `async_depth`", NONE),
    change("busy_is_work", "there is work as long as a queue is busy", NONE),
];

const MEASURING: [Change; 6] = [
    change(
        "alone",
        "requests in the driver that one which was alone there finds when it is done",
        NONE,
    ),
    change("follows", "the measure of what a queue does alone follows it", NONE),
    change("pause", "milliseconds without measuring after the limit has fallen", NONE),
    change("heeds_injected", "only what was injected changes the limit", NONE),
    change(
        "counts_queued",
        "arrivals count that find nothing queued, instead of nothing in flight",
        NONE,
    ),
    change(
        "large_is_one",
        "a large request counts as one, instead of going to an empty disk only",
        NONE,
    ),
];

const MESSAGES: [Change; 6] = [
    change("tells_priority", "the priority of a new queue", BOTH),
    change(
        "tells_statistics",
        "whether a queue thinks long and jumps about, at each arrival",
        BOTH,
    ),
    change("tells_queue", "that a process gets a queue", BOTH),
    change("tells_parting", "that queues are about to be parted", BOTH),
    change("names_shared", "a queue that several share has no number", BOTH),
    change("unlimited", "the depth of what is not limited", OLD),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_does_not_measure_has_no_meaning_there() {
        let before = measuring(Kernel::of(Version::V5_1));
        assert_eq!(before.matches(": –,").count(), MEASURING.len(), "{before}");
        let reference = measuring(Kernel::of(Version::V6_12));
        assert!(reference.contains("pause: 10,") && !reference.contains('–'), "{reference}");
    }
}
