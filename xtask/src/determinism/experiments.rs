//! Twenty experiments that differ in program, scheduler, queue depth, disk and in what lies
//! between program and disk; each as a guest.

use std::fmt;

use base::{Bytes, Duration};
use device::Model;
use linux::{
    Cgroup, Contents, Disk, Guest, Hierarchy, Job, Kernel, Protocol, Recording, Root, Script,
    Setting, Trace, Watchdog,
};

/// What a job works on: the disk, or a file on it.
const TARGET: &str = "{target}";
/// The programs that roots need; not all hosts have the last.
pub const PROGRAMS: [&str; 5] = ["dd", "fio", "ionice", "mkfs.ext4", "mkfs.xfs"];
/// Another one, whose source stands beside this file.
pub const REQUESTS: &str = "requests";
/// Room for the data on a disk that has a file system.
const DATA: Bytes = Bytes(1 << 30);
/// Room for the events of a recording.
const EVENTS: Bytes = Bytes(48 << 20);
/// The memory of a guest.
const MEMORY: Bytes = Bytes(512 << 20);
/// Weights of the groups of jobs, one after the other.
const WEIGHTS: [&str; 3] = ["500", "100", "50"];

/// What lies between the jobs and the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing.
    Raw,
    /// Nothing, and there is a second disk of the same kind.
    TwoDisks,
    /// A file system.
    FileSystem(&'static str),
    /// A control group for each job, with a weight of its own.
    Weights(Hierarchy),
    /// One group, whose operations are limited.
    Limit,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Raw => f.write_str("raw"),
            Place::TwoDisks => f.write_str("two disks"),
            Place::FileSystem(name) => f.write_str(name),
            Place::Weights(Hierarchy::V2) => f.write_str("cgroups"),
            Place::Weights(Hierarchy::V1) => f.write_str("cgroups v1"),
            Place::Limit => f.write_str("io.max"),
        }
    }
}

/// One experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What the jobs are, in a few words.
    pub title: &'static str,
    /// Commands that run at the same time.
    pub jobs: &'static [&'static str],
    /// The scheduler.
    pub scheduler: &'static str,
    /// The depth of the queue.
    pub depth: u32,
    /// The disk.
    pub model: &'static str,
    /// What lies in between.
    pub place: Place,
}

/// All of them.
pub fn experiments() -> Vec<Experiment> {
    use Place::{FileSystem, Limit, Raw, TwoDisks, Weights};
    let mut all = Vec::new();
    let mut add = |title, jobs, scheduler, depth, model, place| {
        all.push(Experiment { title, jobs, scheduler, depth, model, place });
    };
    add("16 random readers", &[READERS], "none", 31, "nvme-980pro", Raw);
    add("24 random readers and writers", &[MIXED], "mq-deadline", 4, "hdd-7200-sata", Raw);
    add("24 random readers and writers", &[MIXED], "bfq", 8, "hdd-7200-sata", Raw);
    add("24 random readers and writers", &[MIXED], "kyber", 16, "ssd-sata-m4", Raw);
    add("64 sequential readers", &[SEQUENTIAL], "mq-deadline", 64, "vm-ssd-m4", Raw);
    add("16 readers and one tag", &[READERS], "none", 1, "vm-disk", Raw);
    add("dd reads", &[DD_READS], "none", 1, "null", Raw);
    add("dd writes and flushes", &[DD_FLUSHES], "mq-deadline", 1, "hdd-7200-sata", Raw);
    add("dd writes back", &[DD_CACHED], "mq-deadline", 32, "hdd-7200-sata", FileSystem("ext4"));
    add("dd reads ahead, twice", &[DD_AHEAD], "bfq", 32, "hdd-7200-sata", FileSystem("xfs"));
    add("small files", &[FILES], "bfq", 32, "ssd-sata-px256m5s", FileSystem("xfs"));
    add("small files", &[FILES], "kyber", 64, "nvme-plp", FileSystem("ext4"));
    add("fio reads, libaio", &[FIO_READS], "mq-deadline", 31, "hdd-7200-sata", Raw);
    add("fio mixes, 4 processes", &[FIO_MIXES], "bfq", 16, "ssd-sata-m4", Raw);
    add("fio at a rate", &[FIO_RATE], "none", 64, "cloud-gp3", Raw);
    add("fio writes and syncs", &[FIO_SYNCS], "bfq", 32, "vm-disk", FileSystem("ext4"));
    add("three weights", &GROUPS, "bfq", 4, "hdd-7200-sata", Weights(Hierarchy::V2));
    add("three weights, version 1", &GROUPS, "bfq", 4, "ssd-sata-m4", Weights(Hierarchy::V1));
    add("a limit", &GROUPS, "mq-deadline", 32, "nvme-980pro", Limit);
    add("classes on two disks", &CLASSES, "mq-deadline", 2, "hdd-sas-2009", TwoDisks);
    all
}

