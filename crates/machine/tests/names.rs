//! Programs that make, rename and remove names.

mod common;

use common::{command, setup};
use machine::Exit;
use machine::Format;
use machine::{Mount, Nobody, Setup};

/// Runs a line on both file systems; the answers are its exit and what it said.
fn run(line: &str) -> Vec<(Exit, Vec<String>)> {
    let run = |format| {
        let mount = Some(Mount { format, ..Mount::default() });
        let setup = Setup { jobs: vec![command(line)], mount, ..setup("6.12", "none") };
        let job = machine::run(setup, &mut Nobody).expect("a setup that runs").jobs.remove(0);
        (job.exit, job.messages)
    };
    [Format::Ext4, Format::Xfs].map(run).into()
}

fn assert_says(line: &str, said: &[&str]) {
    for (exit, messages) in run(line) {
        let status = if said.is_empty() { 0 } else { 1 };
        assert_eq!(
            (exit, messages),
            (Exit::Status(status), said.iter().map(|it| it.to_string()).collect()),
            "{line}"
        );
    }
}

#[test]
fn names_can_be_made_listed_renamed_and_removed() {
    assert_says("touch /mnt/a && mv /mnt/a /mnt/b && stat /mnt/b && rm /mnt/b", &[]);
    assert_says("mkdir -p /mnt/d/e && touch /mnt/d/e/x && mv /mnt/d /mnt/f && ls /mnt/f/e/x", &[]);
    assert_says(
        "mkdir /mnt/d && touch /mnt/a /mnt/b && mv /mnt/a /mnt/b /mnt/d && stat /mnt/d/b",
        &[],
    );
    assert_says("mkdir -p /mnt/d/e && touch /mnt/d/e/x && rm -r /mnt/d && mkdir /mnt/d", &[]);
    assert_says("truncate -s 1M /mnt/a && fallocate -l 2M /mnt/a && rm -f /mnt/a /mnt/a", &[]);
}

#[test]
fn what_cannot_be_done_is_said_as_coreutils_say_it() {
    assert_says("rm /mnt/x", &["rm: cannot remove '/mnt/x': No such file or directory"]);
    assert_says("mkdir /mnt/d; rm /mnt/d", &["rm: cannot remove '/mnt/d': Is a directory"]);
    assert_says(
        "mkdir -p /mnt/d/e; rmdir /mnt/d",
        &["rmdir: failed to remove '/mnt/d': Directory not empty"],
    );
    assert_says(
        "mkdir /mnt/d; touch /mnt/d/a; mkdir /mnt/d",
        &["mkdir: cannot create directory '/mnt/d': File exists"],
    );
    assert_says("mv /mnt/x /mnt/y", &["mv: cannot stat '/mnt/x': No such file or directory"]);
    assert_says(
        "touch /mnt/a /mnt/b /mnt/c; mv /mnt/a /mnt/b /mnt/c",
        &["mv: target '/mnt/c': Not a directory"],
    );
    assert_says("touch /mnt/n/x", &["touch: cannot touch '/mnt/n/x': No such file or directory"]);
    assert_says("stat /mnt/x", &["stat: cannot statx '/mnt/x': No such file or directory"]);
    assert_says(
        "mkdir /mnt/d; dd if=/dev/zero of=/mnt/d count=1",
        &["dd: failed to open '/mnt/d': Is a directory"],
    );
}
