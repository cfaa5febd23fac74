//! What the parser makes of job files and command lines.

use std::io;
use std::path::Path;

use super::error::ParseError;
use super::job::Job;
use super::{parse_command_line, parse_job_file};
use crate::Surroundings;

/// A machine without a mount and without variables, whose files `read_file` reads.
fn with_files<T>(
    read_file: &dyn Fn(&Path) -> io::Result<String>,
    run: impl FnOnce(&Surroundings<'_>) -> T,
) -> T {
    run(&Surroundings {
        page_size: 4096,
        ncpus: 2,
        mb_memory: 24_105,
        habits: &guest::Profile::uml().habits,
        mount: None,
        environment: &|_| None,
        read_file,
    })
}

fn with_context<T>(run: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    with_files(&|_| Err(io::Error::from(io::ErrorKind::NotFound)), run)
}

fn jobs(text: &str) -> Result<Vec<Job>, ParseError> {
    with_context(|context| parse_job_file("job.fio", text, context))
}

#[test]
fn a_command_line_means_what_its_job_file_means() {
    let text = "[global]\nioengine=libaio\ndirect=1\nbs=8k\n[a]\nrw=randread\niodepth=4\n\
                [b]\nstonewall\nrw=write\nsize=10%\n";
    let words = "--ioengine=libaio --direct 1 --bs=8k --name=a --rw randread -iodepth=4 \
                 --name=b --stonewall --readwrite=write --size=10%";
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let line = with_context(|context| parse_command_line(&words, context)).unwrap();
    let mut from_file = jobs(text).unwrap();
    for (ours, theirs) in from_file.iter_mut().zip(&line.jobs) {
        ours.place = theirs.place.clone();
        // fio lists the name where it was typed as an option.
        ours.options.insert(0, ("name".to_string(), ours.name.clone()));
    }
    assert_eq!(line.jobs, from_file);
}

#[test]
fn a_command_line_may_name_job_files() {
    let read_file = |path: &Path| match path.to_str() {
        Some("two.fio") => Ok("[global]\nrw=randread\n[a]\nbs=4k\n[b]\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let parse = |words: &str| {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        with_files(&read_file, |context| parse_command_line(&words, context)).map(|line| line.jobs)
    };
    let jobs = parse("--bs=2k two.fio two.fio --name=c").unwrap();
    let seen: Vec<(&str, u64, u32, u32)> = jobs
        .iter()
        .map(|job| (&*job.name, job.pattern.sizes[0].least().0, job.group, job.stage))
        .collect();
    let expected = [
        ("c", 2048, 0, 0),
        ("a", 4096, 0, 0),
        ("b", 2048, 0, 0),
        ("a", 4096, 1, 1),
        ("b", 4096, 1, 1),
    ];
    assert_eq!(seen, expected);
    assert_eq!(parse("--section=b two.fio").unwrap().len(), 1);
    for bad in [
        "nope.fio",
        "",
        "--name=x --bs",
        "--name=x --b=1",
        "--name=x --userspace_reap --ioengine=libaio",
        "--readonly --name=x --rw=write",
        "--output-format=xml --name=x",
        "--name=x --norandommap 1",
        "--server --name=x",
    ] {
        assert!(parse(bad).is_err(), "{bad}");
    }
    assert!(parse("--name=x --rw=write --readonly").is_ok());
    assert!(parse("--name=x --randrep=0 --output-format normal,json").is_ok());
}

#[test]
fn clones_groups_and_stages_follow_the_file() {
    let text = "[global]\nrw=read\n[a]\nnumjobs=2\n[b]\nnew_group\n[c]\nstonewall\nnumjobs=2\n";
    let seen: Vec<(String, u32, u32, u32, u32)> = jobs(text)
        .unwrap()
        .into_iter()
        .map(|job| (job.files.list[0].name.clone(), job.number, job.clone, job.group, job.stage))
        .collect();
    let expected = [
        ("a.0.0", 0, 0, 0, 0),
        ("a.1.0", 1, 1, 0, 0),
        ("b.0.0", 2, 0, 1, 0),
        ("c.0.0", 3, 0, 2, 1),
        ("c.1.0", 4, 1, 2, 1),
    ];
    let expected = expected.map(|(name, a, b, c, d)| (name.to_owned(), a, b, c, d));
    assert_eq!(seen, expected);
}

#[test]
fn errors_name_file_line_and_option() {
    for (text, message) in [
        ("[a]\nbs=4k\nrw=raed\n", "job.fio:3: option 'rw': 'raed' is not a known value"),
        (
            "[a]\nioengine=splice\n",
            "job.fio:2: option 'ioengine': ioengine splice is not modelled: it moves pages",
        ),
        (
            "[a]\nioengine=e4defrag\ndonorname=d\n",
            "job.fio:2: option 'ioengine': ioengine e4defrag needs a file system",
        ),
        (
            "[a]\nioengine=mmap\noffset=1m\n",
            "job.fio:3: option 'offset': fio 3.33 goes to the beginning of a file that it maps",
        ),
        ("[global]\natomic=1\n[a]\n", "job.fio:2: option 'atomic': cannot be had here: atomic"),
        ("[a]\nbs=513\n", "job.fio:2: option 'bs': a raw device is read and written in sectors"),
        ("[a]\n[b]\nwait_for=c\n", "job.fio:3: option 'wait_for': there is no job 'c' before"),
        ("[a]\nrate=1m\nrate_iops=5\n", "job.fio:3: option 'rate_iops': cannot be combined"),
        ("[a]\ncpus_allowed=2\n", "job.fio:2: option 'cpus_allowed': core 2 does not exist"),
        ("[global]\nbs=4k\n", "job.fio:1: the file defines no jobs"),
        ("[a]\nnumjobs=5000\n", "job.fio:1: job 'a': more than 4096 jobs"),
        ("[a]\nrw=write:100\n", "job.fio:2: option 'rw': holes on a raw device are whole sectors"),
    ] {
        let error = jobs(text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn queue_settings_are_completed_from_each_other() {
    let queue = |text: &str| jobs(&format!("[a]\n{text}\n")).unwrap()[0].queue;
    let deep = queue("ioengine=libaio\niodepth=16\niodepth_batch=0\niodepth_low=4");
    assert_eq!((deep.depth, deep.batch, deep.low), (16, 16, 4));
    assert_eq!((deep.complete_min, deep.complete_max), (1, 1));
    assert_eq!(queue("iodepth=16").depth, 1);
    let polled = queue(
        "ioengine=io_uring\niodepth=8\niodepth_batch_complete_min=0\niodepth_batch_complete_max=8",
    );
    assert_eq!((polled.complete_min, polled.complete_max), (0, 8));
}
