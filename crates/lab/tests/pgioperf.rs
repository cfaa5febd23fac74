//! pgioperf in whole runs: it does to the disk what fio does with the same load, its readers come
//! along one behind the other, and its results are told apart.

use lab::figure::Figure;
use lab::matrix::{Report, run};
use lab::metrics::CallKind;
use lab::plan::Plan;
use lab::result::{JobResult, RunResult};
use lab::{Error, Experiment};

/// Bytes of the data on a machine with 256 MiB.
const DATA: u64 = 512 << 20;

/// Disk, seconds and seeds.
struct Setting(&'static str, u64, u64);

impl Setting {
    fn plan(&self, jobs: &str) -> Result<Plan, Error> {
        let Setting(disk, _, seeds) = self;
        let text = format!(
            "{disk}\nkernel = \"4.10\"\nfs = \"ext4\"\nmemory = \"256 MiB\"\nseeds = {seeds}\n\
             setup = [\"pgioperf --prepare\", \"drop_caches\"]\n{jobs}"
        );
        Plan::new(Experiment::parse("test", &text)?)
    }

    fn run(&self, jobs: &str) -> Report {
        let report = run(self.plan(jobs).unwrap(), None, 2, &|_| ()).unwrap();
        let failed = |it: &&RunResult| !it.succeeded();
        assert!(report.results.iter().find(failed).is_none(), "{:?}", report.results[0].exits);
        report
    }

    fn pgioperf(&self, options: &str) -> Report {
        let Setting(_, seconds, _) = self;
        self.run(&format!(
            "[[job]]\nname = \"pg\"\nrun = \"pgioperf {options}\"\nduration = \"{seconds}s\"\n"
        ))
    }

    /// The same load by fio: processes of their own, because each first process of a fio draws from
    /// the same sequence, unless `seed_of` gives it another.
    fn fio(&self, seed_of: &dyn Fn(u64) -> Option<u64>) -> Report {
        let Setting(_, seconds, _) = self;
        let log = DATA / 48 / 8192 * 8192;
        let job = |name: &str, seed: Option<u64>, options: &str| {
            let seed = seed.map(|it| format!("--randrepeat=0 --randseed={it}")).unwrap_or_default();
            format!(
                "[[job]]\nname = \"{name}\"\nrun = \"fio --name={name} --bs=8k --invalidate=0 \
                 --fadvise_hint=0 --time_based --runtime={seconds} {seed} {options}\"\n"
            )
        };
        let data = format!("--filename=data --ba=1 --size={DATA} --norandommap");
        let readers = (0..16).map(|number| {
            let options = format!("--rw=randread {data}");
            job(&format!("reader{number}"), seed_of(number), &options)
        });
        let checkpointer = format!("--rw=randwrite {data} --thinktime=200us --fsync=100000");
        let log = format!("--filename=wal --rw=write --size={log} --thinktime=1ms --fdatasync=5");
        let writers = [("checkpointer", 16, checkpointer), ("wal", 17, log)];
        let writers = writers.map(|(name, number, options)| job(name, seed_of(number), &options));
        self.run(&readers.chain(writers).collect::<String>())
    }
}

fn own_stream(_: u64) -> Option<u64> {
    None
}

/// What a load comes to: mean over all seeds.
struct Sum {
    /// Calls, and what they took together in nanoseconds: reads of data, writes of data and of the
    /// log, syncs.
    calls: [(f64, f64); 4],
    /// Reads and writes of the disk, and their bytes.
    disk: [f64; 4],
}

impl Sum {
    fn of(report: &Report) -> Sum {
        let seeds = report.results.len() as f64;
        let all =
            |of: &dyn Fn(&RunResult) -> f64| report.results.iter().map(of).sum::<f64>() / seeds;
        let calls = |part: &'static str, kind: CallKind| {
            let of = move |it: &&JobResult| it.name.contains(part) && it.call(kind).count > 0;
            let time = |it: &JobResult| {
                it.call(kind).count as f64 * it.call(kind).lat.mean.as_nanos() as f64
            };
            let count = all(&|it| {
                it.jobs.iter().filter(of).map(|job| job.call(kind).count as f64).sum::<f64>()
            });
            (count, all(&|it| it.jobs.iter().filter(of).map(time).sum::<f64>()) / count)
        };
        Sum {
            calls: [
                calls("reader", CallKind::Read),
                calls("checkpointer", CallKind::Write),
                calls("wal", CallKind::Write),
                calls("wal", CallKind::Sync),
            ],
            disk: [
                all(&|it| it.disk.reads as f64),
                all(&|it| it.disk.writes as f64),
                all(&|it| it.disk.read_bytes.0 as f64),
                all(&|it| it.disk.write_bytes.0 as f64),
            ],
        }
    }
}

