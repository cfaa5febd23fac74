//! What a guest does between its boot and its end, as a value and as the shell script made of it.
//!
//! The order is: settings, cgroups, set-up commands, preparation, recording on, jobs, recording
//! off, tear-down commands. Jobs begin at a whole second of the guest's clock, at least one second
//! after all that. What they print stays in memory until they are done, so that only they use the
//! disks.

use std::fmt::Write;

use base::{Bytes, Duration};
use block::Ioprio;
use trace::blktrace::runs::{self, Only};
use trace::blktrace::{kyber, wbt};

/// The guest's first program; see the file.
pub(crate) const INIT: &str = include_str!("init.sh");

/// What a guest does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Values written to files of the guest, such as those of a disk's queue. One that is refused
    /// ends the run.
    pub settings: Vec<Setting>,
    /// The hierarchy that `cgroups` are made in.
    pub hierarchy: Hierarchy,
    /// Control groups, parents before children.
    pub cgroups: Vec<Cgroup>,
    /// Shell commands before the recording, one after the other; one that fails ends the run.
    pub setup: Vec<String>,
    /// Shell commands after that, the first of which begins at a whole second, exactly; one that
    /// fails ends the run.
    pub preparation: Vec<String>,
    /// A shell command while jobs wait for their beginning, [`LEAD`] before it. It is the last
    /// thing that happens before, so jobs begin with the guest's timers in the state in which it
    /// leaves them, whatever was done earlier.
    pub lead: Option<String>,
    /// What ends the jobs if they do not end by themselves.
    pub bell: Option<Bell>,
    /// What is looked at: these run at the same time.
    pub jobs: Vec<Job>,
    /// Shell commands after the recording, such as unmounting a disk whose data are wanted.
    pub teardown: Vec<String>,
    /// How the block layer's events are recorded.
    pub trace: Trace,
    /// Room for lines about what tasks give to the block layer, if they are wanted. They take no
    /// time, and little memory beside the room.
    pub watch: Option<Bytes>,
    /// Inode tables that ext4 initialises beside the jobs are counted. That takes no time; it takes
    /// little memory, but some pages more can make a kernel do something else.
    pub counts_lazy: bool,
}

/// A value to be written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file in the guest; in a cgroup, its name. The root group has an empty path.
    pub file: String,
    /// What is written. `{vda}` stands for the device number of that disk, as in `254:0`.
    pub value: String,
}

impl Setting {
    /// A value for a file.
    pub fn new(file: impl Into<String>, value: impl Into<String>) -> Setting {
        Setting { file: file.into(), value: value.into() }
    }

    /// A value for a file of a disk's queue, such as `scheduler` or `iosched/slice_idle`.
    pub fn queue(disk: usize, file: &str, value: impl Into<String>) -> Setting {
        Setting::new(format!("/sys/block/{}/queue/{file}", disk_name(disk)), value)
    }
}

/// Which of the kernel's two cgroup hierarchies is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hierarchy {
    /// The unified one, with all controllers.
    #[default]
    V2,
    /// Version 1 with the `blkio` controller.
    V1,
}

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path, such as `db` or `user/db`.
    pub path: String,
    /// Values for its files, such as `io.bfq.weight`.
    pub settings: Vec<Setting>,
}

/// Two shell commands: one that does not come back before jobs are to end, as if somebody typed
/// Ctrl-C, and one that makes it come back when they have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bell {
    /// What waits.
    pub wait: String,
    /// What ends the waiting.
    pub release: String,
}

/// A command that runs beside others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// What results call it.
    pub name: String,
    /// The command, for the guest's shell; it runs in `/tmp`.
    pub command: String,
    /// When it begins: exactly so long after [`crate::Finished::begun`].
    pub start: Duration,
    /// Its cgroup, one of the script's; the root group if none.
    pub cgroup: Option<String>,
    /// Its I/O priority.
    pub ioprio: Option<Ioprio>,
    /// It is not waited for, and ends when all others have.
    pub background: bool,
}

