//! A seeded family of loads on the kernel of the world `linux`: what our schedulers are judged by
//! where nobody has recorded anything yet.
//!
//! A member is a disk, a queue and some jobs, all drawn from a seed: reads and writes, direct and
//! through the page cache, single and in batches, scattered, sequential and in neighbourhoods that
//! merge, of all priority classes, with as many requests outstanding as it takes to keep the
//! scheduler busy; queue depths, tunables and numbers of requests of every kind. Each is recorded
//! on a scheduler that was just attached, so that its state is known from the first request on.
//!
//! Leaves out: discards, file systems.

mod bfq;

use base::Rng;
use device::Model;
use lab::Error;
use lab::worlds::linux::recording::Recorded;
use lab::worlds::linux::{LinuxWorld, is_schedulers};
use linux::{Cgroup, Job, Script, Setting};

/// A load with its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What to call it; where it stands in the family.
    pub name: String,
    /// The model of the disk.
    pub model: &'static str,
    /// Commands that the driver has in the disk at once, at most.
    pub queue_depth: u32,
    /// The scheduler.
    pub scheduler: &'static str,
    /// Files below `queue/`, in the order of writing.
    pub settings: Vec<(String, i64)>,
    /// Control groups with their weights for BFQ.
    pub groups: Vec<(&'static str, u32)>,
    /// Descriptions of processes, as the load takes them, by the control group they are in.
    pub jobs: Vec<(&'static str, Vec<String>)>,
    /// Requests of all of them together.
    pub requests: u64,
    /// Of the load and of the guest.
    pub seed: u64,
}

/// Disks from slow to fast, all of which take the deepest queue (one of each kind).
const MODELS: [&str; 4] = ["hdd-7200-sata", "hdd-sas-2009", "vm-ssd-m4", "ssd-sata-m4"];
/// The same with one that is faster than a core.
const WITH_NVME: [&str; 5] =
    ["hdd-7200-sata", "hdd-sas-2009", "vm-ssd-m4", "ssd-sata-m4", "nvme-980pro"];
const DEPTHS: [u32; 5] = [1, 31, 64, 4, 31];
/// Values that are tried for each file; most members have the default of most.
type Tunables = [(&'static str, &'static [i64])];

/// Those of mq-deadline.
const OF_MQ_DEADLINE: &Tunables = &[
    ("iosched/fifo_batch", &[1, 4, 64, 0, 2]),
    ("iosched/writes_starved", &[0, 1, 5, -1]),
    ("iosched/read_expire", &[50, 8, 1, 150, 3000]),
    ("iosched/write_expire", &[100, 20, 500, 1]),
    ("iosched/prio_aging_expire", &[200, 20, 1000, 0]),
    ("iosched/front_merges", &[0]),
    ("nomerges", &[1, 2]),
    ("max_sectors_kb", &[64, 256]),
];

/// Those of Kyber: targets that are met and missed on all disks, so that tokens become few.
const OF_KYBER: &Tunables = &[
    ("iosched/read_lat_nsec", &[100_000, 1_000_000, 20_000_000, 1_000_000_000]),
    ("iosched/write_lat_nsec", &[100_000, 1_000_000, 20_000_000, 1_000_000_000]),
    ("nomerges", &[1, 2]),
    ("max_sectors_kb", &[64, 256]),
];

impl Member {
    /// The members from `first` on of the family of a seed, for a scheduler.
    pub fn family(scheduler: &'static str, seed: u64, requests: u64, count: u64) -> Vec<Member> {
        (0..count).map(|number| Member::new(scheduler, seed, requests, number)).collect()
    }

    fn new(scheduler: &'static str, seed: u64, requests: u64, number: u64) -> Member {
        let mut rng = Rng::stream(seed, &format!("conform/{scheduler}/{number}"));
        let at = number as usize;
        let queue_depth = DEPTHS[at % DEPTHS.len()];
        let mut settings = Vec::new();
        let is_bfq = scheduler == "bfq";
        let tunables = match scheduler {
            "bfq" => bfq::TUNABLES,
            "kyber" => OF_KYBER,
            _ => OF_MQ_DEADLINE,
        };
        // Most of what Kyber does depends on how far its targets are from what the disk can do.
        let often = if scheduler == "kyber" { 3 } else { 1 };
        for (name, values) in tunables.iter().copied() {
            let own = name.starts_with("iosched/");
            if (!own || scheduler != "none") && rng.chance(if own { often } else { 1 }, 4) {
                settings.push((name.to_string(), *pick(&mut rng, values)));
            }
        }
        // Without a scheduler, requests are the driver's, and cannot be more.
        if scheduler != "none" && rng.chance(1, 2) {
            // Fewer requests than commands would leave nothing to choose from.
            let few = i64::from(queue_depth) + 8;
            let value = *pick(&mut rng, &[few, 100, 256, 1000]);
            settings.push(("nr_requests".to_string(), value));
            if scheduler == "mq-deadline" && rng.chance(1, 3) {
                let depth = pick(&mut rng, &[1, 4, 16]);
                settings.push(("iosched/async_depth".to_string(), *depth));
            }
        }
        let (groups, jobs) = if is_bfq {
            let load = bfq::load(&mut rng, number);
            (load.groups, load.jobs)
        } else {
            (Vec::new(), vec![("", jobs(&mut rng))])
        };
        let models: &[&str] = match scheduler {
            "bfq" | "kyber" => &WITH_NVME,
            _ => &MODELS,
        };
        Member {
            name: format!("{scheduler}-{seed}-{number:03}"),
            model: models[at / DEPTHS.len() % models.len()],
            queue_depth,
            scheduler,
            settings,
            groups,
            jobs,
            requests,
            seed: seed * 1000 + number,
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, values: &'a [T]) -> &'a T {
    &values[rng.below(values.len() as u64) as usize]
}

/// Two to six processes, at least one of which keeps many requests outstanding.
fn jobs(rng: &mut Rng) -> Vec<String> {
    let has_classes = rng.chance(1, 3);
    let count = rng.between(2, 6);
    let mut jobs: Vec<String> = (0..count).map(|number| job(rng, number == 0)).collect();
    for job in &mut jobs {
        if has_classes {
            let class = *pick(rng, &[1, 2, 2, 3, 0]);
            job.push_str(&format!(",class={class},level={}", rng.below(8)));
        } else if rng.chance(1, 8) {
            // Levels of one class, which keep requests from merging and order nothing.
            job.push_str(&format!(",class=2,level={}", rng.below(8)));
        }
        if rng.chance(1, 4) {
            job.push_str(&format!(",start={}", rng.below(50_000)));
        }
        if rng.chance(1, 4) {
            job.push_str(&format!(",think={}", pick(rng, &[5, 100, 1000, 8000])));
        }
    }
    jobs
}

fn job(rng: &mut Rng, is_deep: bool) -> String {
    let reads = pick(rng, &[0, 30, 50, 70, 100]);
    let (min, max) = pick(rng, &[(4, 4), (4, 32), (4, 128), (64, 512), (16, 16)]);
    let (base, size) = pick(rng, &[(0, 8), (0, 1024), (16, 64), (1000, 30_000)]);
    let place = format!("reads={reads},min={min},max={max},base={base},size={size}");
    let pattern = rng.below(3);
    if !is_deep && rng.chance(1, 4) {
        // Through the page cache: read-ahead, asynchronous writes, flushes.
        let (sync, flush) = pick(rng, &[(16, 0), (64, 500), (0, 100), (32, 64), (200, 0)]);
        return format!("{place},pattern={pattern},depth=0,sync={sync},flush={flush}");
    }
    let depth = if is_deep { pick(rng, &[128, 300, 600]) } else { pick(rng, &[1, 4, 16, 48]) };
    let batch = *pick(rng, &[1, 2, 8, 33]);
    format!("{place},pattern={pattern},depth={depth},batch={}", batch.min(*depth))
}

/// How often a load is halved at most, so that its recording has room.
const HALVED: u32 = 6;

/// Tries it with so many requests, and with half as many where the recording has no room: what
/// came of it, and with how many. A large buffered load without merges is hundreds of events each.
fn with_room<T>(
    requests: u64,
    mut record: impl FnMut(u64) -> Result<T, Error>,
) -> Result<(T, u64), Error> {
    for halved in 0..HALVED {
        match record(requests >> halved) {
            Err(Error::NoRoom { .. }) => {}
            other => return other.map(|it| (it, requests >> halved)),
        }
    }
    record(requests >> HALVED).map(|it| (it, requests >> HALVED))
}

impl Member {
    /// Records it in a world that has the load, with so many of its requests as there is room for:
    /// what was recorded, and of which member.
    pub fn record(&self, world: &LinuxWorld, load: &str) -> Result<(Recorded, Member), Error> {
        let shorter = |requests| Member { requests, ..self.clone() };
        let recorded = with_room(self.requests, |it| shorter(it).record_all(world, load));
        recorded.map(|(recorded, requests)| (recorded, shorter(requests)))
    }

    fn record_all(&self, world: &LinuxWorld, load: &str) -> Result<Recorded, Error> {
        let model = Model::find(self.model)?;
        let rotational = i64::from(model.facts().rotational);
        let share = self.requests / self.jobs.len() as u64;
        let jobs = self.jobs.iter().zip(self.seed..).map(|((group, jobs), seed)| Job {
            name: "load".to_string(),
            command: format!("{load} /dev/vda {seed} {share} {}", jobs.join(" ")),
            cgroup: (!group.is_empty()).then(|| group.to_string()),
            ..Job::default()
        });
        let cgroups = self.groups.iter().map(|(path, weight)| Cgroup {
            path: path.to_string(),
            settings: vec![Setting::new("io.bfq.weight", weight.to_string())],
        });
        let set = |file: &str, value: &str| {
            let own = file.strip_prefix("iosched/");
            let of_queue = own.filter(|name| !is_schedulers(world.rules(), name));
            Setting::queue(0, of_queue.unwrap_or(file), value)
        };
        let mut settings = vec![
            set("rotational", &rotational.to_string()),
            set("wbt_lat_usec", "0"),
            // What is attached already would keep what it remembers of the boot.
            set("scheduler", "none"),
            set("scheduler", self.scheduler),
        ];
        settings.extend(self.settings.iter().map(|(file, value)| set(file, &value.to_string())));
        let script = Script {
            settings,
            cgroups: cgroups.collect(),
            jobs: jobs.collect(),
            ..Script::default()
        };
        let said = |cause: Error| match cause {
            Error::NoRoom { .. } => cause,
            _ => Error::linux(format!("{}: {cause}", self.name)),
        };
        let (finished, recorded) =
            world.record(&model, self.queue_depth, script, self.seed).map_err(said)?;
        if let Some(job) = finished.jobs.iter().find(|job| job.exit != 0) {
            let why = String::from_utf8_lossy(&job.errors);
            return Err(Error::linux(format!("{}: the load failed: {}", self.name, why.trim())));
        }
        Ok(recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_that_of_its_seed() {
        let family = |seed| Member::family("mq-deadline", seed, 100, 30);
        assert_eq!(family(1), family(1));
        assert_ne!(family(1), family(2));
        assert_eq!(family(1)[..10], Member::family("mq-deadline", 1, 100, 10)[..]);
    }

    #[test]
    fn a_load_whose_recording_has_no_room_is_halved_until_it_has() {
        let record = |room| {
            move |requests| {
                let lost = Error::NoRoom { lost: requests };
                if requests > room { Err(lost) } else { Ok(requests) }
            }
        };
        assert_eq!(with_room(12_000, record(12_000)).unwrap(), (12_000, 12_000));
        assert_eq!(with_room(12_000, record(4_000)).unwrap(), (3_000, 3_000));
        assert!(matches!(with_room(12_000, record(1)), Err(Error::NoRoom { lost: 187 })));
        let fails = |_| Err::<(), _>(Error::linux("it does not boot"));
        assert!(matches!(with_room(12_000, fails), Err(Error::Linux(_))));
    }

    #[test]
    fn members_without_a_scheduler_set_nothing_of_one() {
        let members = Member::family("none", 1, 100, 50);
        let mut names = members.iter().flat_map(|it| &it.settings).map(|it| it.0.as_str());
        assert!(names.all(|name| !name.starts_with("iosched/") && name != "nr_requests"));
    }
}
