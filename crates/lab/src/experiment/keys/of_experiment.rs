//! What can be said of an experiment as a whole.

use super::{Flag, Form, GROUP, JOB, Key, to_json};
use crate::error::Error;
use crate::experiment::calls::CallLimit;
use crate::experiment::{DEFAULT_HOST, DEFAULT_MODEL, Experiment, cgroup, filesystem, setting};
use crate::quantity::{self, ACCEPTED_SIZE};
use crate::scheduler_spec::parse_hz;
use crate::virtio;
use crate::world::World;
use base::Bytes;
use serde_json::{Value, json};

/// A page cache with less does nothing but wait for itself.
const LEAST_MEMORY: Bytes = Bytes(1 << 20);
const TRANSPORTS: &str = "\"model\": as the device model says, \"virtio\"";

/// The keys of an experiment, in the order in which they are read and stand in results.
pub static EXPERIMENT: [Key<Experiment>; 27] = [
    Key::<Experiment>::new("title", Form::Text, "a text", "")
        .about("What the experiment is called.")
        .set(|it, text, _| set(&mut it.title, text.to_string()))
        .json("title", |it| json!(it.title)),
    Key::<Experiment>::new("story", Form::Text, "a paragraph", "")
        .about("What it shows, and where it comes from.")
        .set(|it, text, _| {
            set(&mut it.story, text.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .json("story", |it| json!(it.story)),
    Key::<Experiment>::new("origin", Form::Unwritten, "", "")
        .about("The file it was read from.")
        .json("origin", |it| json!(it.origin)),
    Key::<Experiment>::new("model", Form::Text, "a built-in model or a TOML file", DEFAULT_MODEL)
        .about("The disk.")
        .set(|it, text, _| set(&mut it.model, text.to_string()))
        .axis()
        .flags(&[Flag {
            name: "model",
            value: "NAME|FILE",
            help: "Device model: a built-in name or a TOML file [default: hdd-7200-sata]",
        }])
        .json("model", |it| json!(it.model)),
    Key::<Experiment>::new("fs", Form::Text, "`raw`, `ext4`, `xfs`", "raw")
        .about("The file system on the disk (docs/filesystems.md).")
        .set(|it, text, place| set(&mut it.mount, filesystem::parse(text, place)?))
        .axis()
        .flags(&[Flag {
            name: "fs",
            value: "FS",
            help: "File system: raw, ext4 or xfs [default: raw]",
        }])
        .json("fs", |it| json!(filesystem::name(it.mount.as_ref()))),
    Key::<Experiment>::new("mount_point", Form::Text, "a directory", "/mnt")
        .about("Where it is mounted; relative names begin there.")
        .set(|it, text, place| {
            set(&mut it.mount_point, Some(filesystem::parse_point(text, place)?))
        })
        .flags(&[Flag {
            name: "mount-point",
            value: "DIRECTORY",
            help: "Where the file system is mounted [default: /mnt]",
        }]),
    Key::<Experiment>::new("mount_options", Form::Text, "as in fstab", "the file system's own")
        .about("How it is mounted.")
        .set(|it, text, place| filesystem::set_options(&mut it.mount, text, place))
        .axis(),
    Key::<Experiment>::new(
        "write_cache",
        Form::Text,
        "`write back`, `write through`",
        "the model's",
    )
    .about("What the kernel is told of the disk's cache.")
    .set(|it, text, place| {
        set(&mut it.write_cache, Some(filesystem::parse_write_cache(text, place)?))
    })
    .axis(),
    Key::<Experiment>::new("host", Form::Text, "a built-in host or a TOML file", DEFAULT_HOST)
        .about("Cores, and what computing costs (docs/host.md).")
        .set(|it, text, _| set(&mut it.host, text.to_string()))
        .axis()
        .flags(&[Flag {
            name: "host",
            value: "NAME|FILE",
            help: "Cores and what computing costs: a built-in name or a TOML file [default: \
                   host-2020]",
        }])
        .json("host", |it| json!(it.host)),
    Key::<Experiment>::new("kernel", Form::Text, "a version", "each scheduler's last")
        .about("The kernel of schedulers that do not name one.")
        .set(|it, text, place| set(&mut it.kernel, Some((text.to_string(), place.to_string()))))
        .axis()
        .flags(&[Flag {
            name: "kernel",
            value: "VERSION",
            help: "Kernel of schedulers that do not name one; with --world linux any that is \
                   built (see: paternoster linux kernels)",
        }])
        .json("kernel", |it| json!(it.kernel.as_ref().map(|it| &it.0))),
    Key::<Experiment>::new(
        "hz",
        Form::Whole,
        "100, 250, 300, 1000",
        "as was usual in the kernel's time",
    )
    .about("The tick of every kernel.")
    .set(|it, text, place| set(&mut it.hz, Some(parse_hz(text, place)?)))
    .axis()
    .flags(&[Flag {
        name: "hz",
        value: "HZ",
        help: "Ticks of the kernel's clock in a second: 100, 250, 300 or 1000 [default: as \
                   was usual]",
    }])
    .json("hz", |it| json!(it.hz.map(|it| it.get()))),
    Key::<Experiment>::new("transport", Form::Text, "`model`, `virtio`", "model")
        .about("How the disk is attached: as the model says, or by one queue of at most 256.")
        .set(set_transport),
    Key::<Experiment>::new("queue_depth", Form::Whole, "1 to 256", "the model's")
        .about("Commands that the disk takes at once; it is behind virtio then.")
        .set(set_queue_depth)
        .axis(),
    Key::<Experiment>::new("memory", Form::Text, "a size", "4 GiB; with the world linux 512 MiB")
        .about("For the page cache and fio's $mb_memory.")
        .set(set_memory)
        .flags(&[Flag {
            name: "memory",
            value: "SIZE",
            help: "Memory of the machine, such as \"4 GiB\"",
        }])
        .json("memory", |it| json!(it.memory.map(|it| it.0))),
    Key::<Experiment>::new("world", Form::Unwritten, "sim, linux", "sim")
        .about("Where the experiment runs.")
        .set(|it, text, place| set(&mut it.worlds, World::parse_list(text, place)?))
        .flags(&[Flag {
            name: "world",
            value: "WORLD",
            help: "Worlds to run in: sim, linux (the kernel itself in virtual time, see \
                   paternoster linux) or sim,linux, which says how far the simulator is off",
        }]),
    Key::<Experiment>::new(
        "schedulers",
        Form::List,
        "a list of `NAME[@KERNEL][:TUNABLE=VALUE,…]`, or `all`",
        "none, mq-deadline",
    )
    .about("What is compared.")
    .flags(&[Flag {
        name: "scheduler",
        value: "SCHEDULER",
        help: "Schedulers, as NAME[@KERNEL][:TUNABLE=VALUE,…], or all [default: none, \
                   mq-deadline]",
    }])
    .json("schedulers", |it| it.schedulers.iter().map(|it| it.0.as_str()).collect()),
    Key::<Experiment>::new("settings", Form::Table, "a table of numbers and texts", "")
        .about(
            "Settings of the queue and of writeback, tunables of whichever scheduler has them. \
                What a scheduler is asked for with goes before these, and an axis before both. In \
                the world linux any file of the queue, and of control groups as `GROUP/FILE`.",
        )
        .flags(&[Flag {
            name: "set",
            value: "SETTINGS",
            help: "Settings of the queue for all schedulers: NAME=VALUE,…; in the world linux any \
                   file of the queue there, and of control groups as GROUP/FILE=VALUE",
        }])
        .json("settings", |it| setting::to_json(&it.settings)),
    Key::<Experiment>::new("blkio", Form::Flag, "`true`, `false`", "true")
        .about(
            "Whether there is a controller of block I/O; without it all tasks are in one \
                group for schedulers.",
        )
        .set(|it, text, place| set(&mut it.blkio, cgroup::parse_blkio(text, place)?))
        .axis()
        .json("blkio", |it| json!(it.blkio)),
    Key::<Experiment>::new("cgroup_writeback", Form::Flag, "`true`, `false`", "true from 6.12 on")
        .about("Whether control groups have flushers of their own (docs/filesystems.md).")
        .set(|it, text, _| set(&mut it.cgroup_writeback, Some(text.to_string())))
        .axis(),
    Key::<Experiment>::new("cgroup", Form::List, "`[[cgroup]]` tables", "")
        .about("Control groups with weights, limits and what else the kernel has for them.")
        .json("cgroups", |it| it.cgroups.iter().map(|it| to_json(&GROUP, it)).collect()),
    Key::<Experiment>::new("setup", Form::List, "a list of commands", "")
        .about("What is done before the jobs, one line after the other.")
        .json("setup", |it| it.setup.iter().map(|it| it.work.to_string()).collect()),
    Key::<Experiment>::new("job", Form::List, "`[[job]]` tables", "")
        .about("What is run; the first job is the one that matters.")
        .flags(&[Flag {
            name: "job",
            value: "JOB",
            help: "A job: NAME[:cgroup=…,weight=…,ioprio=…,io.max=…] and its command; may be \
                   repeated",
        }])
        .json("jobs", |it| it.jobs.iter().map(|it| to_json(&JOB, it)).collect()),
    Key::<Experiment>::new("axes", Form::Table, "a table of lists", "")
        .about(
            "What is varied: a word used as `{word}` in jobs, a tunable, a setting, or a key \
                that may be an axis.",
        )
        .flags(&[Flag {
            name: "vary",
            value: "KEY=VALUES",
            help: "Something to vary: KEY=a,b,c with a word used as {KEY} in jobs, a tunable, a \
                   setting, model, host, kernel or hz; may be repeated",
        }])
        .json("axes", |it| {
            Value::Object(it.axes.iter().map(|it| (it.name.clone(), json!(it.values))).collect())
        }),
    Key::<Experiment>::new("seeds", Form::Composite, "a number or a list", "5")
        .about("What randomness derives from, one run for each.")
        .flags(&[
            Flag { name: "seed", value: "N", help: "First seed [default: 1]" },
            Flag { name: "runs", value: "N", help: "Number of seeds [default: 5]" },
        ])
        .json("seeds", |it| json!(it.seeds)),
    Key::<Experiment>::new(
        "calls",
        Form::Word,
        "a whole number, `all`",
        "4000000 where nobody limits the time, 200000 in the world linux",
    )
    .about(
        "After so many I/O calls a run ends although its jobs have not; in the world linux, after \
         so many commands of the disk.",
    )
    .set(|it, text, place| set(&mut it.calls, CallLimit::parse(text, place)?))
    .flags(&[Flag {
        name: "calls",
        value: "N|all",
        help: "I/O calls after which a run ends although its jobs have not, in the world linux \
               commands of the disk [default: 4000000 and 200000 where nobody limits the time, \
               otherwise all]",
    }])
    .json("calls", |it| it.calls.to_json()),
    Key::<Experiment>::new("metric", Form::Text, "a figure", "by what the first job waits for")
        .about("The figure by which schedulers are judged.")
        .set(|it, text, place| set(&mut it.metric, Some((text.to_string(), place.to_string()))))
        .flags(&[Flag {
            name: "metric",
            value: "FIGURE",
            help: "Figure by which schedulers are judged, such as db.read_p99.9 or bw [default: \
                   by what the first job waits for]",
        }])
        .json("metric", |it| json!(it.metric.as_ref().map(|it| &it.0))),
    Key::<Experiment>::new("expect", Form::Table, "a table of figures", "")
        .about("Published or measured figures, printed beside ours."),
];

fn set<T>(what: &mut T, value: T) -> Result<(), Error> {
    *what = value;
    Ok(())
}

fn set_transport(it: &mut Experiment, text: &str, place: &str) -> Result<(), Error> {
    it.virtio = match text {
        "model" => false,
        "virtio" => true,
        "loop" => {
            return Err(Error::not_yet(place, format!("transport = \"{text}\""), TRANSPORTS));
        }
        _ => {
            let problem = format!("unknown transport \"{text}\"");
            return Err(Error::bad(place, problem, TRANSPORTS));
        }
    };
    Ok(())
}

fn set_queue_depth(it: &mut Experiment, text: &str, place: &str) -> Result<(), Error> {
    let depth = text.parse().ok().filter(|depth| (1..=virtio::RING).contains(depth));
    let accepted = || format!("1 to {}", virtio::RING);
    let refuse = || Error::bad(place, format!("queue_depth \"{text}\""), accepted());
    it.queue_depth = Some(depth.ok_or_else(refuse)?);
    it.virtio = true;
    Ok(())
}

fn set_memory(it: &mut Experiment, text: &str, place: &str) -> Result<(), Error> {
    // An option says its own name.
    let name = if place.starts_with("--") { "" } else { "memory " };
    let accepted = || format!("{ACCEPTED_SIZE}, {} MiB at least", LEAST_MEMORY.0 >> 20);
    let refuse = || Error::bad(place, format!("{name}\"{text}\""), accepted());
    let size = quantity::size(text).filter(|size| *size >= LEAST_MEMORY);
    it.memory = Some(size.ok_or_else(refuse)?);
    Ok(())
}
