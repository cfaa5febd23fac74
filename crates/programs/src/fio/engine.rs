//! The ioengines of fio: which of them read and write blocks here, and how.

use base::Bytes;

use super::error;

/// How a job hands its reads and writes to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// One system call per read or write, which returns when it is done: sync, psync, pvsync,
    /// pvsync2.
    Sync,
    /// As `Sync`, but neighbouring reads or writes that are queued become one call: vsync.
    SyncVectored,
    /// `io_submit` and `io_getevents`.
    Libaio,
    /// A submission and a completion ring.
    IoUring,
    /// The C library's threads, one synchronous call each.
    PosixAio,
    /// SCSI commands, one at a time.
    Sg,
    /// A file in the memory of the process.
    Mmap,
    /// Makes, looks for or removes each file when its first request comes: filecreate, filestat,
    /// filedelete.
    Names(NameCall),
    /// A write makes the file end where it would begin: ftruncate.
    Ftruncate,
    /// Sets room aside, and gives it back: falloc.
    Falloc,
    /// Blocks of the file change places with those of a donor: e4defrag.
    Exchange,
    /// Does nothing and completes at once.
    Null,
    /// Keeps a core busy.
    CpuIo,
}

/// What is done about the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCall {
    /// `open` with O_CREAT.
    Create,
    /// `stat`.
    Stat,
    /// `unlink`.
    Delete,
}

/// The file with whose blocks those of a job's files change places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donor {
    /// Its full name.
    pub name: String,
    /// When it gets the blocks that it gives.
    pub room: DonorRoom,
}

/// When a donor gets its blocks (`inplace`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DonorRoom {
    /// So many bytes when the process begins.
    Whole(Bytes),
    /// For each request, after which they are given up.
    EachRequest,
}

impl Engine {
    /// Whether it does what only a file can be asked for.
    pub fn needs_files(self) -> bool {
        matches!(self, Engine::Names(_) | Engine::Ftruncate | Engine::Falloc | Engine::Exchange)
    }

    /// Whether several requests can be in flight.
    pub fn is_asynchronous(self) -> bool {
        matches!(self, Engine::Libaio | Engine::IoUring | Engine::PosixAio | Engine::SyncVectored)
    }

    /// Whether it reads or writes blocks at all.
    pub fn does_block_io(self) -> bool {
        !matches!(self, Engine::Null | Engine::CpuIo)
    }
}

const MODELLED: &[(&str, Engine)] = &[
    ("sync", Engine::Sync),
    ("psync", Engine::Sync),
    ("vsync", Engine::SyncVectored),
    ("pvsync", Engine::Sync),
    ("pvsync2", Engine::Sync),
    ("libaio", Engine::Libaio),
    ("io_uring", Engine::IoUring),
    ("posixaio", Engine::PosixAio),
    ("sg", Engine::Sg),
    ("mmap", Engine::Mmap),
    ("filecreate", Engine::Names(NameCall::Create)),
    ("filestat", Engine::Names(NameCall::Stat)),
    ("filedelete", Engine::Names(NameCall::Delete)),
    ("ftruncate", Engine::Ftruncate),
    ("falloc", Engine::Falloc),
    ("e4defrag", Engine::Exchange),
    ("null", Engine::Null),
    ("cpuio", Engine::CpuIo),
];

const NETWORK: &str = "it goes over a network";
const PERSISTENT: &str = "it addresses persistent memory directly";
const ZONED: &str = "it sends zone commands, and the simulated devices are conventional";
const PASSTHROUGH: &str = "its commands go past the I/O scheduler to the NVMe driver";

/// Those that are not modelled, and why.
const UNAVAILABLE: &[(&str, &str)] = &[
    ("splice", "it moves pages through a pipe, which is not modelled"),
    ("net", NETWORK),
    ("netsplice", NETWORK),
    ("rdma", NETWORK),
    ("librpma_apm_client", NETWORK),
    ("librpma_apm_server", NETWORK),
    ("librpma_gpspm_client", NETWORK),
    ("librpma_gpspm_server", NETWORK),
    ("rados", NETWORK),
    ("rbd", NETWORK),
    ("http", NETWORK),
    ("gfapi", NETWORK),
    ("gfapi_async", NETWORK),
    ("libhdfs", NETWORK),
    ("libiscsi", NETWORK),
    ("nbd", NETWORK),
    ("nfs", NETWORK),
    ("dfs", NETWORK),
    ("ime_psync", NETWORK),
    ("ime_psyncv", NETWORK),
    ("ime_aio", NETWORK),
    ("pmemblk", PERSISTENT),
    ("dev-dax", PERSISTENT),
    ("libpmem", PERSISTENT),
    ("libzbc", ZONED),
    ("io_uring_cmd", PASSTHROUGH),
    ("xnvme", PASSTHROUGH),
    ("mtd", "it addresses raw flash, which has no block layer"),
    ("libcufile", "it needs a graphics processor"),
    ("exec", "it runs a program, and the simulated machine has no shell"),
    ("external", "it loads foreign code"),
    ("cpp_null", "it is an example of foreign code that does nothing"),
];

/// The engine called `name`; an error says why there is none, what is accepted, and what is near.
pub fn find(name: &str) -> Result<Engine, (String, Option<&'static str>)> {
    let name = name.split(':').next().unwrap_or_default();
    if let Some((_, engine)) = MODELLED.iter().find(|(known, _)| *known == name) {
        return Ok(*engine);
    }
    match UNAVAILABLE.iter().find(|(known, _)| *known == name) {
        Some((_, reason)) => Err((format!("ioengine {name} is not modelled: {reason}"), None)),
        None => {
            let known = MODELLED.iter().map(|(known, _)| *known);
            Err((format!("'{name}' is no ioengine of fio 3.33"), error::nearest(name, known)))
        }
    }
}

/// The names that [`find`] accepts, as a message says them.
pub fn accepted() -> String {
    MODELLED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_or_refused_with_a_reason() {
        assert_eq!(find("libaio"), Ok(Engine::Libaio));
        assert_eq!(find("sync:x"), Ok(Engine::Sync));
        assert!(find("splice").unwrap_err().0.contains("through a pipe"));
        assert!(find("nbd").unwrap_err().0.contains("over a network"));
        assert_eq!(find("libio").unwrap_err().1, Some("libaio"));
    }
}
