//! Runs a command in a guest with one disk: `run_guest MODEL SCHEDULER DEPTH COMMAND…`, or a
//! shell if there is no command.
//!
//! `TRACE=perturbing` or `TRACE=free` records as well, `PROTOCOL=messages` is the slower protocol,
//! `KERNEL=7.3` names another kernel, `CORE=1` keeps everything on that core, `MEMORY=256` gives it
//! that many MiB,
//! `SETUP=…` is a command that goes before, `IMAGE=…` a file that the disk begins as a copy of,
//! `PROGRAMS=…` more programs of the host, `LOG=1` prints what the disk was asked for.

use std::error::Error;

use base::{Bytes, Hz};
use device::Model;
use linux::{
    Cache, Contents, Disk, Guest, Job, Protocol, Recording, Root, Script, Setting, Trace, Watchdog,
};

/// What the disk may hold besides zeros, if it holds anything.
const MOST_DATA: Bytes = Bytes(2 << 30);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, scheduler, depth, command @ ..] = arguments.as_slice() else {
        return Err("usage: run_guest MODEL SCHEDULER DEPTH COMMAND…".into());
    };
    let hz = Hz::new(250).expect("250 is a choice");
    let name = Some(variable("KERNEL")).filter(|it| !it.is_empty());
    let kernel = Cache::of_user()?.require(name.as_deref().unwrap_or("6.12"), hz)?;
    let directory = std::env::temp_dir().join(format!("paternoster-root-{}", std::process::id()));
    let more = variable("PROGRAMS");
    let programs: Vec<&str> = ["dd", "fio"].into_iter().chain(more.split_whitespace()).collect();
    let root = Root::make(&directory, &programs)?;
    let device = Model::find(model)?.build(1);
    let rotational = device.facts().rotational;
    let script = script(scheduler, rotational, command.join(" "));
    let guest = Guest {
        kernel: &kernel,
        root: &root,
        memory: Bytes(variable("MEMORY").parse().unwrap_or(512_u64) << 20),
        disks: vec![Disk { name: model.clone(), device, contents: contents()? }],
        queue_depth: depth.parse()?,
        script,
        seed: 0,
        protocol: match variable("PROTOCOL").as_str() {
            "messages" => Protocol::Messages,
            _ => Protocol::SharedMemory,
        },
        watchdog: Watchdog::default(),
        core: variable("CORE").parse().ok(),
    };
    if command.is_empty() {
        return Ok(guest.shell()?);
    }
    let finished = guest.run();
    std::fs::remove_dir_all(&directory)?;
    let finished = finished?;
    for job in &finished.jobs {
        print!("{}", String::from_utf8_lossy(&job.output));
        eprint!("{}", String::from_utf8_lossy(&job.errors));
    }
    if variable("LOG") == "1" {
        for it in &finished.log.served {
            let (at, took) = (it.accepted, it.completed.saturating_since(it.accepted));
            println!("{at} {:?} {}+{} {took}", it.op, it.sector.0, it.sectors.0);
        }
    }
    eprintln!(
        "exit {} · {} s · {} commands, device log {} · {} bytes of trace, {} events lost",
        finished.jobs[0].exit,
        finished.ended,
        finished.log.served.len(),
        finished.log.fingerprint(),
        finished.trace.len(),
        finished.lost_events,
    );
    Ok(())
}

fn script(scheduler: &str, rotational: bool, command: String) -> Script {
    let rotational = u8::from(rotational).to_string();
    let setup = variable("SETUP");
    Script {
        settings: vec![
            Setting::queue(0, "scheduler", scheduler),
            Setting::queue(0, "rotational", rotational),
        ],
        setup: Some(setup).filter(|it| !it.is_empty()).into_iter().collect(),
        jobs: vec![Job { command, ..Job::default() }],
        trace: match variable("TRACE").as_str() {
            "perturbing" => Trace::Perturbing(Recording::default()),
            "free" => Trace::Free(Recording::default()),
            _ => Trace::Off,
        },
        ..Script::default()
    }
}

fn contents() -> Result<Contents, Box<dyn Error>> {
    match variable("IMAGE").as_str() {
        "" => Ok(Contents::forgetful()),
        image => Ok(Contents::of_image(&std::fs::File::open(image)?, MOST_DATA)?),
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
