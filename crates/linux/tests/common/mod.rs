//! What the tests of guests share: a kernel, a root directory, disks.

#![allow(dead_code, reason = "not every file of tests needs everything")]

use std::path::PathBuf;
use std::sync::LazyLock;

use base::{Bytes, Hz};
use device::Model;
use linux::rootfs::find_program;
use linux::{
    Cache, Contents, Disk, Finished, Guest, Kernel, Protocol, Recording, Root, Script, Watchdog,
};
use testing::Need;

/// The kernel of the user's cache.
pub const KERNEL: Need = testing::needs::kernel(linux::has_kernel);

/// A kernel that can run its processes under seccomp.
pub const KERNEL_7: Need = Need {
    name: "a kernel 7.3",
    how: "paternoster linux build --kernel 7.3 --suite trixie-backports",
    is_there: || {
        let hz = Hz::new(250).expect("250 is a choice");
        Cache::of_user().is_ok_and(|cache| cache.require("7.3", hz).is_ok())
    },
};

/// The kernel and a root directory with fio and dd.
pub fn machine() -> &'static (Kernel, Root) {
    static MACHINE: LazyLock<(Kernel, Root)> = LazyLock::new(|| {
        let hz = Hz::new(250).expect("250 is a choice");
        let kernel = Cache::of_user().unwrap().require("6.12", hz).unwrap();
        let mut programs = vec!["dd", "fio"];
        programs.extend(find_program("mkfs.ext4").map(|_| "mkfs.ext4"));
        (kernel, Root::make(&directory("root"), &programs).unwrap())
    });
    &MACHINE
}

/// A disk that takes `service` for everything and `depth` commands at once.
pub fn constant(service_us: u64, depth: u32) -> Disk {
    let text = format!(
        r#"
        kind = "null"
        title = "constant"
        [disk]
        transport       = {{ value = "virtio", source = "assumed", from = "test" }}
        capacity        = {{ value = 8, unit = "GB", source = "assumed", from = "test" }}
        rotational      = {{ value = false, source = "assumed", from = "test" }}
        volatile_cache  = {{ value = true, source = "assumed", from = "test" }}
        fua             = {{ value = false, source = "assumed", from = "test" }}
        queue_depth     = {{ value = {depth}, source = "assumed", from = "test" }}
        hardware_queues = {{ value = 1, source = "assumed", from = "test" }}
        logical_block   = {{ value = 512, unit = "bytes", source = "assumed", from = "test" }}
        max_transfer    = {{ value = 1280, unit = "KiB", source = "assumed", from = "test" }}
        max_segments    = {{ value = 128, source = "assumed", from = "test" }}
        discard         = {{ value = false, source = "assumed", from = "test" }}
        chunk           = {{ value = 0, unit = "bytes", source = "assumed", from = "test" }}
        [service]
        time = {{ value = {service_us}, unit = "us", source = "assumed", from = "test" }}
        "#
    );
    modelled(&Model::from_text("constant", &text).expect("the model is well formed"))
}

/// A disk of a model.
pub fn modelled(model: &Model) -> Disk {
    Disk {
        name: model.name().to_string(),
        device: model.build(1),
        contents: Contents::new(Bytes(256 << 20)),
    }
}

/// A guest that does `script`.
pub fn guest(machine: &(Kernel, Root), disks: Vec<Disk>, depth: u32, script: Script) -> Guest<'_> {
    let (kernel, root) = machine;
    Guest {
        kernel,
        root,
        memory: Bytes(512 << 20),
        disks,
        queue_depth: depth,
        script,
        seed: 0,
        protocol: Protocol::SharedMemory,
        watchdog: Watchdog::default(),
        core: None,
    }
}

/// Runs a guest, which must end well.
pub fn finish(guest: Guest<'_>) -> Finished {
    guest.run().unwrap_or_else(|error| panic!("{error}"))
}

/// A recording with room enough for a test.
pub fn recording() -> Recording {
    Recording { buffer: Bytes(8 << 20), ..Recording::default() }
}

/// An empty directory of this name, for this file of tests alone.
pub fn directory(name: &str) -> PathBuf {
    let ours = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
    let directory = ours.join(name);
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("the directory can be removed");
    }
    std::fs::create_dir_all(&directory).expect("the directory can be made");
    directory
}
