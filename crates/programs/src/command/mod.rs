//! From the command a person types to a program and how it is run.
//!
//! A command line is split into words as a shell does it, without expansions. Words that say how
//! to run a program (`ionice`, `nice`, `taskset`, `timeout`, `cgexec`, `systemd-run --scope`), and
//! words that change nothing here (`sudo`, `env`, `time`), are taken off one after the other; what
//! remains names the program. A line for a shell (`sh -c`) means the line itself.

mod behind;
mod prefixes;
mod shell;
mod words;

pub use behind::{Behind, behind_prefixes};
pub use shell::without_shell;
pub use words::split_sequence;

use crate::{LIST, Program, Sequence, Step, Surroundings};
use base::{Duration, nearest};
use block::Ioprio;
use machine::CoreSet;
use prefixes::Prefixes;
use std::sync::Arc;
use words::split;

/// A command, understood.
#[derive(Clone, Debug)]
pub struct Command {
    /// What runs.
    pub program: Arc<dyn Program>,
    /// The I/O priority that `ionice` sets.
    pub ioprio: Option<Ioprio>,
    /// The nice value that `nice` sets.
    pub nice: Option<i8>,
    /// The cores that `taskset` allows.
    pub affinity: Option<CoreSet>,
    /// The control group of `cgexec` or `systemd-run`.
    pub cgroup: Option<String>,
    /// The weight that `systemd-run -p IOWeight=` sets.
    pub weight: Option<u32>,
    /// How long `timeout` lets it run.
    pub duration: Option<Duration>,
}

/// How a line is written, for messages.
const QUOTED: &str = "words quoted as for a shell, without expansions; ; or && between commands; a \
                      job of its own for what runs meanwhile";

/// Why a command cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The words cannot be told apart.
    #[error("{line}: {problem}; accepted: {QUOTED}")]
    Quoting {
        /// The command line.
        line: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A prefix is not written as it must be.
    #[error("{prefix}: {problem}; accepted: {accepted}")]
    Prefix {
        /// Which.
        prefix: &'static str,
        /// What is wrong.
        problem: String,
        /// What would be accepted.
        accepted: &'static str,
    },
    /// There is nothing to run.
    #[error("there is no command; accepted: a command of one of {all}")]
    Nothing {
        /// All programs there are.
        all: String,
    },
    /// There is no such program here.
    #[error("{name}: this program is not modelled{hint}; accepted: {all}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest one, as the end of a sentence.
        hint: String,
        /// All there are.
        all: String,
    },
    /// The program itself refuses, in its own words.
    #[error("{0}")]
    Refused(String),
}

/// Understands a command line where there are no files and no environment, for a host of one core.
pub fn parse(line: &str) -> Result<Command, CommandError> {
    let nowhere = Surroundings {
        page_size: base::page::SIZE,
        ncpus: 1,
        mb_memory: 1024,
        habits: &guest::Profile::uml().habits,
        mount: None,
        environment: &|_| None,
        read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
    };
    parse_in(line, &nowhere)
}

/// Understands a command line in its surroundings: one command, or several with `;` and `&&`
/// between them.
pub fn parse_in(line: &str, context: &Surroundings<'_>) -> Result<Command, CommandError> {
    let own = without_shell(line);
    let parts = split_sequence(&own);
    if let [(_, only)] = parts.as_slice() {
        return parse_one(only, context);
    }
    match words::missing(&own) {
        Some(problem) => Err(quoting(line.trim(), problem)),
        None => parse_sequence(&parts, context),
    }
}

fn quoting(line: &str, problem: &str) -> CommandError {
    CommandError::Quoting { line: line.to_string(), problem: problem.to_string() }
}

fn parse_sequence(
    parts: &[(bool, String)],
    context: &Surroundings<'_>,
) -> Result<Command, CommandError> {
    let mut steps = Vec::new();
    for (needs_success, part) in parts {
        let command = parse_one(part, context)?;
        let is_plain = command.ioprio.is_none()
            && command.nice.is_none()
            && command.affinity.is_none()
            && command.duration.is_none()
            && command.cgroup.is_none();
        if !is_plain {
            let refusal = format!(
                "{}: a prefix in a sequence of commands is not modelled; accepted: ioprio and \
                 cgroup of the job, or one command",
                part.trim()
            );
            return Err(CommandError::Refused(refusal));
        }
        steps.push(Step { needs_success: *needs_success, program: command.program });
    }
    Ok(Prefixes::default().with(Arc::new(Sequence { steps, habits: context.habits.shell })))
}

fn parse_one(line: &str, context: &Surroundings<'_>) -> Result<Command, CommandError> {
    let words = split(line)?;
    let (found, words) = without_prefixes(&words)?;
    let Some((name, arguments)) = words.split_first() else { return Err(unknown("")) };
    let name = file_name(name);
    let entry = LIST.iter().find(|it| it.name == name).ok_or_else(|| unknown(name))?;
    let environment = |name: &str| found.variable(name).or_else(|| (context.environment)(name));
    let context = Surroundings { environment: &environment, ..*context };
    let program = (entry.parse)(arguments, &context).map_err(CommandError::Refused)?;
    Ok(found.with(program))
}