/// How the block layer's events are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trace {
    /// Not at all: only the disks keep a log.
    #[default]
    Off,
    /// With times. Each event reads the clock and so takes 256 ns, so the run differs from one
    /// without; it is its own reference.
    Perturbing(Recording),
    /// Without times: the order is that of the events, and their times are counters. The run is
    /// the same as without, and the disks' log has the times at the device.
    Free(Recording),
}

impl Trace {
    /// What a guest gets besides for its buffers.
    pub(crate) fn memory(self) -> Bytes {
        let (Trace::Perturbing(it) | Trace::Free(it)) = self else { return Bytes(0) };
        if !it.in_memory_of_its_own {
            return Bytes(0);
        }
        let priorities = if it.priorities { it.room_for_priorities().0 } else { 0 };
        Bytes((it.buffer.0 + priorities).next_multiple_of(1 << 20))
    }
}

/// What is recorded and how much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Room for events in the guest's memory: about 500 bytes a request, twice that with BFQ, and
    /// half of it more with [`Recording::runs`]. An overrun loses the oldest events and is counted.
    pub buffer: Bytes,
    /// Each event carries its cgroup.
    pub cgroups: bool,
    /// The guest has that room besides its memory, so as much may be dirty as without a recording.
    /// But a machine with more memory boots otherwise, and its ticks lie elsewhere.
    pub in_memory_of_its_own: bool,
    /// The I/O priority of each insertion is recorded beside.
    pub priorities: bool,
    /// Messages tell when the queue was run ([`trace::blktrace::runs`]), if the kernel has these
    /// events and says where the function is.
    pub runs: bool,
}

impl Default for Recording {
    /// 64 MiB of the guest's memory, with cgroups, without priorities and runs.
    fn default() -> Self {
        Recording {
            buffer: Bytes(64 << 20),
            in_memory_of_its_own: false,
            cgroups: true,
            priorities: false,
            runs: false,
        }
    }
}

impl Recording {
    /// Room for the lines that tell the priority of each insertion.
    fn room_for_priorities(self) -> Bytes {
        Bytes(self.buffer.0 / 4)
    }
}

