//! Commands in the documents print what the documents show.
//!
//! A command stands after `$` in an indented block, and its output below it. A line of `…` stands
//! for output that the document leaves out. The time that runs took may differ. Commands without
//! `$` are run as they stand, with small files of the names that they have.

use crate::directory::{Directory, program, workspace};
use crate::linux::KERNEL;
use std::path::{Path, PathBuf};
use testing::needs::{BUSYBOX, FIO, MKFS_EXT4};

/// A command of a document with the output that is shown below it.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// The commands of a document; none if there is no such document.
fn commands_of(document: &str) -> Vec<Shown> {
    let text = std::fs::read_to_string(workspace().join(document)).unwrap_or_default();
    let mut commands: Vec<Shown> = Vec::new();
    let mut is_in_block = false;
    for line in text.lines() {
        let indented = line.strip_prefix("    ");
        if let Some(command) = indented.and_then(|it| it.strip_prefix("$ ")) {
            commands.push(Shown { command: command.to_string(), output: Vec::new() });
            is_in_block = true;
        } else if indented.is_some() || line.is_empty() {
            let current = commands.last_mut().filter(|_| is_in_block);
            current.into_iter().for_each(|it| it.output.push(indented.unwrap_or("").to_string()));
        } else {
            is_in_block = false;
        }
    }
    commands
}

/// What the program prints when it is called as a document says.
fn run(command: &str) -> String {
    let arguments = command.strip_prefix("paternoster ").expect("a command of this program");
    let output = program().args(arguments.split(' ')).current_dir(workspace()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{command}: {errors}{text}");
    text
}

/// Asserts that each piece between lines of `…` is printed, in the order in which it is shown.
fn assert_printed(shown: &Shown, text: &str) {
    let printed: Vec<&str> = text.lines().map(|line| timeless(line.trim_end())).collect();
    let lines: Vec<&str> = shown.output.iter().map(|line| timeless(line)).collect();
    let mut rest = &printed[..];
    for piece in lines.split(|line| *line == "…").map(without_blank_ends) {
        if piece.is_empty() {
            continue;
        }
        let at = rest.windows(piece.len()).position(|window| window == piece);
        let at = at.unwrap_or_else(|| {
            panic!("{}: shown, but not printed:\n{}\n---\n{text}", shown.command, piece.join("\n"))
        });
        rest = &rest[at + piece.len()..];
    }
}

fn without_blank_ends<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    &lines[first..end]
}

/// A line without the time that all runs took.
fn timeless(line: &str) -> &str {
    match line.starts_with("world sim") {
        true => &line[..line.rfind(" · ").expect("the time is the last of them")],
        false => line,
    }
}

fn the_first_command_of_the_readme_prints_what_the_readme_says() {
    let command = "paternoster compare experiments/journal-pingpong.toml";
    let text = run(command);
    assert!(text.contains("cfq@4.19 the disk stands idle with work queued"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 110), "{text}");
    let commands = commands_of("README.md");
    let Some(first) = commands.first() else { return };
    assert_eq!(first.command, command);
    assert_printed(first, &text);
}

/// Those on the kernel in virtual time are left out: they take long, and it may not be there.
fn the_commands_of_the_tutorial_and_the_guides_print_what_they_say() {
    let guides = std::fs::read_dir(workspace().join("docs/guides")).into_iter().flatten();
    let guides = guides.map(|entry| entry.unwrap().path());
    let guides = guides.filter(|path| path.extension().is_some_and(|it| it == "md"));
    let tutorial = Path::new("docs/tutorial.md").to_path_buf();
    for document in guides.chain([tutorial]) {
        for shown in commands_of(&document.to_string_lossy()) {
            if !shown.command.contains("linux") {
                assert_printed(&shown, &run(&shown.command));
            }
        }
    }
}

/// The commands of a document that are typed without their output being shown, each in a line.
fn typed_in(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(workspace().join(document)).unwrap_or_default();
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines.filter(|line| line.starts_with("paternoster ")).map(str::to_string).collect()
}

/// A directory with the files that documents name where a user has his own.
fn with_files_of_a_user() -> Directory {
    let directory = Directory::new("documents");
    let job = "[a]\nrw=randrw\nbs=4k\ndirect=1\nfilename=/dev/sda\nnumber_ios=50\n";
    let experiment = "schedulers = [\"none\"]\nseeds = 1\n[[job]]\nname = \"a\"\n\
                      run = \"dd if=/dev/sda of=/dev/null bs=4k count=50 iflag=direct\"\n";
    for (name, text) in [("JOB.fio", job), ("jobs.fio", job), ("EXPERIMENT.toml", experiment)] {
        directory.write(name, text);
    }
    let dd = ["dd", "if=/dev/sda", "of=/dev/null", "bs=4k", "count=50", "iflag=direct"];
    let record = ["compare", "--runs", "1", "-s", "none", "--record", "of", "--"];
    assert!(directory.run(&[&record[..], &dd].concat()).status.success());
    let recorded = files_below(&directory.path().join("of"));
    let size = |file: &&PathBuf| std::fs::metadata(file).unwrap().len();
    let is_trace = |file: &&PathBuf| file.to_string_lossy().contains(".blktrace.");
    let trace = recorded.iter().filter(is_trace).max_by_key(size).unwrap();
    std::fs::rename(trace, directory.path().join("TRACE")).unwrap();
    directory
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { files_below(&it) } else { vec![it] }).collect()
}

/// What builds or removes kernels is left out, and what needs one that is not there.
fn the_commands_of_the_readme_and_of_the_world_linux_run() {
    let directory = with_files_of_a_user();
    let kernels = directory.run(&["linux", "kernels"]).stdout;
    let kernels = String::from_utf8(kernels).unwrap();
    let is_there = |name: &str| kernels.lines().any(|line| line.starts_with(&format!("{name}.")));
    let can_run = |line: &String| {
        let others = ["linux build", "linux remove", "linux shell", "mine"];
        let mut words = line.split_whitespace();
        let kernel = words.find(|it| *it == "--kernel").and_then(|_| words.next());
        others.iter().all(|it| !line.contains(it)) && kernel.is_none_or(is_there)
    };
    let lines = ["README.md", "docs/linux.md"].into_iter().flat_map(typed_in);
    let lines: Vec<String> = lines.filter(can_run).collect();
    assert!(lines.len() > 8, "{lines:?}");
    let programs = Path::new(program().get_program()).parent().unwrap().to_path_buf();
    let path = std::env::var("PATH").unwrap_or_default();
    for line in lines {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", &line]).current_dir(directory.path());
        let output = shell.env("PATH", format!("{}:{path}", programs.display())).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        assert!(line.contains("linux run") || !output.stdout.is_empty(), "{line}: {said}");
    }
}

/// The tests of this file.
pub fn tests() -> Vec<testing::Test> {
    testing::tests![
        [] => the_first_command_of_the_readme_prints_what_the_readme_says,
            the_commands_of_the_tutorial_and_the_guides_print_what_they_say;
        [KERNEL, BUSYBOX, FIO, MKFS_EXT4] => the_commands_of_the_readme_and_of_the_world_linux_run,
    ]
}
