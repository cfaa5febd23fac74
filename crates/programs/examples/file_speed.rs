//! What files cost: system calls per second of processor time for buffered writes on ext4 with an
//! fsync after each hundred, and the memory of a machine whose page cache is full.
//!
//! `cargo run --release -p paternoster-programs --example file_speed [calls [SCHEDULER [HOST]]]`
//! `cargo run --release -p paternoster-programs --example file_speed memory LOAD [GIBIBYTES]`
//!
//! LOAD is one of `sequential`, `readers`, `files`, `random`. Memory is that of the whole process,
//! so each load is measured in a process of its own.

#[path = "../../machine/examples/common/mod.rs"]
mod common;

use base::Bytes;
use cache::readahead::Advice;
use common::processor_time;
use device::Model;
use machine::calls::Creation;
use machine::task::{OpenFlags, Task};
use machine::{Exit, Job, Mount, Native, Nobody, Setup};
use programs::Surroundings;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const READERS: u64 = 4;
/// Bytes of one of many files.
const FILE: u64 = 256 << 10;
const PAGE: u64 = base::page::SIZE;
/// After so many writes fio calls fsync.
const WRITES_A_SYNC: u64 = 100;

fn setup(scheduler: &str, host: &str, memory: u64, jobs: Vec<Job>) -> Setup {
    let device = Model::builtin("nvme-980pro").expect("a model").build(1);
    let setup = common::setup(scheduler, host, device, jobs);
    Setup { memory: Bytes(memory), mount: Some(Mount::default()), ..setup }
}

/// fio where there is a file system.
fn in_files(mount: &Mount) -> Surroundings<'_> {
    Surroundings {
        page_size: PAGE,
        ncpus: 1,
        mb_memory: 1024,
        habits: &guest::Profile::uml().habits,
        mount: Some(mount),
        environment: &|_| None,
        read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    }
}

/// Memory of this process now and at most so far, in bytes.
fn resident() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it is there");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}

fn calls(scheduler: &str, host: &str) {
    println!("{scheduler} on {host}, buffered 4 KiB writes on ext4, fsync every {WRITES_A_SYNC}");
    for (name, options, writes) in [
        ("a file that grows", "--rw=write --size=4G --fallocate=none", 1 << 20),
        ("a file set aside before", "--rw=write --size=4G", 1 << 20),
        ("overwriting 64 MiB at random", "--rw=randwrite --size=64M --overwrite=1", 400_000),
        ("overwriting 1 GiB at random", "--rw=randwrite --size=1G --overwrite=1", 400_000),
    ] {
        let line = format!(
            "fio --name=x --filename=/mnt/x --bs=4k --ioengine=psync --norandommap \
             --io_size={} --fsync={WRITES_A_SYNC} {options}",
            writes * PAGE
        );
        let job = Job::new(
            "fio",
            programs::parse_in(&line, &in_files(&Mount::default())).expect("a command").program,
        );
        let start = processor_time();
        let outcome =
            machine::run(setup(scheduler, host, 8 * GIB, vec![job]), &mut Nobody).expect("it runs");
        let real = processor_time() - start;
        assert!(outcome.jobs[0].exit == Exit::Status(0), "{:?}", outcome.jobs[0].messages);
        let calls = writes + writes / WRITES_A_SYNC;
        println!(
            "{name:30} {:6.0} ns a call, {:9.0} calls/s, {} in virtual time, {}",
            real as f64 / calls as f64,
            calls as f64 * 1e9 / real as f64,
            outcome.elapsed,
            outcome.fingerprint
        );
    }
}

/// Fills the page cache with so many bytes, all of which stay there.
async fn fill(task: Task, load: String, bytes: u64) {
    let open = async |path: &str, way| {
        task.open_file(path, OpenFlags::default(), way).await.expect("the disk or a file")
    };
    match load.as_str() {
        "sequential" => {
            let file = open("/mnt/f", Creation::WRITE).await;
            for offset in (0..bytes).step_by(MIB as usize) {
                task.pwrite(&file, offset, MIB).await.expect("a write");
            }
        }
        "readers" => {
            let mut readers = Vec::new();
            for _ in 0..READERS {
                readers.push(open("/dev/sda", Creation::READ).await);
            }
            let each = bytes / READERS;
            for offset in (0..each).step_by(64 << 10) {
                for (file, start) in readers.iter().zip((0..).step_by(each as usize)) {
                    task.pread(file, start + offset, 64 << 10).await.expect("a read");
                }
            }
        }
        "files" => {
            for number in 0..bytes / FILE {
                let file = open(&format!("/mnt/{number}"), Creation::WRITE).await;
                task.pwrite(&file, 0, FILE).await.expect("a write");
                task.close(&file).await;
            }
        }
        "random" => {
            let file = open("/dev/sda", Creation::READ).await;
            task.advise(&file, Advice::Random);
            let blocks = task.disk().capacity.0 / PAGE;
            let mut rng = task.rng("fill");
            while task.page_cache().cached * PAGE < bytes {
                let offset = rng.below(blocks) * PAGE;
                task.pread(&file, offset, PAGE).await.expect("a read");
            }
        }
        _ => panic!("no load {load}: sequential, readers, files or random"),
    }
}

fn memory(load: &str, gibibytes: u64) {
    let bytes = gibibytes * GIB;
    let before = resident().0;
    let name = load.to_string();
    let program = Native::new("fill", move |task: Task| {
        let name = name.clone();
        async move {
            fill(task.clone(), name, bytes).await;
            let (cached, used) = (task.page_cache().cached, resident().0 - before);
            task.print(format!("{cached} {used}"));
            0
        }
    });
    // So much more than what is cached that nothing has to go.
    let setup =
        setup("none", "host-2020", bytes + bytes / 4 + GIB, vec![Job::new("fill", program)]);
    let outcome = machine::run(setup, &mut Nobody).expect("it runs");
    let said = outcome.jobs[0].messages[0].split(' ').map(|it| it.parse::<u64>().expect("number"));
    let [cached, used] = said.collect::<Vec<_>>()[..] else { panic!("two numbers") };
    println!(
        "{load:12} {cached} pages cached, {:.1} MB more than before, {:.1} bytes a page; the \
         process had {:.1} MB at most",
        used as f64 / 1e6,
        used as f64 / cached as f64,
        resident().1 as f64 / 1e6
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    match argument(0) {
        Some("memory") => {
            let gibibytes = argument(2).map_or(16, |text| text.parse().expect("a number"));
            memory(argument(1).expect("a load"), gibibytes);
        }
        _ => calls(argument(1).unwrap_or("none"), argument(2).unwrap_or("host-2020")),
    }
}
