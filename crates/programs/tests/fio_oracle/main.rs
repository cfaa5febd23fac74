//! The parser against fio itself, and against the example job files that Debian ships.
//!
//! fio is only ever asked to parse, from an empty directory of its own.

mod executed;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use machine::Mount;
use programs::Surroundings;
use programs::fio::source::{self, Section};
use programs::fio::value::{self, BareTime, UnitBase};
use programs::fio::{Job, ParseError, options, parse_job_file};
use testing::Need;
use testing::document::assert_block;
use testing::needs::FIO;

const EXAMPLES: &str = "/usr/share/doc/fio/examples";

/// The example files of the version whose options are modelled.
const FIO_EXAMPLES: Need = Need {
    name: "fio's examples",
    how: "apt-get install fio-examples on Debian 12",
    is_there: || Path::new(EXAMPLES).is_dir(),
};

fn with_context<T>(environment: &[(&str, &str)], run: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    with_mount(environment, None, run)
}

fn with_mount<T>(
    environment: &[(&str, &str)],
    mount: Option<&Mount>,
    run: impl FnOnce(&Surroundings<'_>) -> T,
) -> T {
    let lookup = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let read_file = |path: &Path| fs::read_to_string(path);
    run(&Surroundings {
        page_size: 4096,
        ncpus: 2,
        mb_memory: 24_105,
        habits: &guest::Profile::uml().habits,
        mount,
        environment: &lookup,
        read_file: &read_file,
    })
}

/// The example files by name.
fn examples() -> BTreeMap<String, String> {
    let directory = fs::read_dir(EXAMPLES).expect("the test names the examples as what it needs");
    let paths = directory.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.extension().is_some_and(|kind| kind == "fio"));
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read_to_string(path).ok()?))
    };
    files.filter_map(read).collect()
}