/// The name of the program that a line runs, or of the shell of several different ones.
pub fn program_name(line: &str) -> String {
    let parts = split_sequence(&without_shell(line));
    let mut names: Vec<String> = parts.iter().map(|(_, part)| name_of_one(part)).collect();
    names.dedup();
    if let [name] = names.as_slice() { name.clone() } else { "sh".to_string() }
}

fn name_of_one(line: &str) -> String {
    let words = split(line).unwrap_or_default();
    let rest = without_prefixes(&words).map_or(words.as_slice(), |(_, rest)| rest);
    rest.first().map_or(String::new(), |word| file_name(word).to_string())
}

/// What the words before the program say, and the others.
fn without_prefixes(words: &[String]) -> Result<(Prefixes, &[String]), CommandError> {
    let mut found = Prefixes::default();
    let mut rest = words;
    while let Some((name, arguments)) = rest.split_first() {
        let taken = found.take(file_name(name), arguments);
        rest = match taken.or_else(|| behind::harmless(file_name(name), arguments).map(Ok)) {
            Some(others) => others?,
            None if found.sets(name) => arguments,
            None => break,
        };
    }
    Ok((found, rest))
}

/// The program of a path.
fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn unknown(name: &str) -> CommandError {
    let names = || LIST.iter().map(|it| it.name);
    let all = names().collect::<Vec<_>>().join(", ");
    match name {
        "" => CommandError::Nothing { all },
        name => CommandError::Unknown { name: name.to_string(), hint: nearest(name, names()), all },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sleep;
    use base::Duration;
    use block::IoprioClass;

    #[test]
    fn commands_follow_each_other_with_semicolons_and_conditions() {
        let line = "dd if=/mnt/a of=/mnt/b; sync && sleep 1.5;";
        let program = parse(line).unwrap().program;
        let Sequence { steps, .. } = program.downcast().expect("several programs");
        assert_eq!(
            steps.iter().map(|it| it.needs_success).collect::<Vec<_>>(),
            [false, false, true]
        );
        let sleeps = steps[2].program.downcast();
        assert_eq!(sleeps, Some(&Sleep(Duration::from_millis(1500))));
        assert_eq!(split_sequence("a 'x;y' \\; b").len(), 1);
        assert!(
            parse("nice sync; sync").unwrap_err().to_string().contains("a prefix in a sequence")
        );
        assert!(parse("sleep 1.0aé").is_err());
        assert!(parse("sleep x").unwrap_err().to_string().contains("accepted: sleep 1.5"));
    }

    const DD: &str = "dd if=/dev/zero of=/dev/sda";

    fn words(line: &str) -> Vec<String> {
        split(line).unwrap()
    }

    fn refusal(line: &str) -> String {
        parse(line).unwrap_err().to_string()
    }

    #[test]
    fn words_are_quoted_as_for_a_shell() {
        assert_eq!(words(r#"dd  'a b' "c\"d\e" f\ g ''"#), ["dd", "a b", "c\"d\\e", "f g", ""]);
        assert_eq!(words(r"--x='1 2'3"), ["--x=1 23"]);
        assert!(split("dd 'x").is_err() && split("dd \"x").is_err() && split("dd \\").is_err());
        assert_eq!(
            refusal("dd if=/dev/sda | cat"),
            format!("dd if=/dev/sda | cat: \"|\" means something to a shell; accepted: {QUOTED}")
        );
    }

    #[test]
    fn a_command_is_missing_where_a_shell_would_miss_one() {
        let pairs = [
            ("sync &&", "nothing follows the last \"&&\""),
            ("sync && ;", "nothing stands before \";\""),
            ("&& sync", "nothing stands before \"&&\""),
            ("; sync", "nothing stands before \";\""),
            ("sync && && sync", "nothing stands before \"&&\""),
            ("sync ;; sync", "nothing stands before \";\""),
            ("sync ;;", "nothing stands before \";\""),
            ("sh -c 'sync &&'", "nothing follows the last \"&&\""),
            ("sync &", "\"&\" means something to a shell"),
            ("sync || sync", "\"|\" means something to a shell"),
            ("sync && dd 'x", "a ' is not closed"),
            ("sync && dd \"x", "a \" is not closed"),
        ];
        for (line, problem) in pairs {
            let said = refusal(line);
            assert!(said.ends_with(&format!(": {problem}; accepted: {QUOTED}")), "{said}");
        }
        assert!(parse("sync;").is_ok() && parse("sync; sync ; ").is_ok());
    }

    #[test]
    fn prefixes_say_how_a_program_runs() {
        let line = "nice -n 5 ionice -c2 -n 0 taskset -c 0,2-3 systemd-run --scope \
                    -p IOWeight=200 --slice=batch -- dd if=/dev/zero of=/dev/sda count=1";
        let command = parse(line).unwrap();
        assert_eq!(command.ioprio, Ioprio::new(IoprioClass::BestEffort, 0));
        assert_eq!(command.nice, Some(5));
        assert_eq!(command.affinity, Some(CoreSet::of([0, 2, 3])));
        assert_eq!(command.cgroup.as_deref(), Some("/batch.slice/run.scope"));
        assert_eq!(command.weight, Some(200));
        assert!(command.program.is::<crate::dd::Dd>());
        let command = parse(&format!("cgexec -g blkio:db nice ionice -c idle {DD}")).unwrap();
        assert_eq!(command.ioprio.unwrap().class, IoprioClass::Idle);
        assert_eq!((command.nice, command.cgroup.as_deref()), (Some(10), Some("db")));
        let command = parse(&format!("taskset d nice -19 {DD}")).unwrap();
        assert_eq!((command.affinity, command.nice), (Some(CoreSet::of([0, 2, 3])), Some(19)));
        let line = "sudo -n env -u X A=b timeout -s INT 1.5m nice time -p /usr/bin/dd";
        let command = parse(&format!("{line} {}", &DD[3..])).unwrap();
        assert_eq!((command.nice, command.duration), (Some(10), Some(Duration::from_secs(90))));
    }

    #[test]
    fn a_program_is_called_by_its_own_name() {
        let pairs = [
            ("nice -n 5 dd if=/dev/sda", "dd"),
            ("sudo ionice -c3 /usr/bin/fio --name=x", "fio"),
            ("env A=1 B=2 timeout 5 sysbench fileio run", "sysbench"),
            ("sysbench fileio prepare && sysbench fileio run", "sysbench"),
            ("cp a b; sync", "sh"),
            ("taskset -c 1 openssl speed", "openssl"),
            ("nice", "nice"),
        ];
        for (line, name) in pairs {
            assert_eq!(program_name(line), name, "{line}");
        }
    }

    #[test]
    fn env_sets_what_a_job_file_asks_for() {
        let command = parse("env SIZE=64k fio --name=x --filename=/dev/sda --bs=${SIZE}");
        assert!(command.is_err(), "the shell would have expanded it: {command:?}");
        let read = |_: &std::path::Path| Ok("[x]\nfilename=/dev/sda\nbs=${BLOCK}\n".to_string());
        let context = Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 1024,
            habits: &guest::Profile::uml().habits,
            mount: None,
            environment: &|_| None,
            read_file: &read,
        };
        let command = parse_in("env BLOCK=64k fio x.fio", &context).unwrap();
        let fio = command.program.downcast::<crate::fio::Fio>().unwrap();
        assert!(format!("{:?}", fio.jobs()[0].pattern).contains("65536"));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        let all = "cp, dbench, dd, dump, fallocate, fio, lg, ls, mkdir, mv, pgioperf, \
                   replay-startup-io, rm, rmdir, sleep, stat, sync, sysbench, touch, truncate";
        assert_eq!(
            refusal("openssl -a x y"),
            format!("openssl: this program is not modelled; accepted: {all}")
        );
        assert_eq!(
            refusal("d if=x"),
            format!("d: this program is not modelled; nearest: \"dd\"; accepted: {all}")
        );
        assert!(refusal("ionice -c 4 dd").starts_with("ionice: class \"4\"; accepted: -c none"));
        assert!(refusal("ionice -n 8 dd").starts_with("ionice: level 8"));
        assert!(refusal("ionice -p 77").starts_with("ionice: option \"-p\""));
        assert!(refusal("nice -n x dd").starts_with("nice: \"x\" is no number"));
        assert!(refusal("taskset -c 3-1 dd").starts_with("taskset: cores \"3-1\""));
        assert!(refusal("taskset -c 1").starts_with("taskset: no command follows"));
        assert!(refusal("systemd-run dd").starts_with("systemd-run: no --scope"));
        assert!(refusal("cgexec dd").starts_with("cgexec: no group"));
        assert_eq!(
            refusal(""),
            format!("there is no command; accepted: a command of one of {all}")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(
            words in proptest::collection::vec(
                proptest::sample::select(vec![
                    "dd", "ionice", "nice", "taskset", "cgexec", "systemd-run", "-c", "-n", "-g",
                    "-p", "--scope", "--slice=a", "--", "0-2", "ff", "bs=1k", "bs=", "count=9xB",
                    "if=/dev/zero", "of=/dev/sda", "conv=sync,,", "oflag=direct", "seek=7EB", "'",
                    "\"", "\\", "é", "-19", "IOWeight=5", "=", "4294967295", "0-65535",
                ]),
                0..9,
            ),
            any in ".{0,20}",
        ) {
            let _ = parse(&words.join(" "));
            let _ = parse(&any);
            let _ = parse(&format!("dd {any}={any}"));
        }
    }
}