/// What the guest calls its disk of this number: `vda` for the first.
pub fn disk_name(disk: usize) -> String {
    let mut name = String::new();
    let mut rest = disk + 1;
    while rest > 0 {
        rest -= 1;
        name.insert(0, char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    format!("vd{name}")
}

/// The files that the script leaves in the guest's directory.
pub(crate) mod left {
    pub const DONE: &str = "done";
    pub const BEGUN: &str = "begun";
    pub const FAILED: &str = "failed";
    pub const TRACE: &str = "trace";
    pub const STATISTICS: &str = "trace.stats";
    pub const PRIORITIES: &str = "trace.priorities";
    pub const EVENTS: &str = "trace.events";
    pub const BIOS: &str = "trace.bios";
    pub const QUEUES: &str = "queues";
    pub const CGROUPS: &str = "cgroups";
    pub const TIMERS: &str = "timers";
    pub const RUNG: &str = "rung";
    pub const REFUSED: &str = "refused";
    pub const LAZY: &str = "lazy";
}

const TRACING: &str = "/sys/kernel/tracing";
/// A buffer of its own, with a clock that costs nothing.
const WATCH: &str = "/sys/kernel/tracing/instances/bios";
/// Another one, in which each inode table that ext4 initialises later is an event.
const LAZY: &str = "/sys/kernel/tracing/instances/lazy";
/// Where control groups are.
pub const GROUPS: &str = "/sys/fs/cgroup";

/// How long before the beginning of jobs the command of [`Script::lead`] is done.
pub const LEAD: Duration = Duration::from_millis(250);

/// The file with a job's command.
pub(crate) fn job_file(job: usize) -> String {
    format!("job.{job}")
}

impl Script {
    /// The shell script for a guest with this many disks.
    pub(crate) fn text(&self, disks: usize) -> String {
        let mut text = String::from(FUNCTIONS);
        for disk in 0..disks {
            let name = disk_name(disk);
            line(&mut text, format_args!("{name}=$(cat /sys/block/{name}/dev)"));
        }
        for setting in &self.settings {
            write_setting(&mut text, "", setting);
        }
        self.make_cgroups(&mut text);
        for command in &self.setup {
            line(&mut text, format_args!("setup {}", quoted(command)));
        }
        self.prepare(&mut text);
        line(&mut text, format_args!("mkdir /run/out"));
        for disk in 0..disks {
            let name = disk_name(disk);
            line(&mut text, format_args!("queue {name} >>/guest/{}", left::QUEUES));
        }
        if self.trace != Trace::Off {
            for Cgroup { path, .. } in &self.cgroups {
                line(&mut text, format_args!("tell {} >>/guest/{}", quoted(path), left::CGROUPS));
            }
        }
        line(
            &mut text,
            format_args!("grep -E 'now at|jiffies' /proc/timer_list >/guest/{}", left::TIMERS),
        );
        self.start_watching(&mut text);
        if self.counts_lazy {
            line(&mut text, format_args!("count_lazy {LAZY}"));
        }
        self.start_recording(&mut text, disks);
        self.run_jobs(&mut text);
        line(&mut text, format_args!("settle"));
        self.stop_recording(&mut text);
        if self.watch.is_some() {
            line(&mut text, format_args!("cat {WATCH}/trace >/guest/{}", left::BIOS));
        }
        line(&mut text, format_args!("lazy {LAZY} >/guest/{}", left::LAZY));
        line(&mut text, format_args!("cp /run/out/* /guest/ 2>/dev/null"));
        for command in &self.teardown {
            line(&mut text, format_args!("setup {}", quoted(command)));
        }
        line(&mut text, format_args!("echo done >/guest/{}", left::DONE));
        text
    }

    fn make_cgroups(&self, text: &mut String) {
        match self.hierarchy {
            Hierarchy::V2 => line(text, format_args!("mount -t cgroup2 cgroup2 {GROUPS}")),
            Hierarchy::V1 => line(text, format_args!("mount -t cgroup -o blkio cgroup {GROUPS}")),
        }
        for Cgroup { path, settings } in &self.cgroups {
            line(text, format_args!("group {}", quoted(path)));
            for setting in settings {
                write_setting(text, &format!("{}/", group_directory(path)), setting);
            }
        }
    }

    fn prepare(&self, text: &mut String) {
        if self.preparation.is_empty() {
            return;
        }
        line(text, format_args!("read up rest </proc/uptime"));
        line(text, format_args!("gate first $((${{up%.*}} + 2)) 0"));
        let mut lines = String::from(PREPARING);
        for command in &self.preparation {
            line(&mut lines, format_args!("prepare {}", quoted(command)));
        }
        line(text, format_args!("echo {} >/run/preparation", quoted(lines.trim_end())));
        line(text, format_args!("setsid /run/gate.first /bin/sh /run/preparation </dev/null ||"));
        line(text, format_args!("    end \"$(cat /run/failed)\""));
    }

    /// What keeps the times of events where they are wanted at no cost: the order, or, where the
    /// preparation has left something to do that is no part of the run, ticks.
    fn free_clock(&self) -> &'static str {
        if self.preparation.is_empty() { "counter" } else { "uptime" }
    }

    fn start_watching(&self, text: &mut String) {
        let Some(room) = self.watch else { return };
        line(text, format_args!("mkdir {WATCH}"));
        let mut write = |file: &str, value: &str| {
            write_setting(text, &format!("{WATCH}/"), &Setting::new(file, value));
        };
        write("trace_clock", self.free_clock());
        write("buffer_size_kb", &room.0.div_ceil(1024).to_string());
        write("events/block/block_bio_queue/enable", "1");
    }

    fn start_recording(&self, text: &mut String, disks: usize) {
        let (clock, recording) = match self.trace {
            Trace::Off => return,
            Trace::Perturbing(recording) => ("mono", recording),
            Trace::Free(recording) => (self.free_clock(), recording),
        };
        let mut write = |file: &str, value: &str| {
            write_setting(text, &format!("{TRACING}/"), &Setting::new(file, value));
        };
        write("tracing_on", "0");
        write("trace_clock", clock);
        write("buffer_size_kb", &recording.buffer.0.div_ceil(1024).to_string());
        write("current_tracer", "blk");
        write("options/blk_cgroup", if recording.cgroups { "1" } else { "0" });
        write("options/blk_cgname", "0");
        if recording.priorities {
            // A second buffer with a clock that costs nothing: its k-th line is the k-th insertion.
            line(text, format_args!("mkdir {TRACING}/instances/priorities"));
            let mut write = |file: &str, value: &str| {
                let directory = format!("{TRACING}/instances/priorities/");
                write_setting(text, &directory, &Setting::new(file, value));
            };
            write("trace_clock", self.free_clock());
            let room = recording.room_for_priorities().0.div_ceil(1024);
            write("buffer_size_kb", &room.to_string());
            write("events/block/block_rq_insert/enable", "1");
        }
        if recording.runs {
            record_runs(text);
            for (event, says) in kyber::EVENTS.into_iter().chain(wbt::EVENTS) {
                let says = quoted(says);
                line(text, format_args!("record_event {TRACING}/events/{event} 0 {says}"));
            }
        }
        for disk in 0..disks {
            let file = format!("/sys/block/{}/trace/enable", disk_name(disk));
            write_setting(text, "", &Setting::new(file, "1"));
        }
        write_setting(text, &format!("{TRACING}/"), &Setting::new("tracing_on", "1"));
    }

    fn stop_recording(&self, text: &mut String) {
        let (Trace::Perturbing(recording) | Trace::Free(recording)) = self.trace else { return };
        line(text, format_args!("echo 0 >{TRACING}/tracing_on"));
        if recording.priorities {
            // At once: a job in the background goes on as soon as this script sleeps.
            line(text, format_args!("echo 0 >{TRACING}/instances/priorities/tracing_on"));
        }
        // Whoever reads the pages waits for more when they are all read.
        let pages = format!("{TRACING}/per_cpu/cpu0/trace_pipe_raw");
        line(text, format_args!("cat {pages} >/guest/{} &", left::TRACE));
        line(text, format_args!("reader=$!; sleep 0.01; kill $reader; wait $reader"));
        let statistics = format!("{TRACING}/per_cpu/cpu0/stats");
        line(text, format_args!("cat {statistics} >/guest/{}", left::STATISTICS));
        if recording.priorities {
            let trace = format!("{TRACING}/instances/priorities/trace");
            line(text, format_args!("cat {trace} >/guest/{}", left::PRIORITIES));
        }
    }

    fn run_jobs(&self, text: &mut String) {
        line(text, format_args!("read up rest </proc/uptime; begin=$((${{up%.*}} + 2))"));
        line(text, format_args!("echo $begin >/guest/{}", left::BEGUN));
        for (number, job) in self.jobs.iter().enumerate() {
            let (seconds, nanos) =
                (job.start.as_nanos() / 1_000_000_000, job.start.as_nanos() % 1_000_000_000);
            line(text, format_args!("gate {number} $((begin + {seconds})) {nanos}"));
            line(text, format_args!("("));
            if let Some(group) = &job.cgroup {
                let file = quoted(&format!("{GROUPS}/{group}/cgroup.procs"));
                line(text, format_args!("echo 0 >{file} || exit 126"));
            }
            let ioprio = job.ioprio.map_or(String::new(), |ioprio| {
                format!("ionice -c {} -n {} ", ioprio.class as u8, ioprio.level)
            });
            let file = job_file(number);
            line(
                text,
                format_args!("exec setsid {ioprio}/run/gate.{number} /bin/sh /guest/{file}"),
            );
            line(
                text,
                format_args!(") </dev/null >/run/out/{number}.out 2>/run/out/{number}.err &"),
            );
            line(text, format_args!("job{number}=$!"));
        }
        if let Some(command) = &self.lead {
            let nanos = 1_000_000_000 - LEAD.as_nanos();
            line(text, format_args!("gate lead $((begin - 1)) {nanos}"));
            line(text, format_args!("/run/gate.lead /bin/sh -c {} </dev/null", quoted(command)));
        }
        let numbered = || self.jobs.iter().enumerate();
        let groups: Vec<String> = numbered().map(|(number, _)| format!("-$job{number}")).collect();
        if let Some(Bell { wait, .. }) = &self.bell {
            let wait = quoted(wait);
            line(text, format_args!("ring {wait} {} & bell=$!", groups.join(" ")));
        }
        for (number, _) in numbered().filter(|(_, job)| !job.background) {
            line(text, format_args!("wait $job{number}; echo $? >/run/out/{number}.exit"));
        }
        if let Some(Bell { release, .. }) = &self.bell {
            line(text, format_args!("touch /run/ended; {release}; wait $bell"));
            line(text, format_args!("cp /run/rung /guest/{} 2>/dev/null", left::RUNG));
        }
        for (number, _) in numbered().filter(|(_, job)| job.background) {
            line(text, format_args!("kill -TERM -$job{number} 2>/dev/null"));
            line(text, format_args!("wait $job{number}; echo $? >/run/out/{number}.exit"));
        }
    }
}

/// What the lines of a preparation call: all are done by one shell, as those of a job.
const PREPARING: &str = r#"prepare() {
    eval "$1" >/run/output 2>&1 || {
        echo "$1: $(tail -n 20 /run/output)" >/run/failed
        exit 1
    }
}
"#;

