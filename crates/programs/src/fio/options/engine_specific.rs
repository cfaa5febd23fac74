//! The options that only some ioengines know.

use super::Kind::{Bool, Choice, Flag, Integers, Text};
use super::Status::{Ignored, Refused};
use super::{INTEGER, Row, modelled, row};

const PRIORITIES: &[&str] = &["libaio", "io_uring"];
const URING: &[&str] = &["io_uring"];
const POLLED: &[&str] = &["io_uring", "pvsync2", "sg"];
const CACHED: &[&str] = &["io_uring", "pvsync2"];
const NOWAIT: &[&str] = &["libaio", "io_uring", "pvsync2"];
const PINNED: &str = "the cost of pinning pages and finding files is part of the host model";
const POLLING: &str = "polled completions are not modelled";
const SG_MODES: &[&str] = &[
    "write",
    "write_and_verify",
    "verify",
    "write_same",
    "same",
    "write_same_ndob",
    "verify_bytchk_00",
    "verify_bytchk_01",
    "verify_bytchk_11",
    "write_stream",
];

pub(super) const ROWS: &[Row] = &[
    modelled("cmdprio_percentage", Integers(2), "").range(0, 100).engines(PRIORITIES),
    modelled("cmdprio_class", Integers(2), "").range(1, 3).engines(PRIORITIES),
    modelled("cmdprio", Integers(2), "").range(0, 7).engines(PRIORITIES),
    modelled("cmdprio_bssplit", Text, "").engines(PRIORITIES),
    row("userspace_reap", Flag, "", Ignored("reaping costs the same either way"))
        .engines(&["libaio"]),
    row("nowait", Bool, "0", Refused("RWF_NOWAIT is not modelled")).engines(NOWAIT),
    row("hipri", Flag, "", Refused(POLLING)).engines(POLLED),
    row("hipri_percentage", INTEGER, "100", Ignored("it belongs to hipri"))
        .range(0, 100)
        .engines(&["pvsync2"]),
    row("uncached", INTEGER, "", Ignored("there is no page cache on a raw device yet"))
        .engines(CACHED),
    row("fixedbufs", Flag, "", Ignored(PINNED)).engines(URING),
    row("registerfiles", Flag, "", Ignored(PINNED)).engines(URING),
    row("nonvectored", INTEGER, "-1", Ignored("it changes the form of a command, not its effect"))
        .range(-1, 1)
        .engines(URING),
    row("sqthread_poll", Flag, "", Refused("a polling submission thread is not modelled"))
        .engines(URING),
    row("sqthread_poll_cpu", INTEGER, "", Ignored("it belongs to sqthread_poll")).engines(URING),
    row("force_async", INTEGER, "0", Refused("io_uring's worker threads are not modelled"))
        .engines(URING),
    row("cmd_type", Choice(&["nvme"]), "nvme", Ignored("it belongs to io_uring_cmd"))
        .engines(URING),
    row("readfua", Bool, "0", Refused("reads with FUA are not modelled")).engines(&["sg"]),
    modelled("writefua", Bool, "0").engines(&["sg"]),
    modelled("sg_write_mode", Choice(SG_MODES), "write").engines(&["sg"]),
    row("stream_id", INTEGER, "0", Ignored("the device models have no streams")).engines(&["sg"]),
    modelled("cpuload", INTEGER, "").range(0, 100).engines(&["cpuio"]),
    modelled("cpuchunks", INTEGER, "50000").engines(&["cpuio"]),
    row("cpumode", Choice(&["noop", "qsort"]), "noop", Ignored("a busy core is a busy core"))
        .engines(&["cpuio"]),
    modelled("exit_on_io_done", Bool, "0").engines(&["cpuio"]),
    modelled("donorname", Text, "").engines(&["e4defrag"]),
    modelled("inplace", INTEGER, "").range(0, 1).engines(&["e4defrag"]),
    row("thp", Bool, "0", Refused("large pages of files are not modelled")).engines(&["mmap"]),
];

const NET: &[&str] = &["net", "netsplice"];
const LIBRPMA: &[&str] =
    &["librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client", "librpma_gpspm_server"];

/// Options of ioengines that are not modelled, so that a job file without its `ioengine` line is
/// told what is missing. Some names mean different things to several engines.
pub(super) const ELSEWHERE: &[(&[&str], &[&str])] = &[
    (&["hostname"], &["net", "netsplice", "rdma"]),
    (
        &["port"],
        &[
            "net",
            "netsplice",
            "rdma",
            "libhdfs",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
    ),
    (&["protocol", "proto", "nodelay", "listen", "pingpong", "interface", "ttl"], NET),
    (&["window_size", "mss"], NET),
    (&["bindname", "verb"], &["rdma"]),
    (&["serverip", "direct_write_to_pmem", "busy_wait_polling"], LIBRPMA),
    (&["program", "arguments", "grace_time", "std_redirect"], &["exec"]),
    (&["stat_type"], &["filestat"]),
    (&["volume", "brick", "single-instance"], &["gfapi", "gfapi_async"]),
    (&["skip_bad"], &["mtd"]),
    (&["conf", "touch_objects"], &["rados"]),
    (&["clustername", "clientname", "busy_poll"], &["rados", "rbd"]),
    (&["rbdname"], &["rbd"]),
    (&["pool"], &["rados", "rbd", "dfs"]),
    (&["cont", "object_class"], &["dfs"]),
    (&["chunk_size"], &["dfs", "libhdfs"]),
    (&["namenode", "hdfsdirectory"], &["libhdfs"]),
    (&["uri"], &["nbd"]),
    (&["nfs_url"], &["nfs"]),
    (&["gpu_dev_ids", "cuda_io"], &["libcufile"]),
    (&["gpu_dev_id"], &["rdma"]),
    (&["http_host", "http_user", "http_pass", "https", "http_mode", "http_verbose"], &["http"]),
    (&["http_s3_region", "http_s3_key", "http_s3_keyid", "http_s3_storage_class"], &["http"]),
    (&["http_s3_sse_customer_key", "http_s3_sse_customer_algorithm"], &["http"]),
    (&["http_swift_auth_token"], &["http"]),
    (&["cmd_type", "hipri", "fixedbufs", "registerfiles", "nonvectored"], &["io_uring_cmd"]),
    (&["sqthread_poll", "sqthread_poll_cpu", "force_async", "nowait"], &["io_uring_cmd"]),
    (&["xnvme_async", "xnvme_sync", "xnvme_admin", "xnvme_dev_nsid", "xnvme_iovec"], &["xnvme"]),
];
