//! The command line as clap sees it; help, completions and the man page come from here.

// These comments are what --help prints, where brackets mean "may be left out".
#![allow(rustdoc::broken_intra_doc_links)]

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};
use lab::experiment::keys::{self, Key, flag};
use lab::{Error, Experiment};
use std::path::PathBuf;

/// A laboratory for Linux I/O schedulers.
#[derive(Debug, Parser)]
#[command(name = "paternoster", version, max_term_width = 100)]
#[command(after_help = "Examples:
  paternoster compare first-light
  paternoster compare -s all -- dd if=/dev/zero of=/dev/sda bs=4k count=1000 oflag=direct
  paternoster list tunables mq-deadline")]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run one load under several schedulers and say what differs
    Compare(Box<CompareOptions>),
    /// List what there is: schedulers, models, hosts, guests, kernels, experiments, programs,
    /// tunables, metrics
    List {
        /// schedulers, models, hosts, guests, kernels, experiments, programs, tunables or metrics
        subject: Option<String>,
        /// A model, host, guest, scheduler or experiment to show in full
        name: Option<String>,
    },
    /// Serve a model in real time as a block device (not available yet)
    #[command(hide = true)]
    Emulate(Later),
    /// Build, run or look around in the virtual-time kernel
    Linux {
        /// What to do with it.
        #[command(subcommand)]
        what: Box<LinuxVerb>,
    },
    /// Record the running kernel (not available yet)
    #[command(hide = true)]
    Record(Later),
    /// Say where the time went, what caused it and what to change
    Explain(Box<ExplainOptions>),
    /// Run a recorded load under other schedulers (not available yet; see compare TRACE)
    #[command(hide = true)]
    Whatif(Later),
    /// Compare decisions with recordings of the kernel
    Conform(Box<ConformOptions>),
    /// Audit what is configured (not available yet)
    #[command(hide = true)]
    Doctor(Later),
    /// Measure a device into a model (not available yet)
    #[command(hide = true)]
    Calibrate(Later),
    /// Print what makes a choice permanent (not available yet)
    #[command(hide = true)]
    Apply(Later),
    /// Print a completion script
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the man page
    Man {
        /// Of this verb
        verb: Option<String>,
    },
}

/// Whatever follows a verb that is not available yet.
#[derive(Debug, Args)]
pub struct Later {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

impl Verb {
    /// The word it was asked for with.
    pub fn name(&self) -> &'static str {
        match self {
            Verb::Compare(_) => "compare",
            Verb::List { .. } => "list",
            Verb::Emulate(_) => "emulate",
            Verb::Linux { .. } => "linux",
            Verb::Record(_) => "record",
            Verb::Explain(_) => "explain",
            Verb::Whatif(_) => "whatif",
            Verb::Conform(_) => "conform",
            Verb::Doctor(_) => "doctor",
            Verb::Calibrate(_) => "calibrate",
            Verb::Apply(_) => "apply",
            Verb::Completions { .. } => "completions",
            Verb::Man { .. } => "man",
        }
    }
}

