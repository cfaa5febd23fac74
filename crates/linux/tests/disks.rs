//! The device log is exact: depths, data, several disks, damaged guests are errors.

mod common;

use base::{Bytes, Duration};
use common::{KERNEL, constant, finish, guest, machine, modelled};
use device::Model;
use linux::{Contents, Disk, Job, Script, Setting};
use testing::needs::{BUSYBOX, FIO};

fn job(command: &str) -> Job {
    Job { name: "job".into(), command: command.into(), ..Job::default() }
}

/// As many processes as `readers`, each reading blocks of its own, one at a time.
fn readers(readers: u32) -> String {
    format!(
        "for i in $(seq {readers}); do
             dd if=/dev/vda of=/dev/null bs=4k count=3 skip=$((i * 1000)) iflag=direct &
         done; wait"
    )
}

fn the_queue_depth_is_exactly_what_was_asked_for() {
    let machine = machine();
    for depth in [1, 31, 64] {
        let script = Script {
            settings: vec![Setting::queue(0, "scheduler", "mq-deadline")],
            jobs: vec![job(&readers(90))],
            ..Script::default()
        };
        let finished = finish(guest(machine, vec![constant(1000, 64)], depth, script));
        assert_eq!(finished.jobs[0].exit, 0, "{finished:?}");
        assert_eq!(finished.log.deepest(0), depth as usize);
    }
}

fn two_disks_keep_their_own_times_and_data() {
    let machine = machine();
    let commands = [
        "yes one | head -c 1048576 | dd of=/dev/vda bs=64k iflag=fullblock oflag=direct",
        "yes two | head -c 1048576 | dd of=/dev/vdb bs=64k iflag=fullblock oflag=direct",
    ];
    let script = Script {
        jobs: commands.map(job).into(),
        teardown: vec![
            "echo 3 > /proc/sys/vm/drop_caches".into(),
            "test $(dd if=/dev/vda bs=64k count=16 | uniq | head -c 3) = one".into(),
            "test $(dd if=/dev/vdb bs=64k count=16 | uniq | head -c 3) = two".into(),
        ],
        ..Script::default()
    };
    let finished = finish(guest(machine, vec![constant(100, 64), constant(300, 64)], 32, script));
    for (disk, service) in [(0, 100), (1, 300)] {
        let mut times = finished.log.served.iter().filter(|served| served.disk == disk);
        assert!(
            times.all(|one| one.completed.since(one.accepted) == Duration::from_micros(service))
        );
        assert_eq!(finished.contents[disk as usize].held(), Bytes(1 << 20));
    }
}

fn what_is_on_a_disk_can_be_handed_to_the_next_guest() {
    let machine = machine();
    let write = "printf paternoster | dd of=/dev/vda conv=notrunc,fsync";
    let script = Script { jobs: vec![job(write)], ..Script::default() };
    let mut finished = finish(guest(machine, vec![constant(100, 64)], 32, script));
    let contents = finished.contents.remove(0);
    let disk = Disk { contents, ..constant(50, 64) };
    let script = Script { jobs: vec![job("head -c 11 /dev/vda")], ..Script::default() };
    let finished = finish(guest(machine, vec![disk], 32, script));
    assert_eq!(finished.jobs[0].output, b"paternoster");
}

fn data_beyond_the_memory_for_it_is_kept_all_the_same() {
    let machine = machine();
    let disk = Disk { contents: Contents::new(Bytes(1 << 20)), ..constant(10, 64) };
    let command = "yes | head -c 4194304 | dd of=/dev/vda bs=64k iflag=fullblock oflag=direct";
    let script = Script { jobs: vec![job(command)], ..Script::default() };
    let finished = finish(guest(machine, vec![disk], 32, script));
    assert_eq!(finished.contents[0].held(), Bytes(4 << 20));
}

fn every_kind_of_model_serves_a_guest() {
    let machine = machine();
    for name in ["hdd-7200-sata", "nvme-980pro", "cloud-gp3", "vm-disk"] {
        let model = Model::builtin(name).unwrap();
        let command = "dd if=/dev/zero of=/dev/vda bs=64k count=20 oflag=direct,dsync";
        let script = Script { jobs: vec![job(command)], ..Script::default() };
        let finished = finish(guest(machine, vec![modelled(&model)], 16, script));
        assert_eq!(finished.jobs[0].exit, 0, "{name}: {finished:?}");
        assert!(finished.log.served.len() >= 20, "{name}");
    }
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [KERNEL, BUSYBOX, FIO] => the_queue_depth_is_exactly_what_was_asked_for,
            two_disks_keep_their_own_times_and_data,
            what_is_on_a_disk_can_be_handed_to_the_next_guest,
            data_beyond_the_memory_for_it_is_kept_all_the_same,
            every_kind_of_model_serves_a_guest,
    ])
}
