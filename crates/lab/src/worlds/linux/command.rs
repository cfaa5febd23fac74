//! Jobs as the guest's shell gets them.
//!
//! Prefixes such as `ionice` and `cgexec` have been understood already and are left out, as the
//! guest does what they ask for by itself; fio is told to answer in JSON and to read the clock in
//! a way that a guest can follow, and draws other random numbers with each seed, the same as in
//! the simulator; so do pgioperf, and sysbench, which draws others than the simulator; disks get
//! the names that the command uses; files that fio reads go along.

use super::{brought, warming};
use crate::error::Error;
use crate::plan::{DROP_CACHES, PlannedJob};
use machine::Mount;
use programs::dbench::Dbench;
use programs::dump::Dump;
use programs::fio::Fio;
use programs::sysbench::Sysbench;
use programs::{Program, Sequence};
use std::path::Path;

/// What fio is asked for besides: figures that can be read and merged, and the clock of the guest
/// (its counter is that of the machine outside).
const FIO_OPTIONS: &str = "--output-format=json+ --clocksource=clock_gettime \
                           --lat_percentiles=1 --slat_percentiles=1 --clat_percentiles=1";
/// Where dump notes what it has done; `/var/lib` is not there.
const DUMP_DATES: &str = "/run/dumpdates";
const GROUPING: &str = "group_reporting";

/// Where random numbers of a job come from.
#[derive(Clone, Copy)]
pub struct Draws {
    /// Of the run.
    pub seed: u64,
    /// Its number among the jobs.
    pub job: usize,
}

/// The command of a line that is done before the jobs.
pub fn of_line(
    planned: &PlannedJob,
    mount: Option<&Mount>,
    draws: Draws,
    setup: &mut Vec<String>,
) -> Result<String, Error> {
    match planned.line.as_deref() {
        Some(DROP_CACHES) => Ok("echo 3 >/proc/sys/vm/drop_caches".to_string()),
        // One shell does all lines, so it must not become one of them.
        _ => of_planned(planned, mount, draws, setup, false),
    }
}

/// The command of a job; what must be done before is added to `setup`.
pub fn of_job(
    planned: &PlannedJob,
    mount: Option<&Mount>,
    draws: Draws,
    setup: &mut Vec<String>,
) -> Result<String, Error> {
    let is_shell = planned.program.is::<Sequence>();
    of_planned(planned, mount, draws, setup, !is_shell)
}

fn of_planned(
    planned: &PlannedJob,
    mount: Option<&Mount>,
    draws: Draws,
    setup: &mut Vec<String>,
    replaces_shell: bool,
) -> Result<String, Error> {
    let name = &planned.job.name;
    let Some(line) = &planned.line else {
        let what = format!("job {name}: a recording in the world linux");
        return Err(Error::not_yet("--world", what, "sim"));
    };
    let mut command = match planned.program.downcast() {
        Some(Sequence { steps, .. }) => {
            let parts = programs::split_sequence(line);
            let mut text = String::new();
            for (step, (needs_success, part)) in steps.iter().zip(&parts) {
                if !text.is_empty() {
                    text.push_str(if *needs_success { " && " } else { "; " });
                }
                text.push_str(&of_program(&*step.program, part.trim(), draws, setup)?);
            }
            // One shell for all of it.
            match planned.job.nice != 0 || planned.job.duration.is_some() {
                true => format!("/bin/sh -c {}", quoted(&text)),
                false => text,
            }
        }
        None => of_program(&*planned.program, line, draws, setup)?,
    };
    if planned.job.nice != 0 {
        command = format!("nice -n {} {command}", planned.job.nice);
    }
    if let Some(duration) = planned.job.duration {
        let nanos = duration.as_nanos();
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        command = format!("timeout {seconds}.{rest:09} {command}");
    }
    if let Some(mount) = mount.filter(|_| names_files(&*planned.program, line)) {
        let exec = if replaces_shell { "exec " } else { "" };
        command = format!("cd {} && {exec}{command}", mount.point);
    }
    Ok(command)
}

/// Whether relative names are files of the file system. A full name that is not in the line was
/// typed as a relative one.
fn names_files(program: &dyn Program, line: &str) -> bool {
    let is_relative = |name: &&str| !line.contains(*name);
    program.parts().into_iter().any(|part| {
        let fio = part.downcast::<Fio>();
        fio.is_some_and(|fio| fio.jobs().iter().any(|job| job.has_files()))
            || part.downcast::<Sysbench>().is_some_and(Sysbench::has_files)
            || (fio.is_none() && part.files().iter().any(is_relative))
    })
}

/// The command of one program.
fn of_program(
    program: &dyn Program,
    line: &str,
    draws: Draws,
    setup: &mut Vec<String>,
) -> Result<String, Error> {
    let command = without_prefixes(line);
    let variables = variables(line, &command);
    Ok(variables + &of_plain(program, command, draws, setup)?)
}