/// What can be done with the kernel of the world `linux`.
#[derive(Debug, Subcommand)]
pub enum LinuxVerb {
    /// Build the kernel, once, into a cache; takes some minutes
    #[command(after_help = BUILD_HELP)]
    Build {
        /// Which kernel.
        #[command(flatten)]
        version: LinuxVersion,
        /// An unpacked source tree [default: Debian's package linux-source-6.12]
        #[arg(long, value_name = "TREE", conflicts_with_all = ["kernel", "suite"])]
        source: Option<PathBuf>,
        /// Suite of Debian's archive to fetch the source from, such as trixie-backports [default:
        /// the installed package, or the suites that apt knows here]
        #[arg(long)]
        suite: Option<String>,
        /// What the kernel is to be called besides its version
        #[arg(long = "as", value_name = "LABEL")]
        label: Option<String>,
        /// A symbol of the kernel's configuration; may be repeated
        #[arg(long = "config", value_name = "SYMBOL=VALUE")]
        configuration: Vec<String>,
        /// Compilers at once [default: one for each core]
        #[arg(long, value_name = "N")]
        jobs: Option<usize>,
    },
    /// List the kernels that are built
    Kernels,
    /// Remove a kernel that is built
    Remove {
        /// Its label, or its version as far as that is its alone.
        #[arg(required = true, value_name = "KERNEL")]
        kernel: String,
        /// Its tick, where several of that version are built
        #[arg(long)]
        hz: Option<u16>,
    },
    /// Run a command on the kernel, with a disk as /dev/sda
    #[command(after_help = RUN_HELP)]
    Run {
        /// Disk and scheduler.
        #[command(flatten)]
        machine: LinuxMachine,
        /// Record the block layer's events into a directory, for conform, and for blkparse -i vda
        #[arg(long, value_name = "DIRECTORY")]
        record: Option<PathBuf>,
        /// Record without shifting anything: times are those of the disk, others lie in between
        #[arg(long, requires = "record")]
        unperturbed: bool,
        /// What the disk did, a line for each command, into a file
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
        /// The command; one word is a line of shell
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Look around in the kernel
    Shell {
        /// Disk and scheduler.
        #[command(flatten)]
        machine: LinuxMachine,
    },
}

/// Where kernels come from.
const BUILD_HELP: &str = "\
Nothing is installed, and root is not needed: a source that is not there is fetched from Debian's
archive with apt's own keys. Every I/O scheduler that the source offers is built in. Of a tree the
objects are kept, so that a second build compiles what has changed.

Examples:
  paternoster linux build --kernel 6.1
  paternoster linux build --kernel 7.3 --suite trixie-backports
  paternoster linux build --source ~/src/linux --as mine --config BTRFS_FS=y";

/// What `linux run` does with the command.
const RUN_HELP: &str = "\
The command runs as root of its own machine, with nothing to read from its standard input. What it
prints appears when it is done; its exit status is that of paternoster. Programs that it names are
there, with the libraries they need, and so are small files of the current directory. Time is the
machine's own: computing takes none, and the disk takes what its model says.

Examples:
  paternoster linux run -- dd if=/dev/zero of=/dev/sda bs=4k count=1000 oflag=dsync
  paternoster linux run --model nvme-980pro -s kyber -- fio jobs.fio
  paternoster linux run -s bfq:low_latency=0 --record copy -- \\
    'mkfs.ext4 -q /dev/sda && mount /dev/sda /mnt && cp -r /usr /mnt && sync'";

/// Which kernel of the cache.
#[derive(Debug, Args)]
pub struct LinuxVersion {
    /// Series, version or label of the kernel
    #[arg(long, value_name = "KERNEL", default_value = linux::configuration::DEFAULT_SERIES)]
    pub kernel: String,
    /// The tick: 100 is the source as it is; 250 and 1000 change one default of its configuration
    #[arg(long, default_value_t = 250)]
    pub hz: u16,
}

/// The machine of `linux run` and `linux shell`.
#[derive(Debug, Args)]
pub struct LinuxMachine {
    /// Which kernel.
    #[command(flatten)]
    pub version: LinuxVersion,
    /// Device model: a built-in name or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "hdd-7200-sata")]
    pub model: String,
    /// Scheduler, as NAME[:TUNABLE=VALUE,…]
    #[arg(short, long, value_name = "SCHEDULER", default_value = "mq-deadline")]
    pub scheduler: String,
    /// Other files of the disk's queue in sysfs: NAME=VALUE,…
    #[arg(long, value_name = "SETTINGS")]
    pub set: Vec<String>,
    /// Requests that the disk is given at once [default: as many as it takes, up to 256]
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Memory of the machine, such as "4 GiB" [default: 512 MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// How much of what is written to the disk is kept in memory, such as "8 GiB"; the rest goes to
    /// a file in $TMPDIR or /var/tmp [default: 1 GiB]
    #[arg(long, value_name = "SIZE")]
    pub data: Option<String>,
    /// A program, file or directory that must be there; may be repeated
    #[arg(long, value_name = "NAME|PATH")]
    pub bring: Vec<String>,
    /// Seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The options of `conform`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  A directory with a recording and a manifest.txt that says what was recorded:
    paternoster conform recordings/d-hdd-deadline
  A recording of which nothing is said:
    paternoster conform --kernel 6.12 -s mq-deadline:fifo_batch=8 --set queue_depth=31 sda")]
pub struct ConformOptions {
    /// Recordings: blktrace files, NAME of NAME.blktrace.0, or directories with one recording
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Kernel that was recorded
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<String>,
    /// Scheduler that was recorded, as NAME[@KERNEL][:TUNABLE=VALUE,…]
    #[arg(short, long, value_name = "SCHEDULER")]
    pub scheduler: Option<String>,
    /// What was set otherwise: tunables, settings of the queue and queue_depth, as NAME=VALUE,…
    #[arg(long, value_name = "SETTINGS")]
    pub set: Vec<String>,
    /// Device of the recordings, as MAJOR,MINOR, where they have several
    #[arg(long, value_name = "DEVICE")]
    pub trace_device: Option<String>,
    /// Results as JSON, to the standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
}

/// The options of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  An experiment with everything in it:
    paternoster compare first-light
  A command as you would type it; /dev/sda is the simulated disk:
    paternoster compare -s all -- dd if=/dev/zero of=/dev/sda bs=1M count=512 oflag=direct
  Two jobs that share a disk, one of them with a priority:
    paternoster compare --job db:ioprio=rt/0 'fio --name=db --filename=/dev/sda --direct=1
      --rw=randread --bs=4k --runtime=10 --time_based'
      --job bulk 'dd if=/dev/zero of=/dev/sda bs=1M count=1000 oflag=direct'
  A fio job file on another disk and kernel:
    paternoster compare --model vm-disk --kernel 5.2 jobs.fio
  A recorded load, as fast as the disk takes it, with two values of a tunable:
    paternoster compare -s mq-deadline --vary fifo_batch=1,16 --replay closed sda.blktrace.0
  Tunables: NAME[@KERNEL][:TUNABLE=VALUE,...], and settings for all:
    paternoster compare -s mq-deadline -s mq-deadline:fifo_batch=1 --set nr_requests=64 jobs.fio")]
pub struct CompareOptions {
    #[command(flatten)]
    pub load: LoadOptions,

    /// Results as JSON, to the standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = "Output")]
    pub json: Option<Option<PathBuf>>,
    /// Figures of each row as CSV, to the standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = "Output")]
    pub csv: Option<Option<PathBuf>>,
    /// Exit with 1 when an [expect] is not met, or when a result of --json is worse than this file
    /// says
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = "Output")]
    pub check: Option<Option<PathBuf>>,
    /// A file for each result in fio's JSON schema
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub fio_json: Option<PathBuf>,
    /// Report as a page for a browser, with timelines; one file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// The timelines of that page as trace events, for Perfetto
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub perfetto: Option<PathBuf>,
    /// Events of each result as blktrace files
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub record: Option<PathBuf>,
    /// A row for each request, as .csv or .parquet; of several results a directory of that name
    /// without the suffix
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub events: Option<PathBuf>,
}

/// What is run, on what, and under which schedulers.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// An experiment (TOML, or the name of one of `list experiments`), a fio job file or a trace
    #[arg(value_name = "EXPERIMENT|JOB.fio|TRACE")]
    pub input: Option<PathBuf>,
    /// A command, as it is typed in a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,