fn assert_near(what: &str, ours: f64, of_fio: f64) {
    let ratio = ours / of_fio;
    assert!((0.98..=1.02).contains(&ratio), "{what}: {ours} here, {of_fio} by fio");
}

/// How long writes of the log take is left out: they wait for nothing but, a few times in a run,
/// for the pages that they write. Dirty pages are written in waves, every five seconds; a run that
/// ends between two of them, or after many, has the same number of writes.
#[test]
fn the_outcome_is_that_of_fio_with_the_same_load() {
    for setting in [
        Setting("model = \"hdd-7200-sata\"\nschedulers = [\"deadline\"]", 120, 6),
        Setting("model = \"ssd-sata-m4\"\nschedulers = [\"deadline\"]", 5, 2),
    ] {
        let [ours, of_fio] =
            [setting.pgioperf(""), setting.fio(&own_stream)].map(|it| Sum::of(&it));
        let kinds = ["reads", "writes of data", "writes of the log", "syncs of the log"];
        for (at, what) in kinds.iter().enumerate() {
            let what = format!("{what} on {}", setting.0);
            assert_near(&what, ours.calls[at].0, of_fio.calls[at].0);
            if at != 2 {
                assert_near(&format!("time of {what}"), ours.calls[at].1, of_fio.calls[at].1);
            }
        }
        for (at, what) in ["reads", "writes", "bytes read", "bytes written"].iter().enumerate() {
            let what = format!("the disk's {what} on {}", setting.0);
            assert_near(&what, ours.disk[at], of_fio.disk[at]);
        }
    }
}

#[test]
fn readers_come_along_one_behind_the_other_unless_each_has_a_sequence_of_its_own() {
    let setting = Setting("model = \"ssd-sata-m4\"\nschedulers = [\"noop\"]", 2, 1);
    let reads = |report: &Report| {
        let sum = Sum::of(report);
        (sum.disk[0] / sum.calls[0].0, sum.disk[2] / sum.disk[0])
    };
    // Sixteen readers and the checkpointer share what one of them reads: three pages, and a few
    // blocks of the file's map.
    let (commands, bytes) = reads(&setting.pgioperf(""));
    assert!((1.0 / 17.0..1.0 / 14.0).contains(&commands), "{commands}");
    assert!((12_288.0..13_312.0).contains(&bytes), "{bytes}");
    for report in [setting.pgioperf("--sequence=own"), setting.fio(&|number| Some(number + 1))] {
        let (commands, _) = reads(&report);
        assert!(commands > 0.5, "{commands}");
    }
}

#[test]
fn results_are_of_readers_checkpointer_and_log_and_commits_are_figures() {
    let setting = Setting("model = \"ssd-sata-m4\"\nschedulers = [\"noop\"]", 6, 1);
    let report = setting.pgioperf("--load=cfq-wbt --readers=3");
    let result = &report.results[0];
    let names: Vec<String> = result.jobs.iter().map(|it| it.name.clone()).collect();
    assert_eq!(names, ["pg/reader", "pg/checkpointer", "pg/wal"]);
    assert_eq!(result.jobs[0].tasks, 3);
    let value = |name: &str| Figure::parse(name, &names, "x").unwrap().value(result);
    let [commit, sync, write] = ["pg/wal.commit_mean", "pg/wal.sync_mean", "pg/wal.write_mean"]
        .map(|it| value(it).unwrap());
    assert!(commit > sync && commit < sync + 4.0 * write, "{commit} {sync} {write}");
    assert_eq!(value("pg/reader.commit_mean"), None);
    let wal = result.jobs[2].call(CallKind::Write).count;
    // The time may be over within a commit.
    let syncs = result.jobs[2].call(CallKind::Sync);
    assert_eq!(syncs.count + syncs.unfinished, wal.div_ceil(5));
    let kinds = ["read[", "wal["];
    let said = &result.exits[0].messages;
    assert!(kinds.iter().all(|kind| said.iter().any(|it| it.starts_with(kind))), "{said:?}");
}

#[test]
fn it_ends_when_it_has_said_enough_or_cannot_go_on() {
    let setting = Setting("model = \"ssd-sata-m4\"\nschedulers = [\"noop\"]", 60, 1);
    let result = &setting.pgioperf("--readers=1 --lines=10").results[0];
    // It looks every ten seconds.
    assert_eq!(result.elapsed.as_millis() / 100, 100, "{:?}", result.elapsed);
    let job = "[[job]]\nname = \"pg\"\nrun = \"pgioperf --size=600m\"\n";
    let report = run(setting.plan(job).unwrap(), None, 1, &|_| ()).unwrap();
    let exit = &report.results[0].exits[0];
    let said = "pgioperf: /mnt/data has not 629153792 bytes; accepted: what pgioperf --prepare \
                writes for the same --size and memory";
    assert!(exit.failed && exit.messages == [said], "{exit:?}");
}
