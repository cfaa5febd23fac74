//! What a program says of itself that no event tells: the throughput that dbench states, and how
//! long its clients took for whole passes over the load file; how long pgioperf's commits took.

use crate::metrics::Latency;
use base::Duration;
use programs::Program;
use programs::dbench::Dbench;
use programs::pgioperf::{Account, Pgioperf};

/// The figures that a program states.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Bytes a second that clients asked for.
    pub throughput: Option<f64>,
    /// Whole passes, without percentiles.
    pub passes: Latency,
    /// Writes of a log that an fsync follows, each with it.
    pub commits: Latency,
}

impl Told {
    /// What a program has told in lines of its output.
    pub fn by(program: &dyn Program, lines: &[String]) -> Told {
        match is_dbench(program) {
            true => Told::by_dbench(lines),
            false => Told::default(),
        }
    }

    /// What the writer of a log of pgioperf has noted.
    pub fn by_pgioperf(account: &Account) -> Told {
        Told { commits: Latency::of(&account.commits.borrow()), ..Told::default() }
    }

    fn by_dbench(lines: &[String]) -> Told {
        let mut told = Told::default();
        for line in lines {
            if let Some(rest) = line.strip_prefix("Throughput ") {
                let megabytes = rest.split_whitespace().next().and_then(|it| it.parse().ok());
                told.throughput = megabytes.map(|it: f64| it * 1e6);
            }
            if let Some(rest) = line.strip_prefix("Passes ") {
                let time = |name| millis(rest, name).unwrap_or_default();
                told.passes = Latency {
                    count: rest
                        .split_whitespace()
                        .next()
                        .and_then(|it| it.parse().ok())
                        .unwrap_or(0),
                    min: time("min="),
                    max: time("max="),
                    mean: time("mean="),
                    ..Latency::default()
                };
            }
        }
        told
    }
}

/// Whether dbench is among what runs.
pub fn is_dbench(program: &dyn Program) -> bool {
    program.parts().iter().any(|it| it.is::<Dbench>())
}

/// The time behind a word that ends with `=`, in milliseconds.
fn millis(line: &str, name: &str) -> Option<Duration> {
    let (_, rest) = line.split_once(name)?;
    let number: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos((number * 1e6) as u64))
}

/// What of a program's output is worth a line beside the tables: of dbench, which says something
/// each second, what it sums up; of each kind of operation of pgioperf the longest, by which it is
/// judged.
pub fn notes(program: &dyn Program, lines: Vec<String>) -> Vec<String> {
    let sums_up = |line: &String| line.starts_with("Throughput ") || line.starts_with("Passes ");
    if is_dbench(program) && lines.iter().any(sums_up) {
        return lines.into_iter().filter(sums_up).collect();
    }
    let is_pgioperf = program.parts().iter().any(|it| it.is::<Pgioperf>());
    let worst = |kind: &str| {
        let longest = |line: &&String| line.starts_with(kind).then(|| millis(line, "max: "))?;
        let of_kind = lines.iter().filter(|line| longest(line).is_some());
        of_kind.max_by_key(longest).cloned()
    };
    match ["read[", "wal[", "commit["].into_iter().filter_map(worst).collect::<Vec<_>>() {
        worst if is_pgioperf && !worst.is_empty() => worst,
        _ => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_dbench_are_understood() {
        let lines = [
            "   2     34421   258.07 MB/sec  execute   1 sec  latency 50.331 ms",
            "Passes 3  mean=20.500 ms  min=1.000 ms  max=60.000 ms",
            "Throughput 230.423 MB/sec  2 clients  2 procs  max_latency=51.193 ms",
        ];
        let told = Told::by_dbench(&lines.map(str::to_string));
        assert_eq!(told.throughput, Some(230.423 * 1e6));
        assert_eq!((told.passes.count, told.passes.mean.as_micros()), (3, 20_500));
        assert_eq!(Told::by_dbench(&[]).throughput, None);
    }

    #[test]
    fn of_each_kind_of_pgioperf_the_worst_line_is_a_note() {
        let mount = machine::Mount::default();
        let context = programs::Surroundings {
            page_size: 4096,
            ncpus: 1,
            mb_memory: 512,
            mount: Some(&mount),
            habits: &guest::Profile::uml().habits,
            environment: &|_| None,
            read_file: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        };
        let program = programs::parse_in("pgioperf", &context).unwrap().program;
        let said = [
            "read[3]: avg: 4.0 msec; max: 9.5 msec",
            "starting fsync() of files",
            "read[4]: avg: 3.9 msec; max: 10.1 msec",
            "commit[20]: avg: 30.0 msec; max: 1200.0 msec",
            "read[3]: avg: 4.0 msec; max: 9.9 msec",
        ];
        let lines = said.map(str::to_string);
        assert_eq!(notes(&*program, lines.to_vec()), [said[2], said[3]]);
        let failure = vec!["pgioperf: /mnt/data: No space left on device".to_string()];
        assert_eq!(notes(&*program, failure.clone()), failure);
    }
}
