//! The options that say how a job is measured and what its buffers hold: they change no request.

use super::Kind::{Amounts, Bool, Choice, ChoiceAndMore, Deprecated, Flag, Fractions, Text};
use super::Status::Ignored;
use super::{INTEGER, Row, SECONDS, modelled, row};

const LOGS: &str = "this log of fio is not written; the experiment records events instead";
const LOG_FORM: &str = "logs are written plain, with times from the start of a process";
const REPORT: &str = "the report has a form of its own";
const CLOCK: &str = "reading the clock costs nothing here, and every latency is measured";
const BUFFERS: &str = "the contents of buffers are not simulated";
const MEMORY: &str = "where buffers lie in memory makes no difference here";
const PROFILE: &str = "it belongs to one of fio's built-in profiles";
const OLD: &str = "fio accepts it for old job files and does nothing";

pub(super) const ROWS: &[Row] = &[
    modelled("kb_base", Choice(&["1024", "1000"]), "1024"),
    row("unit_base", Choice(&["0", "8", "1"]), "0", Ignored(REPORT)),
    // Logs.
    row("write_iolog", Text, "", Ignored(LOGS)),
    modelled("per_job_logs", Bool, "1"),
    modelled("write_bw_log", Text, ""),
    modelled("write_lat_log", Text, ""),
    modelled("write_iops_log", Text, ""),
    row("write_hist_log", Text, "", Ignored(LOGS)),
    row("bwavgtime", INTEGER, "500", Ignored(REPORT)),
    row("iopsavgtime", INTEGER, "500", Ignored(REPORT)),
    row("log_entries", INTEGER, "1024", Ignored(MEMORY)).range(1024, 1_048_576),
    modelled("log_avg_msec", INTEGER, "0"),
    row("log_hist_msec", INTEGER, "0", Ignored(LOGS)),
    row("log_hist_coarseness", INTEGER, "0", Ignored(LOGS)),
    modelled("log_max_value", Bool, "0"),
    modelled("log_offset", Bool, "0"),
    modelled("log_prio", Bool, "0"),
    row("log_compression", INTEGER, "", Ignored(LOG_FORM)).range(1024, 536_870_912),
    row("log_compression_cpus", Text, "", Ignored(LOG_FORM)),
    row("log_store_compressed", Bool, "0", Ignored(LOG_FORM)),
    row("log_unix_epoch", Bool, "0", Ignored(LOG_FORM)),
    row("log_alternate_epoch", Bool, "0", Ignored(LOG_FORM)),
    row("log_alternate_epoch_clock_id", INTEGER, "0", Ignored(LOG_FORM)),
    row("error_dump", Bool, "0", Ignored("the simulated devices return no errors")),
    row("block_error_percentiles", Bool, "0", Ignored("the simulated devices return no errors")),
    // Results.
    modelled("stats", Bool, "1"),
    row("clat_percentiles", Bool, "1", Ignored(REPORT)),
    row("lat_percentiles", Bool, "0", Ignored(REPORT)),
    row("slat_percentiles", Bool, "0", Ignored(REPORT)),
    row("percentile_list", Fractions, "", Ignored(REPORT)).range(0, 100_000_000),
    row("significant_figures", INTEGER, "4", Ignored(REPORT)).range(1, 10),
    row("disk_util", Bool, "1", Ignored(REPORT)),
    row(
        "unified_rw_reporting",
        Choice(&["none", "mixed", "both", "0", "1", "2"]),
        "none",
        Ignored(REPORT),
    ),
    // The clock.
    row("clocksource", Choice(&["gettimeofday", "clock_gettime", "cpu"]), "", Ignored(CLOCK)),
    row("gtod_reduce", Bool, "0", Ignored(CLOCK)),
    row("gtod_cpu", INTEGER, "", Ignored(CLOCK)),
    row("disable_lat", Bool, "0", Ignored(CLOCK)),
    row("disable_clat", Bool, "0", Ignored(CLOCK)),
    row("disable_slat", Bool, "0", Ignored(CLOCK)),
    row("disable_bw_measurement", Bool, "0", Ignored(CLOCK)).alias(&["disable_bw"]),
    // Buffers.
    row(
        "mem",
        ChoiceAndMore(&["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"]),
        "malloc",
        Ignored(MEMORY),
    )
    .alias(&["iomem"]),
    row("iomem_align", INTEGER, "0", Ignored(MEMORY)).alias(&["mem_align"]),
    row("hugepage-size", INTEGER, "2097152", Ignored(MEMORY)),
    row("lockmem", Amounts(1), "0", Ignored("memory only matters to the page cache")),
    row("zero_buffers", Flag, "", Ignored(BUFFERS)),
    row("refill_buffers", Flag, "", Ignored(BUFFERS)),
    row("scramble_buffers", Bool, "1", Ignored(BUFFERS)),
    row("buffer_pattern", Text, "", Ignored(BUFFERS)),
    row("buffer_compress_percentage", INTEGER, "", Ignored(BUFFERS)).range(0, 100),
    row("buffer_compress_chunk", INTEGER, "512", Ignored(BUFFERS)),
    row("dedupe_percentage", INTEGER, "", Ignored(BUFFERS)).range(0, 100),
    row("dedupe_mode", Choice(&["repeat", "working_set"]), "repeat", Ignored(BUFFERS)),
    row("dedupe_working_set_percentage", INTEGER, "5", Ignored(BUFFERS)).range(0, 100),
    row("dedupe_global", Bool, "0", Ignored(BUFFERS)),
    // Options of the profiles `tiobench` and `act`, which fio accepts anywhere.
    row("block", INTEGER, "", Ignored(PROFILE)),
    row("numruns", INTEGER, "", Ignored(PROFILE)),
    row("dir", Text, "", Ignored(PROFILE)),
    row("threads", INTEGER, "", Ignored(PROFILE)),
    row("device-names", Text, "", Ignored(PROFILE)),
    row("load", INTEGER, "", Ignored(PROFILE)),
    row("test-duration", SECONDS, "", Ignored(PROFILE)),
    row("threads-per-queue", INTEGER, "", Ignored(PROFILE)),
    row("read-req-num-512-blocks", INTEGER, "", Ignored(PROFILE)),
    row("large-block-op-kbytes", INTEGER, "", Ignored(PROFILE)),
    row("prep", Flag, "", Ignored(PROFILE)),
    // Old names.
    row("flow_watermark", Deprecated, "", Ignored(OLD)),
    row("verifysort", Deprecated, "", Ignored(OLD)),
    row("verifysort_nr", Deprecated, "", Ignored(OLD)),
];