    #[command(flatten)]
    pub keys: KeyOptions,
    /// Real device (not available yet)
    #[arg(long, value_name = "DEVICE", help_heading = "Machine", hide = true)]
    pub dev: Option<String>,

    /// Control group of the one command
    #[arg(long, value_name = "PATH", help_heading = "Load")]
    pub cgroup: Option<String>,
    #[arg(long, num_args = 2, value_names = [flag("job").value, "COMMAND"], help = flag("job").help,
          help_heading = "Load")]
    pub job: Vec<String>,
    /// Stop jobs after so much simulated time, such as 60s
    #[arg(long, value_name = "TIME", help_heading = "Load")]
    pub duration: Option<String>,
    /// Format of the trace, where its content does not tell
    #[arg(long, value_name = "FORMAT", help_heading = "Load")]
    pub trace_format: Option<String>,
    /// Unit of the trace's times, where it varies: s, ms, us or ns
    #[arg(long, value_name = "UNIT", help_heading = "Load")]
    pub time_unit: Option<String>,
    /// Device of the trace, where it has several
    #[arg(long, value_name = "DEVICE", help_heading = "Load")]
    pub trace_device: Option<String>,
    /// When recorded requests are submitted: timed, closed or thinking
    #[arg(long, value_name = "PACE", help_heading = "Load")]
    pub replay: Option<String>,
    /// Requests of each recorded task in flight with --replay closed [default: 1]
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub depth: Option<usize>,

    #[arg(short, long = "scheduler", value_name = flag("scheduler").value,
          help = flag("scheduler").help, help_heading = "Comparison")]
    pub scheduler: Vec<String>,
    #[arg(long, value_name = flag("set").value, help = flag("set").help,
          help_heading = "Comparison")]
    pub set: Vec<String>,
    #[arg(long, value_name = flag("vary").value, help = flag("vary").help,
          help_heading = "Comparison")]
    pub vary: Vec<String>,
    #[arg(long, value_name = flag("seed").value, help = flag("seed").help,
          help_heading = "Comparison")]
    pub seed: Option<u64>,
    #[arg(long, value_name = flag("runs").value, help = flag("runs").help,
          help_heading = "Comparison")]
    pub runs: Option<u64>,
    /// Let schedulers check themselves after every step
    #[arg(long, help_heading = "Comparison")]
    pub paranoid: bool,
}