/// A directory for this process alone.
fn directory() -> PathBuf {
    let directory = std::env::temp_dir().join(format!("fio-oracle-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory for temporary files");
    directory
}

/// Lets fio parse in an otherwise empty directory.
fn fio(arguments: &[&str]) -> Output {
    assert!(arguments.iter().any(|word| *word == "--parse-only" || *word == "--showcmd"));
    let mut fio = Command::new("/usr/bin/fio");
    let output = fio.args(arguments).current_dir(directory()).env_clear().output();
    output.expect("the test names fio as what it needs")
}

/// Why a file is not run although fio would, as the messages say it.
const REFUSALS: [&str; 5] = [
    "not available on a raw device",
    "needs a file system",
    "cannot be had here",
    "is not modelled",
    "no ioengine",
];

/// What the examples expect of their environment.
const ENVIRONMENT: [(&str, &str); 3] =
    [("FIO_RW", "randread"), ("FIO_IODEPTH", "4"), ("FIO_BS", "4k")];

fn examples_are_accepted_only_where_fio_accepts_them() {
    let examples = examples();
    let mut accepted = vec!["--parse-only".to_owned()];
    for name in examples.keys() {
        let path = format!("{EXAMPLES}/{name}");
        let text = &examples[name];
        match with_context(&[], |context| parse_job_file(&path, text, context)) {
            Ok(_) => accepted.push(path),
            Err(error) if REFUSALS.iter().any(|known| error.message.contains(known)) => {}
            Err(error) => {
                let output = fio(&["--parse-only", &path]);
                assert!(!output.status.success(), "fio accepts it, but {error}");
            }
        }
    }
    let accepted: Vec<&str> = accepted.iter().map(String::as_str).collect();
    let output = fio(&accepted);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn parse_example(name: &str, text: &str) -> Result<Vec<Job>, ParseError> {
    with_context(&ENVIRONMENT, |context| parse_job_file(name, text, context))
}

/// The same where ext4 is mounted, at the directory that the file names or at `/mnt`. Large files,
/// which fio would lay out for longer than the example is run, have 100 MiB; what only changes the
/// room of files, and so makes a call in no time, has 50 ms instead of ten seconds.
fn parse_on_ext4(name: &str, text: &str) -> (String, Result<Vec<Job>, ParseError>) {
    let large = ["size=10G", "size=10g", "size=512m"];
    let mut text = large.iter().fold(text.to_owned(), |text, it| text.replace(it, "size=100m"));
    if ["ioengine=falloc", "ioengine=ftruncate"].iter().any(|it| text.contains(it)) {
        text =
            text.replace("runtime=10s", "runtime=50ms").replace("runtime=10\n", "runtime=50ms\n");
    }
    let text = &text;
    let named = |line: &str| {
        let path = line.trim().strip_prefix("directory=").or(line.trim().strip_prefix("filename="));
        let directory = path?.strip_prefix('/')?.split('/').next()?;
        (directory != "dev").then(|| format!("/{directory}"))
    };
    let point = text.lines().find_map(named).unwrap_or("/mnt".to_owned());
    let parse = |context: &Surroundings<'_>| parse_job_file(name, text, context);
    let mount = Mount { point: point.clone(), ..Mount::default() };
    let jobs = with_mount(&ENVIRONMENT, Some(&mount), parse);
    (point, jobs)
}

fn at_least_forty_examples_can_be_run() {
    let examples = examples();
    let runnable = examples.iter().filter(|(name, text)| parse_example(name, text).is_ok());
    let count = runnable.count();
    assert!(count >= 40, "only {count} of {} can be run", examples.len());
}

/// A row of the table in the chapter on fio.
fn table_row(name: &str, text: &str) -> String {
    let refusal = |error: ParseError| {
        let option = error.option.as_deref().unwrap_or_default();
        format!("no: line {}, `{option}`: {}", error.place.line, error.message)
    };
    let (point, on_ext4) = parse_on_ext4(name, text);
    let in_files = match on_ext4 {
        Ok(jobs) if jobs.iter().any(Job::has_files) => executed::at_first(&jobs, Some(&point)),
        Ok(_) => "no files".to_owned(),
        Err(error) => refusal(error),
    };
    let jobs = match parse_example(name, text) {
        Ok(jobs) => jobs,
        // What is refused there for the same reason needs no second one.
        Err(error) => {
            let refused = refusal(error);
            let in_files = if in_files == refused { "" } else { &format!("{in_files} ") };
            return format!("| {name} | {refused} | | {in_files}| |\n");
        }
    };
    let ignored: BTreeSet<&str> =
        jobs.iter().flat_map(|job| &job.ignored).map(|ignored| ignored.option).collect();
    let notes: BTreeSet<&str> =
        jobs.iter().flat_map(|job| &job.notes).map(String::as_str).collect();
    let answer = match jobs.iter().any(Job::does_block_io) {
        true => "runs",
        false => "runs without block I/O",
    };
    let join = |set: BTreeSet<&str>, by| set.into_iter().collect::<Vec<_>>().join(by);
    let answer = match notes.is_empty() {
        true => answer.to_owned(),
        false => format!("{answer}; {}", join(notes, "; ")),
    };
    let done = executed::at_first(&jobs, None);
    format!("| {name} | {answer} | {done} | {in_files} | {} |\n", join(ignored, ", "))
}

fn the_table_of_examples_in_the_chapter_is_current() {
    let examples = examples();
    let rows = examples.iter().map(|(name, text)| table_row(name, text));
    let table = format!(
        "| file | answer | its first 100 ms | on ext4 | ignored |\n|---|---|---|---|---|\n{}",
        rows.collect::<String>()
    );
    assert_block("docs/fio.md", "fio examples", &table);
}

/// The options of each section as fio prints them on one command line.
fn shown(line: &str) -> Vec<Vec<String>> {
    let mut sections = vec![Vec::new()];
    for word in line.trim().trim_start_matches("fio").trim().split(" --") {
        let word = word.trim_start_matches("--").trim();
        match word.strip_prefix("name=") {
            _ if word.is_empty() => {}
            Some(name) => sections.push(vec![name.to_owned()]),
            None => sections.last_mut().unwrap().push(word.to_owned()),
        }
    }
    for section in &mut sections {
        section.sort();
    }
    sections
}

/// The same from our sections.
fn ours(sections: &[Section]) -> Vec<Vec<String>> {
    let mut shown = vec![Vec::new()];
    for section in sections {
        if !section.is_global() {
            shown.push(vec![section.name.clone()]);
        }
        for setting in &section.settings {
            let name = options::all()
                .find(|row| row.name == setting.name || row.aliases.contains(&&*setting.name))
                .map_or(setting.name.as_str(), |row| row.name);
            let last = shown.last_mut().unwrap();
            last.push(match &setting.value {
                Some(value) => format!("{name}={value}"),
                None => name.to_owned(),
            });
        }
    }
    for section in &mut shown {
        section.sort();
    }
    shown
}

fn sections_of_examples_are_those_that_fio_shows() {
    let examples = examples();
    // fio shows variables unexpanded, a name inside a section as a new job, and nothing else when
    // it cannot load an engine.
    let traps = ["${", "\nname=", " --", "rdma", "librpma", "nfs", "dfs", "http"];
    let compared: Vec<(&String, &String)> =
        examples.iter().filter(|(_, text)| !traps.iter().any(|trap| text.contains(trap))).collect();
    assert!(compared.len() > 40, "only {} files can be compared", compared.len());
    let mut arguments = vec!["--showcmd".to_owned()];
    arguments.extend(compared.iter().map(|(name, _)| format!("{EXAMPLES}/{name}")));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let output = fio(&arguments);
    let output = String::from_utf8_lossy(&output.stdout).replace('"', "");
    let lines: Vec<&str> = output.lines().filter(|line| line.starts_with("fio ")).collect();
    assert_eq!(lines.len(), compared.len(), "{output}");
    for ((name, text), line) in compared.into_iter().zip(lines) {
        let sections = with_context(&[], |context| source::sections(name, text, context));
        assert_eq!(ours(&sections.unwrap()), shown(line), "{name}");
    }
}

/// The first number that fio reads in each of `values` given to `option`, in one run; `None` for
/// those that it refuses.
fn read_by_fio(option: &str, values: &[&str]) -> Vec<Option<i64>> {
    let lines: Vec<String> = values.iter().map(|value| format!("{option}={value}\n")).collect();
    let path = directory().join(format!("{option}.fio"));
    fs::write(&path, format!("[x]\n{}", lines.concat())).expect("a job file");
    let output = fio(&["--parse-only", "--debug=parse", path.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // Each value begins with this line; the first result behind it is that of its first part.
    let start = format!(" handle_option={option}, ");
    let answers = text.split(&start).skip(1).map(|answer| {
        let line = answer.lines().find(|line| line.contains("ret="))?;
        let number = line.rsplit("out=").next()?.trim().parse::<u64>().ok()?;
        line.contains("ret=0").then_some(number as i64)
    });
    answers.collect()
}

fn numbers_are_what_fio_reads() {
    const AMOUNTS: [&str; 37] = [
        "4k",
        "4K",
        "4kb",
        "4kib",
        "4KiB",
        "4ki",
        "4m",
        "4mb",
        "4mib",
        "4g",
        "4t",
        "4tib",
        "4p",
        "0x10",
        "0x10k",
        "010",
        "4b",
        "4bk",
        "4kk",
        "4kx",
        "4kibx",
        "4e",
        "12abc",
        "1e3",
        "4.5k",
        "+4",
        "+4k",
        " 4",
        " 4k",
        "4 k",
        "2*4k",
        "8k/4k",
        "4kB",
        "k",
        "x",
        "$FOO",
        "9223372036854775807",
    ];
    const TIMES: [&str; 29] = [
        "3", "3s", "3S", "3sec", "3ms", "3msec", "3MS", "3us", "3usec", "3m", "3M", "3min", "3h",
        "3hours", "3d", "3D", "3k", "3x", "3.5s", "3.5ms", "1m30s", " 3ms", "+3ms", "0x10",
        "0x10s", "3 s", "1s-3s", "1ms:3ms", "s",
    ];
    let amount = |text| value::number(text, UnitBase::Compatible).ok().map(|number| number.value);
    let theirs = read_by_fio("bs", &AMOUNTS);
    assert_eq!(AMOUNTS.map(amount).to_vec(), theirs, "{AMOUNTS:?}");
    let time = |text| value::time(text, BareTime::Seconds).ok().map(|number| number.value);
    let theirs = read_by_fio("runtime", &TIMES);
    assert_eq!(TIMES.map(time).to_vec(), theirs, "{TIMES:?}");
}

fn every_option_of_the_table_is_known_to_fio() {
    for engine in ["psync", "libaio", "io_uring", "pvsync2", "sg", "cpuio"] {
        let rows = options::all().filter(|row| row.belongs_to(engine) && row.name != "ioengine");
        let names = rows.flat_map(|row| row.aliases.iter().chain([&row.name]));
        // A number is a good value or a bad one, but not an unknown option.
        let lines: Vec<String> = names.map(|name| format!("{name}=1\n")).collect();
        let path = directory().join(format!("options-{engine}.fio"));
        fs::write(&path, format!("[x]\nioengine={engine}\n{}", lines.concat())).unwrap();
        let output = fio(&["--parse-only", path.to_str().unwrap()]);
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        let unknown: Vec<&str> =
            complaints.lines().filter(|line| line.starts_with("Bad option")).collect();
        assert_eq!(unknown, [""; 0], "{engine}");
    }
}

fn main() -> std::process::ExitCode {
    let mut tests = testing::tests![
        [FIO, FIO_EXAMPLES] => examples_are_accepted_only_where_fio_accepts_them,
            sections_of_examples_are_those_that_fio_shows;
        [FIO_EXAMPLES] => at_least_forty_examples_can_be_run,
            the_table_of_examples_in_the_chapter_is_current;
        [FIO] => numbers_are_what_fio_reads,
            every_option_of_the_table_is_known_to_fio,
    ];
    tests.extend(executed::tests());
    testing::run(tests)
}