/// The command of a program that nothing stands before.
fn of_plain(
    program: &dyn Program,
    command: String,
    draws: Draws,
    setup: &mut Vec<String>,
) -> Result<String, Error> {
    name_disks(program, setup);
    if let Some(sysbench) = program.downcast() {
        return of_sysbench(sysbench, &command, draws.seed);
    }
    if let Some(dbench) = program.downcast() {
        return of_dbench(dbench, &command);
    }
    if let Some(words) = brought::command(program, draws) {
        return Ok(words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" "));
    }
    if let Some(dump) = program.downcast() {
        return of_dump(dump, &command);
    }
    if !program.is::<Fio>() {
        return Ok(command);
    }
    let command = with_files(&without_grouping(&command), setup)?;
    let (program, rest) = command.split_once(char::is_whitespace).unwrap_or((&command, ""));
    Ok(format!("{program} {FIO_OPTIONS} --randrepeat=0 --randseed={} {rest}", draws.seed))
}

/// sysbench draws other numbers with each seed.
fn of_sysbench(sysbench: &Sysbench, command: &str, seed: u64) -> Result<String, Error> {
    if !sysbench.is_current() {
        let problem = "the command line of sysbench 0.4 in the world linux, which has 1.0";
        return Err(Error::bad("--world", problem, "sysbench fileio …, or --world sim"));
    }
    if !sysbench.has_files() {
        let problem = "sysbench on a raw disk in the world linux";
        return Err(Error::bad("--world", problem, "fs = \"ext4\" or \"xfs\", or --world sim"));
    }
    match command.contains("--rand-seed") {
        true => Ok(command.to_string()),
        false => Ok(format!("{command} --rand-seed={seed}")),
    }
}

/// dbench reads its load file where the guest has it. The last of several options counts.
fn of_dbench(dbench: &Dbench, command: &str) -> Result<String, Error> {
    if dbench.is_of_4_1() {
        let problem = "dbench --warmup in the world linux, which has 4.0";
        return Err(Error::bad("--world", problem, "the usual fifth of -t, or --world sim"));
    }
    Ok(format!("{command} -c {}", quoted(&brought::place(dbench.load_file()).to_string_lossy())))
}

/// dump reads the file system that is there, and keeps its dates where files can be made.
fn of_dump(dump: &Dump, command: &str) -> Result<String, Error> {
    if dump.is_described() {
        let problem = "dump of a file system that is only described in the world linux";
        let accepted = "fs = \"ext4\" with files made in setup and no --population, or --world sim";
        return Err(Error::bad("--world", problem, accepted));
    }
    let (program, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    Ok(format!("{program} -D {DUMP_DATES} {rest}"))
}

/// What gives the program the variables that are set before it.
fn variables(line: &str, command: &str) -> String {
    let before = line.strip_suffix(command).unwrap_or_default().split_whitespace();
    let is_set = |word: &&str| !word.starts_with('-') && word.contains('=');
    let by_shell = before.clone().take_while(is_set);
    let by_env = before.clone().skip_while(|it| *it != "env").filter(is_set);
    let set: Vec<&str> = by_shell.chain(by_env).collect();
    if set.is_empty() { String::new() } else { format!("env {} ", set.join(" ")) }
}

/// The command from the program on.
fn without_prefixes(line: &str) -> String {
    let is_program = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        super::PROGRAMS.contains(&name) || super::RARE.contains(&name)
    };
    let start = line.split_whitespace().find(|word| is_program(word));
    // Words are parts of the line, so their addresses tell where they are.
    let at = start.map_or(0, |word| word.as_ptr() as usize - line.as_ptr() as usize);
    line[at..].to_string()
}

/// The command without the option that makes fio add its processes up: that is done here, for each
/// section, while fio 3.33 leaves the names out where only some sections have the option.
fn without_grouping(command: &str) -> String {
    let option = format!("--{GROUPING}");
    let mut parts = command.split(&option);
    let mut kept = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let rest = part.find(char::is_whitespace).map_or("", |end| &part[end..]);
        kept.push_str(rest);
    }
    kept
}

/// Gives the disk every name that a program has for it.
fn name_disks(program: &dyn Program, setup: &mut Vec<String>) {
    let names = program.files().into_iter().filter_map(|path| path.strip_prefix("/dev/"));
    for name in names.filter(|name| !matches!(*name, "zero" | "null" | "vda")) {
        let mut lines = vec![linux::visit::name_disk(name)];
        if name == warming::NAME {
            lines.insert(0, format!("mv /dev/{name} /dev/{}", warming::OTHER_NAME));
        }
        if !setup.contains(&lines[lines.len() - 1]) {
            setup.extend(lines);
        }
    }
}