/// What the generated lines call. Commands under way are waited for, so that recordings have their
/// ends; a minute is enough, as somebody may go on writing. After a second it looks ten times a
/// second: each look is a process, which a guest is slow to start.
const FUNCTIONS: &str = r#"
settle() {
    tries=700
    for file in /sys/block/vd*/inflight; do
        while read -r reads writes <$file; test $((reads + writes)) != 0 -a $tries -gt 0; do
            pause=0.1
            test $tries -gt 600 && pause=0.01
            sleep $pause
            tries=$((tries - 1))
        done
    done
}
end() { echo "$1" >/guest/failed; settle; leave; }
set_to() {
    { echo "$2" >"$1"; } 2>/run/error && return
    cause='no such file'
    test -e "$1" && cause=$(sed 's/.*: //' /run/error)
    {
        printf '%s\n' "$1"; printf '%s' "$2" | tr '\n' ' '; echo; echo "$cause"
        if test -e "$1"; then tr '\n' ' ' <"$1" 2>&1; echo
        else cd "$(dirname "$1")" && find * -maxdepth 0 -type f -perm -200
        fi
    } >/guest/refused 2>/dev/null
    end "writing $2 to $1: $cause"
}
setup() {
    /bin/sh -c "$1" >/run/output 2>&1 </dev/null || end "$1: $(tail -n 20 /run/output)"
}
ring() {
    /bin/sh -c "$1" </dev/null
    test -e /run/ended && return
    shift
    touch /run/rung
    # fio sums up when it is interrupted. dd does when it is asked, and is stopped when it has.
    kill -INT -- "$@" 2>/dev/null
    killall -USR1 dd 2>/dev/null
    sleep 0.1
    killall -TERM dd 2>/dev/null
    sleep 1
    test -e /run/ended || kill -TERM -- "$@" 2>/dev/null
}
group() {
    path=/sys/fs/cgroup
    rest=$1
    while test -n "$rest"; do
        if test -e "$path/cgroup.subtree_control"; then
            for controller in $(cat "$path/cgroup.controllers"); do
                set_to "$path/cgroup.subtree_control" +$controller
            done
        fi
        path=$path/${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        mkdir -p "$path" 2>/run/error ||
            end "creating the cgroup $path: $(sed 's/.*: //' /run/error)"
    done
}
tell() {
    directory=/sys/fs/cgroup/$1
    weight=
    for file in io.bfq.weight blkio.bfq.weight; do
        test -r "$directory/$file" || continue
        weight=$(sed -n 's/^\(default \)\{0,1\}\([0-9]*\)$/\2/p' "$directory/$file")
    done
    echo "$(stat -c %i "$directory") ${weight:-0} $1"
}
count_lazy() {
    test -e /sys/kernel/tracing/events/ext4/ext4_lazy_itable_init || return
    mkdir $1
    echo counter >$1/trace_clock
    echo 4 >$1/buffer_size_kb
    echo 1 >$1/events/ext4/ext4_lazy_itable_init/enable
}
record_event() {
    test -e "$1" || return
    echo "$2" >"$1/filter" && echo 1 >"$1/enable" || return
    echo "$(sed -n "s/^ID: //p" "$1/format") $3" >>/guest/trace.events
}
lazy() {
    test -e $1 && grep -E '^(entries|overrun):' $1/per_cpu/cpu0/stats
    grep -q ' ext4 ' /proc/mounts || return
    grep -s -x ext4lazyinit /proc/[0-9]*/comm
}
word() {
    set -- $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255))
    printf "$(printf '\\%03o' $1 $2 $3 $4)"
    printf '\0\0\0\0'
}
gate() {
    { cat /guest/gate; word $2; word $3; } >/run/gate.$1
    chmod 755 /run/gate.$1
}
queue() {
    for file in /sys/block/$1/queue/* /sys/block/$1/queue/iosched/*; do
        value=
        { read -r value <$file; } 2>/dev/null
        test -f $file && echo "$file $value"
    done
    for file in /sys/kernel/debug/block/$1/sched/*_tokens; do
        test -f $file && echo "$file $(sed -n 's/^alloc_hint={\([0-9]*\).*/\1/p' $file)"
    done
}
"#;

