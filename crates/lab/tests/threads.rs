//! The complaints of `experiments/threads`: each can be planned, says where it comes from, and is
//! listed in the documentation.

use lab::Experiment;
use lab::plan::Plan;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a line such as `# cause = "idling"` says.
fn said<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("# {key} = \"")))?;
    line.strip_suffix('"').filter(|value| !value.is_empty())
}

#[test]
fn every_complaint_is_planned_sourced_and_listed() {
    let listed = std::fs::read_to_string(workspace().join("docs/experiments.md")).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(workspace().join("experiments/threads")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let experiment = Experiment::parse(&format!("{name}.toml"), &text)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(experiment.metric.is_some(), "{name}: metric");
        Plan::new(experiment).unwrap_or_else(|error| panic!("{name}: {error}"));
        for key in ["complaint", "not sure", "accepted answer", "cause", "under", "remedy"] {
            assert!(said(&text, key).is_some(), "{name}: {key}");
        }
        let cause = said(&text, "cause").unwrap();
        assert!(cause.chars().all(|it| it.is_ascii_lowercase() || it == '-'), "{name}: {cause}");
        assert!(listed.contains(&format!("| `{name}` |")), "{name} is not in docs/experiments.md");
        count += 1;
    }
    assert!(count >= 14, "{count}");
}