/// The command with the job files that it names copied to where jobs run.
fn with_files(command: &str, setup: &mut Vec<String>) -> Result<String, Error> {
    let mut words: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        let path = Path::new(word.trim_matches('\''));
        let stays = words.is_empty() || word.starts_with('-') || !path.is_file();
        if stays {
            words.push(word.to_string());
            continue;
        }
        let text = params::read_text(path).map_err(|cause| Error::unreadable(path, cause))?;
        let groups = |line: &&str| line.split('=').next().is_some_and(|it| it.trim() == GROUPING);
        let lines: Vec<&str> = text.lines().filter(|line| !groups(line)).collect();
        let text = format!("{}\n", lines.join("\n"));
        let name = format!("/run/{}.fio", setup.len());
        setup.push(format!("printf %s {} >{name}", quoted(&text)));
        words.push(name);
    }
    // White space within quotes stays as it is where no file is named.
    let changed = words.iter().any(|word| !command.contains(word.as_str()));
    Ok(if changed { words.join(" ") } else { command.to_string() })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_left_out() {
        assert_eq!(without_prefixes("ionice -c1 nice /usr/bin/dd if=/dev/sda"), {
            "/usr/bin/dd if=/dev/sda"
        });
        assert_eq!(without_prefixes("fio --name=dd"), "fio --name=dd");
        assert_eq!(variables("sudo env -i A=b nice fio x", "fio x"), "env A=b ");
        assert_eq!(variables("nice fio --x=y", "fio --x=y"), "");
        assert_eq!(variables("A=b nice fio", "fio"), "env A=b ");
    }

    fn of(line: &str, point: Option<&str>) -> Result<String, Error> {
        let mount =
            point.map(|it| machine::Mount { point: it.to_string(), ..machine::Mount::default() });
        let context = programs::Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 512,
            habits: &guest::Profile::uml().habits,
            mount: mount.as_ref(),
            environment: &|_| None,
            read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        let program = programs::parse_in(line, &context).unwrap().program;
        of_program(&*program, line, Draws { seed: 3, job: 0 }, &mut Vec::new())
    }

    #[test]
    fn sysbench_is_the_current_one_on_files_with_the_seed_of_the_run() {
        let run = |old: &str| format!("sysbench {old} --file-test-mode=rndrd run");
        let there = of(&run("fileio"), Some("/mnt")).unwrap();
        assert_eq!(there, "sysbench fileio --file-test-mode=rndrd run --rand-seed=3");
        let typed = run("fileio --rand-seed=7");
        assert_eq!(of(&typed, Some("/mnt")).unwrap(), typed);
        let refusal = |line: &str, mount| of(line, mount).unwrap_err().to_string();
        assert!(refusal(&run("--test=fileio"), Some("/mnt")).contains("which has 1.0"));
        assert!(refusal(&run("fileio"), None).contains("raw disk in the world linux"));
    }

    #[test]
    fn dump_reads_the_file_system_that_is_there() {
        let line = "dump -0uf /dev/null /dev/sda";
        let there = of(line, Some("/mnt")).unwrap();
        assert_eq!(there, "dump -D /run/dumpdates -0uf /dev/null /dev/sda");
        let described = of(&format!("{line} --population=3x1M"), Some("/mnt")).unwrap_err();
        assert!(described.to_string().contains("only described"));
    }

    #[test]
    fn pgioperf_is_told_what_it_does_and_what_it_draws() {
        let prepares = of("pgioperf --prepare --size 48m", Some("/mnt")).unwrap();
        assert_eq!(prepares, "'/pgioperf' 'prepare' '/mnt' '50331648' '1048576'");
        let runs = of("pgioperf --readers 2 --size 48m --load cfq-wbt", Some("/mnt")).unwrap();
        let words: Vec<&str> = runs.split(' ').collect();
        let told = "'/pgioperf' 'run' '/mnt' '50331648' '1048576' '2' '50000' 'fsync' '3000'";
        assert_eq!(words[..9].join(" "), told);
        assert_eq!((words.len(), words[9].len()), (10, 66));
        let own = of("pgioperf --readers 2 --size 48m --sequence own", Some("/mnt")).unwrap();
        assert_eq!(own.split(' ').count(), 9 + 3);
    }

    #[test]
    fn fio_does_not_add_up() {
        let command = "fio --name=a --group_reporting --bs=4k --group_reporting=1 --name=b";
        assert_eq!(without_grouping(command), "fio --name=a  --bs=4k  --name=b");
    }

    #[test]
    fn every_disk_that_is_named_is_the_one_there_is() {
        let names = |line: &str| {
            let mut setup = Vec::new();
            name_disks(&*programs::parse(line).unwrap().program, &mut setup);
            setup
        };
        let by_id = linux::visit::name_disk("disk/by-id/a-1");
        assert_eq!(names("dd if=/dev/disk/by-id/a-1 of=/dev/null"), [by_id]);
        assert_eq!(names("dd if=/dev/vda of=/dev/null"), [""; 0]);
        let other = ["mv /dev/vdb /dev/warming".to_string(), linux::visit::name_disk("vdb")];
        assert_eq!(names("dd if=/dev/vdb of=/dev/null"), other);
    }
}