const READERS: &str = "requests {target} 16 100 4096 random 0";
const MIXED: &str = "requests {target} 24 40 4096 random 40";
const SEQUENTIAL: &str = "requests {target} 64 60 16384 sequential 0";
const DD_READS: &str = "dd if={target} of=/dev/null bs=4k count=2000 iflag=direct";
const DD_FLUSHES: &str = "dd if=/dev/zero of={target} bs=8k count=150 oflag=dsync";
const DD_CACHED: &str = "dd if=/dev/zero of={target} bs=64k count=800 conv=fsync";
const DD_AHEAD: &str = "dd if=/dev/zero of={target} bs=1M count=48 conv=fsync
    echo 3 >/proc/sys/vm/drop_caches
    dd if={target} of=/dev/null bs=128k count=150 & dd if={target} of=/dev/null bs=32k skip=800
    wait";
const FILES: &str = "for i in $(seq 60); do echo $i >{target}.$i; sync; done; rm {target}.*; sync";
const FIO_READS: &str = "fio --name=a --filename={target} --rw=randread --bs=4k --direct=1 \
    --ioengine=libaio --iodepth=32 --size=1g --io_size=4m --clocksource=clock_gettime \
    --output-format=json";
const FIO_MIXES: &str = "fio --name=a --filename={target} --rw=randrw --bsrange=4k-16k --direct=1 \
    --numjobs=4 --size=1g --io_size=2m --clocksource=clock_gettime --output-format=json";
const FIO_RATE: &str = "fio --name=a --filename={target} --rw=randread --bs=4k --direct=1 \
    --ioengine=libaio --iodepth=16 --rate_iops=2000 --rate_process=poisson --size=1g \
    --runtime=1 --clocksource=clock_gettime --output-format=json";
const FIO_SYNCS: &str = "fio --name=a --filename={target} --rw=randwrite --bs=4k --fsync=4 \
    --size=16m --io_size=1m --clocksource=clock_gettime --output-format=json";
const GROUPS: [&str; 3] = [
    "requests {target} 4 60 65536 sequential 0",
    "requests {target} 4 60 4096 random 0",
    "dd if=/dev/zero of={target} bs=64k count=100 seek=80000 oflag=direct",
];
const CLASSES: [&str; 3] = [
    "ionice -c 1 -n 2 requests {target} 2 60 4096 random 0",
    "ionice -c 3 requests {target} 4 40 4096 random 20",
    "requests /dev/vdb 6 50 4096 random 10",
];

impl Experiment {
    /// The guest that does it.
    pub fn guest<'a>(&self, kernel: &'a Kernel, root: &'a Root) -> Result<Guest<'a>, String> {
        let model = Model::find(self.model).map_err(|error| error.to_string())?;
        let disks = if self.place == Place::TwoDisks { 2 } else { 1 };
        let contents = match self.place {
            Place::FileSystem(_) => Contents::new(DATA),
            _ => Contents::forgetful(),
        };
        let disk = |number: u64| Disk {
            name: model.name().to_string(),
            device: model.build(1 + number),
            contents: contents.clone(),
        };
        Ok(Guest {
            kernel,
            root,
            memory: MEMORY,
            disks: (0..disks).map(disk).collect(),
            queue_depth: self.depth,
            script: self.script(disks as usize),
            seed: 0,
            protocol: Protocol::SharedMemory,
            watchdog: Watchdog::default(),
            core: None,
        })
    }

    fn script(&self, disks: usize) -> Script {
        let settings = |disk| {
            let rotational = u8::from(self.model.starts_with("hdd")).to_string();
            [
                Setting::queue(disk, "scheduler", self.scheduler),
                Setting::queue(disk, "rotational", rotational),
            ]
        };
        let recording = Recording { buffer: EVENTS, priorities: true, ..Recording::default() };
        let mut script = Script {
            settings: (0..disks).flat_map(settings).collect(),
            trace: Trace::Perturbing(recording),
            ..Script::default()
        };
        let target = match self.place {
            Place::FileSystem(name) => {
                let quiet = if name == "ext4" { "-q -E nodiscard" } else { "-q -K" };
                script.setup = vec![
                    format!("mkfs.{name} {quiet} /dev/vda"),
                    format!("mkdir /mnt/disk && mount -t {name} /dev/vda /mnt/disk"),
                ];
                script.teardown = vec!["umount /mnt/disk".to_string()];
                "/mnt/disk/file"
            }
            _ => "/dev/vda",
        };
        self.make_groups(&mut script);
        for (number, command) in self.jobs.iter().enumerate() {
            script.jobs.push(Job {
                name: number.to_string(),
                command: command.replace(TARGET, target),
                start: Duration::from_millis(3 * number as u64),
                cgroup: script.cgroups.get(number).map(|group| group.path.clone()),
                ..Job::default()
            });
        }
        script
    }

    fn make_groups(&self, script: &mut Script) {
        let mut add = |path: String, setting: Setting| {
            script.cgroups.push(Cgroup { path, settings: vec![setting] });
        };
        match self.place {
            Place::Weights(hierarchy) => {
                script.hierarchy = hierarchy;
                let file = match hierarchy {
                    Hierarchy::V2 => "io.bfq.weight",
                    Hierarchy::V1 => "blkio.bfq.weight",
                };
                for weight in WEIGHTS {
                    add(format!("weight{weight}"), Setting::new(file, weight));
                }
            }
            Place::Limit => {
                add("limited".to_string(), Setting::new("io.max", "{vda} riops=900 wiops=300"));
            }
            Place::Raw | Place::TwoDisks | Place::FileSystem(_) => {}
        }
    }
}
