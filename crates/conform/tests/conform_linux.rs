//! Decisions of our schedulers against the kernel in virtual time. Needs a kernel in the cache.

use conform::family::Member;
use conform::{Conformity, Options, conform, conform_recording};
use lab::plan::Plan;
use lab::recording::Recording;
use lab::worlds::linux::LinuxWorld;
use lab::{Experiment, World, matrix};
use linux::Directory;
use testing::Need;
use testing::needs::{BUSYBOX, CC, FIO};

mod floors;

/// The kernel of the user's cache.
const KERNEL: Need = testing::needs::kernel(linux::has_kernel);

/// The world with its load.
fn world() -> (LinuxWorld, &'static str) {
    let world = LinuxWorld::open(lab::world::KERNEL, &[]).unwrap();
    let load = world.add_load().unwrap();
    (world, load)
}

/// The first members of a family, recorded and judged.
fn judged(scheduler: &'static str, count: u64) -> Vec<Conformity> {
    let (world, load) = world();
    let judge = |member: Member| {
        let (recorded, _) = member.record(&world, load).unwrap();
        let recording = recorded.recording(&member.name).unwrap();
        conform_recording(&recording, &Options::default()).unwrap()
    };
    Member::family(scheduler, 1, 1_500, count).into_iter().map(judge).collect()
}

fn mq_deadline_decides_as_6_12() {
    let results = judged("mq-deadline", 10);
    floors::assert_above("mq-deadline@6.12", &results);
    let contested: u64 = results.iter().map(|it| it.contested).sum();
    assert!(contested > 5_000, "{contested}");
}

fn kyber_decides_as_6_12() {
    let results = judged("kyber", 10);
    floors::assert_above("kyber@6.12", &results);
    let contested: u64 = results.iter().map(|it| it.contested).sum();
    assert!(contested > 4_000, "{contested}");
}

fn none_issues_as_6_12() {
    floors::assert_above("none@6.12", &judged("none", 5));
}

fn a_recording_survives_its_files() {
    let (world, load) = world();
    let directory = Directory::make().unwrap();
    // Its tasks are of all classes.
    let member = Member::family("mq-deadline", 1, 600, 3).pop().expect("there are three");
    let (recorded, _) = member.record(&world, load).unwrap();
    recorded.write(directory.path()).unwrap();
    let at_hand = recorded.recording("at hand").unwrap();
    let (one, other) = (
        conform(directory.path(), &Options::default()).unwrap(),
        conform_recording(&at_hand, &Options::default()).unwrap(),
    );
    let from_files = Recording::read(directory.path(), None).unwrap();
    assert!(at_hand.tasks.ioprio.len() > 2, "{:?}", at_hand.tasks);
    assert_eq!(at_hand.tasks.ioprio, from_files.tasks.ioprio);
    assert!(one.dispatches > 100, "{one:?}");
    assert_eq!((one.dispatches, one.contested), (other.dispatches, other.contested));
    assert_eq!((one.agreed, one.free_agreed), (other.agreed, other.free_agreed));
}

const EXPERIMENT: &str = r#"
model = "hdd-7200-sata"
schedulers = ["mq-deadline"]
seeds = [7]
queue_depth = 4
[[job]]
name = "load"
cgroup = "db"
run = """fio --name=load --filename=/dev/sda --direct=1 --rw=randrw --bs=4k --size=1G \
         --ioengine=libaio --iodepth=32 --number_ios=400"""
"#;

fn a_comparison_is_recorded_without_any_influence_on_it() {
    let directory = Directory::make().unwrap();
    let run = |record_to: Option<&std::path::Path>| {
        let mut experiment = Experiment::parse("test", EXPERIMENT).unwrap();
        experiment.worlds = vec![World::Linux];
        matrix::run(Plan::new(experiment).unwrap(), record_to, 1, &|_| ()).unwrap()
    };
    let (plain, recorded) = (run(None), run(Some(directory.path())));
    let (plain, recorded) = (&plain.results[0], &recorded.results[0]);
    assert_eq!(plain.fingerprint, recorded.fingerprint);
    let result =
        conform(&directory.path().join("mq-deadline@6.12-seed7-linux"), &Options::default());
    let result = result.unwrap();
    assert!(result.contested > 300, "{result:?}");
    // How the boot left the scheduler is not known.
    assert!(result.agreement().unwrap() > 95.0, "{result:?}");
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, CC] => mq_deadline_decides_as_6_12,
            kyber_decides_as_6_12,
            none_issues_as_6_12,
            a_recording_survives_its_files;
        [KERNEL, BUSYBOX, FIO] => a_comparison_is_recorded_without_any_influence_on_it,
    ])
}
