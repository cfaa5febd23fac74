//! How fast guests are: `guest_speed [RUNS]` prints requests in a second of real time, and how much
//! faster than its disk a guest is, as the best of that many runs of each load; and what a request
//! costs in processor time, guest and all, which depends less on what else the machine does.
//!
//! What a guest takes that boots, does nothing and ends is measured too and taken off; what fio
//! takes to start is not. `KERNEL=7.3` runs another kernel than 6.12, `CORE=1` keeps everything on
//! that core, and `LOAD=fio` leaves out loads whose titles do not begin like that.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant as WallInstant;

use base::{Bytes, Hz};
use device::Model;
use linux::{
    Cache, Contents, Disk, Finished, Guest, Job, Kernel, Protocol, Recording, Root, Script,
    Setting, Trace, Watchdog,
};

const READER: &str = "requests /dev/vda 1 20000 4096 random 0";
const READERS: &str = "requests /dev/vda 16 1500 4096 random 0";
const DD: &str = "dd if=/dev/vda of=/dev/null bs=4k count=20000 iflag=direct";
const FIO: &str = "fio --name=a --filename=/dev/vda --rw=randread --bs=4k --direct=1 --size=1g \
    --number_ios=10000 --clocksource=clock_gettime";
const QUEUE: &str = "fio --name=a --filename=/dev/vda --rw=randread --bs=4k --direct=1 --size=1g \
    --ioengine=libaio --iodepth=32 --number_ios=40000 --clocksource=clock_gettime";
const DISK: &str = "requests /dev/vda 24 200 4096 random 30";

/// Title, disk, scheduler, depth, whether it is recorded, and the command.
type Load = (&'static str, &'static str, &'static str, u32, bool, &'static str);

const LOADS: [Load; 11] = [
    ("C, 1 reader", "null", "none", 32, false, READER),
    ("C, 16 readers", "nvme-980pro", "none", 64, false, READERS),
    ("C, 16 readers", "nvme-980pro", "mq-deadline", 8, false, READERS),
    ("C, 16 readers", "nvme-980pro", "bfq", 8, false, READERS),
    ("C, 16 readers", "nvme-980pro", "mq-deadline", 8, true, READERS),
    ("dd", "null", "none", 32, false, DD),
    ("fio", "null", "none", 32, false, FIO),
    ("fio, 32 at once", "nvme-980pro", "none", 32, false, QUEUE),
    ("fio, 32 at once", "ssd-sata-m4", "none", 32, false, QUEUE),
    ("C, 24 readers and writers", "hdd-7200-sata", "mq-deadline", 32, false, DISK),
    ("C, 24 readers and writers", "hdd-7200-sata", "bfq", 32, true, DISK),
];

/// What a run took, in seconds.
#[derive(Clone, Copy)]
struct Time {
    wall: f64,
    processor: f64,
}

/// What this process and those it has waited for have used, in seconds.
fn processor_time() -> Result<f64, Box<dyn Error>> {
    // The name of the program, in parentheses, may have blanks in it. Behind it come eleven other
    // fields, and then the times in hundredths of a second: proc(5).
    let text = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(str::parse::<u32>);
    Ok(f64::from(ticks.sum::<Result<u32, _>>()?) / 100.0)
}

struct Machine {
    kernel: Kernel,
    root: Root,
    core: Option<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let runs = env::args().nth(1).map_or(Ok(3), |runs| runs.parse::<u32>())?;
    let directory = env::temp_dir().join(format!("paternoster-speed-{}", std::process::id()));
    let measured = measure(&directory, runs);
    fs::remove_dir_all(&directory)?;
    measured
}

fn measure(directory: &Path, runs: u32) -> Result<(), Box<dyn Error>> {
    let hz = Hz::new(250).expect("250 is a choice");
    let kernel = env::var("KERNEL").unwrap_or_else(|_| "6.12".to_string());
    let kernel = Cache::of_user()?.require(&kernel, hz)?;
    let root = Root::make(directory, &["dd", "fio"])?;
    let (source, program) = (directory.join("requests.c"), directory.join("usr/bin/requests"));
    fs::write(&source, include_str!("../../../xtask/src/determinism/requests.c"))?;
    let compiled = Command::new("cc").arg("-O2").arg("-o").arg(program).arg(source).status()?;
    if !compiled.success() {
        return Err("the C compiler failed".into());
    }
    let core = env::var("CORE").ok().map(|core| core.parse()).transpose()?;
    let machine = Machine { kernel, root, core };
    let (idle, _) = machine.best(&("", "null", "none", 32, false, "true"), runs)?;
    println!("kernel {}", machine.kernel.version);
    println!("boot, nothing, power off: {:.2} s of processor time\n", idle.processor);
    println!(
        "| load | disk | scheduler | depth | recorded | requests | µs each | per second | x |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let wanted = env::var("LOAD").unwrap_or_default();
    for load in LOADS.into_iter().filter(|(title, ..)| title.starts_with(&wanted)) {
        let (took, finished) = machine.best(&load, runs)?;
        let wall = took.wall - idle.wall;
        let each = 1e6 * (took.processor - idle.processor);
        let log = finished.log.served.iter().filter(|served| served.accepted >= finished.begun);
        let requests = log.count();
        let guest = finished.ended.since(finished.begun).as_nanos() as f64 / 1e9;
        let (title, disk, scheduler, depth, recorded, _) = load;
        let recorded = if recorded { "yes" } else { "no" };
        println!(
            "| {title} | {disk} | {scheduler} | {depth} | {recorded} | {requests} | {:.0} \
             | {:.0} | {:.1} |",
            each / requests as f64,
            requests as f64 / wall,
            guest / wall
        );
    }
    Ok(())
}

impl Machine {
    /// The shortest of some runs.
    fn best(&self, load: &Load, runs: u32) -> Result<(Time, Finished), Box<dyn Error>> {
        let mut best: Option<(Time, Finished)> = None;
        for _ in 0..runs.max(1) {
            let guest = self.guest(load)?;
            let (began, before) = (WallInstant::now(), processor_time()?);
            let finished = guest.run()?;
            let processor = processor_time()? - before;
            let took = Time { wall: began.elapsed().as_secs_f64(), processor };
            if let Some(failed) = finished.jobs.iter().find(|job| job.exit != 0) {
                return Err(String::from_utf8_lossy(&failed.errors).into());
            }
            if best.as_ref().is_none_or(|(shortest, _)| took.wall < shortest.wall) {
                best = Some((took, finished));
            }
        }
        Ok(best.expect("there is at least one run"))
    }

    fn guest(&self, load: &Load) -> Result<Guest<'_>, Box<dyn Error>> {
        let (_, disk, scheduler, depth, recorded, command) = *load;
        let device = Model::find(disk)?.build(1);
        let rotational = u8::from(device.facts().rotational).to_string();
        let script = Script {
            settings: vec![
                Setting::queue(0, "scheduler", scheduler),
                Setting::queue(0, "rotational", rotational),
            ],
            jobs: vec![Job { command: command.to_string(), ..Job::default() }],
            trace: match recorded {
                true => Trace::Perturbing(Recording::default()),
                false => Trace::Off,
            },
            ..Script::default()
        };
        Ok(Guest {
            kernel: &self.kernel,
            root: &self.root,
            memory: Bytes(512 << 20),
            disks: vec![Disk { name: disk.into(), device, contents: Contents::forgetful() }],
            queue_depth: depth,
            script,
            seed: 0,
            protocol: Protocol::SharedMemory,
            watchdog: Watchdog::default(),
            core: self.core,
        })
    }
}
