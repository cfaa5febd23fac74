//! The program behind the words that say how it is run, for readers of command lines that others
//! ran: of a recording, of a history.
//!
//! Prefixes that change how requests are judged are understood as in commands that are run here.
//! The others are skipped with their options. What is not understood is never refused.

use super::prefixes::Prefixes;
use block::Ioprio;

/// What a command line says of the program it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind<'a> {
    /// The program's name without directories.
    pub program: String,
    /// Its own words.
    pub arguments: &'a [String],
    /// The I/O priority that a prefix sets.
    pub ioprio: Option<Ioprio>,
    /// The control group that a prefix names.
    pub cgroup: Option<String>,
}

/// A prefix that says nothing about requests.
struct Silent {
    name: &'static str,
    /// Its options that have a value in a word of their own.
    valued: &'static [&'static str],
    /// Words of its own behind the options.
    own: usize,
    /// Whether it changes nothing of how a program runs here either.
    is_harmless: bool,
}

const SILENT: [Silent; 16] = [
    silent("chrt", &["-T", "-P", "-D"], 1),
    harmless_one("command", &[]),
    harmless_one("doas", &["-u", "-C"]),
    harmless_one("env", &["-u", "-C", "-S", "--unset", "--chdir"]),
    harmless_one("exec", &["-a"]),
    silent("ltrace", &["-e", "-o", "-s", "-u", "-l", "-a", "-n"], 0),
    harmless_one("nohup", &[]),
    silent("numactl", &["-C", "-N", "-m", "-i", "-p"], 0),
    harmless_one("runuser", &["-u", "-g", "-G"]),
    harmless_one("setsid", &[]),
    harmless_one("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"]),
    silent("strace", &["-e", "-o", "-s", "-u", "-P", "-E", "-O", "-S", "-a", "-b", "-I", "-U"], 0),
    harmless_one("sudo", &["-u", "-g", "-C", "-D", "-h", "-p", "-R", "-r", "-t", "-T", "-U"]),
    harmless_one("time", &["-f", "-o", "--format", "--output"]),
    silent("timeout", &["-k", "-s", "--kill-after", "--signal"], 1),
    silent("unshare", &["-S", "-G", "-R", "-w"], 0),
];

const fn silent(name: &'static str, valued: &'static [&'static str], own: usize) -> Silent {
    Silent { name, valued, own, is_harmless: false }
}

const fn harmless_one(name: &'static str, valued: &'static [&'static str]) -> Silent {
    Silent { name, valued, own: 0, is_harmless: true }
}

/// The words behind a prefix that changes nothing of how a program runs, if it is one.
pub(super) fn harmless<'a>(name: &str, words: &'a [String]) -> Option<&'a [String]> {
    let known = SILENT.iter().find(|it| it.name == name && it.is_harmless)?;
    Some(skip(words, known.valued, known.own))
}

/// What the words of a command say of its program; `None` if no program is left.
pub fn behind_prefixes(words: &[String]) -> Option<Behind<'_>> {
    let mut found = Prefixes::default();
    let mut rest = words;
    while let Some((first, arguments)) = rest.split_first() {
        let name = first.rsplit('/').next().unwrap_or(first);
        let understood = found.take(name, arguments);
        let known = SILENT.iter().find(|it| it.name == name);
        rest = match (understood, known) {
            (Some(Ok(rest)), _) => rest,
            (Some(Err(_)), None) => skip(arguments, &["-c", "-n", "-g", "-p", "-u"], 0),
            (_, Some(known)) => skip(arguments, known.valued, known.own),
            (None, None) if found.sets(first) => arguments,
            (None, None) => {
                let (ioprio, cgroup) = (found.ioprio(), found.cgroup());
                let program = name.to_string();
                return Some(Behind { program, arguments, ioprio, cgroup });
            }
        };
    }
    None
}

/// The words behind options and `own` further words.
fn skip<'a>(words: &'a [String], valued: &[&str], own: usize) -> &'a [String] {
    let mut place = 0;
    while let Some(word) = words.get(place).filter(|word| word.starts_with('-')) {
        place += if valued.contains(&word.as_str()) { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    &words[(place + own).min(words.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::IoprioClass;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn what_people_type_before_a_program_is_seen_through() {
        let best = Ioprio::new(IoprioClass::BestEffort, 0);
        let line = words("exec /bin/ionice -c 2 -n 0 /usr/bin/prog --x");
        let found = behind_prefixes(&line).unwrap();
        assert_eq!((found.program.as_str(), found.ioprio), ("prog", best));
        assert_eq!(found.arguments, ["--x"]);
        let line = words(
            "sudo -u me env -i A=1 nohup setsid time -f %e timeout -k 5 60s chrt -r 5 stdbuf -o L \
             strace -f -o out -e trace=read nice -n 5 taskset -c 0-1 ionice -c3 dd if=/dev/sda",
        );
        let found = behind_prefixes(&line).unwrap();
        assert_eq!(found.program, "dd");
        assert_eq!(found.ioprio.map(|it| it.class), Some(IoprioClass::Idle));
        let line = words("cgexec -g blkio:db systemd-run --scope --slice=a -- fio x.fio");
        let found = behind_prefixes(&line).unwrap();
        assert_eq!(found.program, "fio");
        assert_eq!(found.cgroup.as_deref(), Some("/a.slice/run.scope"));
    }

    #[test]
    fn what_is_not_understood_is_skipped() {
        let program = |line: &str| behind_prefixes(&words(line)).map(|it| it.program);
        assert_eq!(program("ionice -c nonsense -x dd").as_deref(), Some("dd"));
        assert_eq!(program("A=1 B= dd of=x").as_deref(), Some("dd"));
        for line in ["", "nice", "timeout", "sudo -u", "env --", "ionice -c"] {
            assert_eq!(program(line), None, "{line}");
        }
    }
}