/// Events that tell of runs of the queue go into the same buffer as the records.
fn record_runs(text: &mut String) {
    let function = runs::FUNCTION;
    line(text, format_args!("if function=$(grep ' {function}$' /proc/kallsyms); then"));
    for (event, says, only) in runs::EVENTS {
        let filter = match only {
            Only::Function => "function == 0x${function%% *}",
            Only::Sleeps => "prev_state == 2",
        };
        let says = quoted(says);
        line(text, format_args!("record_event {TRACING}/events/{event} \"{filter}\" {says}"));
    }
    line(text, format_args!("fi"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}

fn write_setting(text: &mut String, directory: &str, setting: &Setting) {
    let file = quoted(&format!("{directory}{}", setting.file));
    line(text, format_args!("set_to {file} {}", with_devices(&setting.value)));
}

/// The directory of a cgroup.
pub fn group_directory(path: &str) -> String {
    if path.is_empty() { GROUPS.to_string() } else { format!("{GROUPS}/{path}") }
}

/// A word that the shell takes literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// As [`quoted`], but `{vda}` becomes a reference to the variable of that name.
fn with_devices(value: &str) -> String {
    let mut word = String::new();
    let mut rest = value;
    while let Some((before, name, after)) = next_device(rest) {
        write!(word, "{}\"${name}\"", quoted(before)).expect("writing to a string does not fail");
        rest = after;
    }
    word + &quoted(rest)
}

fn next_device(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{vd")?;
    let (letters, after) = rest.split_once('}')?;
    let plain = !letters.is_empty() && letters.chars().all(|c| c.is_ascii_lowercase());
    let from = before.len() + 1;
    plain.then(|| (before, &text[from..from + 2 + letters.len()], after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_named_as_the_guest_does() {
        let names: Vec<_> = [0, 1, 25, 26, 27, 702].map(disk_name).into();
        assert_eq!(names, ["vda", "vdb", "vdz", "vdaa", "vdab", "vdaaa"]);
    }

    #[test]
    fn values_are_literal_but_for_device_numbers() {
        assert_eq!(with_devices("a'b $x"), r"'a'\''b $x'");
        assert_eq!(with_devices("{vda} riops=100"), r#"''"$vda"' riops=100'"#);
        assert_eq!(with_devices("{vdA}"), "'{vdA}'");
    }

    #[test]
    fn the_order_is_settings_groups_setup_recording_jobs() {
        let script = Script {
            settings: vec![Setting::queue(0, "scheduler", "bfq")],
            cgroups: vec![Cgroup { path: "db".into(), settings: Vec::new() }],
            setup: vec!["true".into()],
            jobs: vec![Job { name: "j".into(), cgroup: Some("db".into()), ..Job::default() }],
            trace: Trace::Perturbing(Recording::default()),
            ..Script::default()
        };
        let text = script.text(1);
        let parts = [
            "queue/scheduler' 'bfq'",
            "group 'db'",
            "setup 'true'",
            "'blk'",
            "exec setsid",
            "\nsettle\n",
        ];
        let places: Vec<_> = parts.map(|part| text.find(part).expect(part)).into();
        assert!(places.is_sorted(), "{places:?}\n{text}");
    }
}