impl LoadOptions {
    /// The first option that says how something is run, if there is one.
    pub fn of_runs(&self) -> Option<String> {
        let key = self.keys.given.first().map(|(name, _)| format!("--{}", name.replace('_', "-")));
        let others = [
            ("--set", !self.set.is_empty()),
            ("--vary", !self.vary.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--runs", self.runs.is_some()),
            ("--duration", self.duration.is_some()),
            ("--replay", self.replay.is_some()),
        ];
        let other = others.iter().find(|it| it.1).map(|it| it.0.to_string());
        key.or(other)
    }
}

/// The options of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  Where the time goes in an experiment, what causes it and what to change:
    paternoster explain journal-pingpong -s cfq@4.19
  Two jobs as you would type them, and the five slowest calls one by one:
    paternoster explain --slow 5 --fs ext4 -s mq-deadline
      --job db 'fio --name=db --rw=write --bs=8k --fdatasync=1 --size=64m'
      --job backup 'dd if=/dev/zero of=backup bs=1M count=2000'
  The calls that make a figure what it is, here the slowest of a hundred writes:
    paternoster explain --metric log.write_p99 fsync-neighbour
  What a machine did, as blktrace recorded it, with histograms of each layer:
    paternoster explain --hist night.blktrace.0")]
pub struct ExplainOptions {
    #[command(flatten)]
    pub load: LoadOptions,

    /// Show the N slowest calls one by one, each with its critical path; of a recording, requests
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub slow: Option<usize>,
    /// Show one call with its critical path: TASK:NUMBER, such as 11:250, as --slow and the rows of
    /// --events have them
    #[arg(long, value_name = "TASK:NUMBER", help_heading = "Output")]
    pub call: Option<String>,
    /// Show histograms of the time in each layer: as bpftrace or bcc prints them, or as JSON
    /// [default form: bpftrace]
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true,
          value_parser = ["bpftrace", "bcc", "json"], help_heading = "Output")]
    pub hist: Option<Option<String>>,
    /// Seeds with which each remedy is tried; 0 tries none [default: 2]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub trials: Option<usize>,
    /// All of that as a page for a browser, with timelines; one file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Results as JSON, to the standard output or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          help_heading = "Output")]
    pub json: Option<Option<PathBuf>>,
    /// A row for each request, as .csv or .parquet, and beside it one for each system call; of
    /// several results a directory of that name without the suffix
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub events: Option<PathBuf>,
}

/// The options that give one key of an experiment a value: each key with an option has one.
#[derive(Debug)]
pub struct KeyOptions {
    given: Vec<(&'static str, String)>,
}

impl KeyOptions {
    /// The keys of which the command line says a value.
    fn keys() -> impl Iterator<Item = &'static Key<Experiment>> {
        keys::EXPERIMENT.iter().filter(|key| key.set.is_some() && !key.flags.is_empty())
    }

    /// Gives the experiment what was asked for.
    pub fn apply(&self, experiment: &mut Experiment) -> Result<(), Error> {
        for (name, value) in &self.given {
            let set = keys::of_experiment(name).and_then(|key| key.set);
            let place = format!("--{}", name.replace('_', "-"));
            set.expect("only such keys have options")(experiment, value, &place)?;
            experiment.places.insert(name, place);
        }
        Ok(())
    }
}

impl FromArgMatches for KeyOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<KeyOptions, clap::Error> {
        let value = |key: &'static Key<Experiment>| {
            Some((key.name, matches.get_one::<String>(key.name)?.clone()))
        };
        Ok(KeyOptions { given: KeyOptions::keys().filter_map(value).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = KeyOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for KeyOptions {
    fn augment_args(command: Command) -> Command {
        command.args(KeyOptions::keys().flat_map(|key| {
            let arg = |it: &'static keys::Flag| {
                let arg = Arg::new(key.name).long(it.name).value_name(it.value);
                let heading = if key.name == "metric" { "Comparison" } else { "Machine" };
                arg.help(it.help).help_heading(heading)
            };
            key.flags.iter().map(arg)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        KeyOptions::augment_args(command)
    }
}
