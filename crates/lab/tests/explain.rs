//! `explain` finds what is wrong, and nothing where nothing is.

use lab::Experiment;
use lab::explain::finding::Finding;
use lab::explain::{Explained, Options, explain, explain_row, label_of};
use lab::plan::Plan;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

fn below(directory: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let entries = std::fs::read_dir(root).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    files
}

fn plan_of(path: &Path) -> (Plan, String) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    (Plan::new(Experiment::parse(&name, &text).unwrap()).unwrap(), text)
}

/// What a line such as `# cause = "idling"` says.
fn said<'a>(text: &'a str, key: &str) -> &'a str {
    let start = format!("# {key} = \"");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.and_then(|it| it.strip_suffix('"')).unwrap_or_else(|| panic!("no {key}"))
}

/// Explains the row that is called so.
fn row_called(plan: &Plan, label: &str, trials: usize) -> Explained {
    let row = plan.rows.iter().find(|it| label_of(&it.spec, &it.axes) == label);
    let row = row.unwrap_or_else(|| panic!("no row {label}"));
    explain_row(plan, row, Options { trials, ..Options::default() }).unwrap()
}

fn causes(it: &Explained) -> Vec<&Finding> {
    it.findings.iter().filter(|it| it.is_cause()).collect()
}

/// The first cause of a row of an experiment.
fn first_cause(file: &str, label: &str) -> (&'static str, Option<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
    let (plan, _) = plan_of(&path);
    let explained = row_called(&plan, label, 0);
    causes(&explained).first().map_or(("nothing", None), |it| (it.name, it.culprit.clone()))
}

#[test]
fn the_cause_of_each_complaint_is_found_first() {
    let missed = Mutex::new(Vec::new());
    let files = Mutex::new(below("experiments/threads").into_iter());
    let next = || files.lock().unwrap().next();
    let work = || {
        while let Some(path) = next() {
            let (plan, text) = plan_of(&path);
            let (cause, under) = (said(&text, "cause"), said(&text, "under"));
            let first = |trials| {
                let explained = row_called(&plan, under, trials);
                causes(&explained).first().map_or("nothing", |it| it.name)
            };
            // What is only suspected is a cause when a change helps.
            if first(0) == cause {
                continue;
            }
            let first = first(1);
            if first != cause {
                missed.lock().unwrap().push(format!("{}: {first}, not {cause}", path.display()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn what_strangers_made_up_is_found_first() {
    let missed = Mutex::new(Vec::new());
    let files = Mutex::new(below("fidelity/composed").into_iter());
    let next = || files.lock().unwrap().next();
    let work = || {
        while let Some(path) = next() {
            let (plan, text) = plan_of(&path);
            // Those of the first round say in words what is wrong.
            if !text.starts_with("# cause") {
                continue;
            }
            let asked = Options { trials: 1, ..Options::default() };
            let explained = explain_row(&plan, &plan.rows[0], asked).unwrap();
            let all = causes(&explained);
            let first = all.first().map_or(("nothing", ""), |it| (it.name, it.victim.as_str()));
            if first != (said(&text, "cause"), said(&text, "victim")) {
                missed.lock().unwrap().push(format!("{}: {first:?}", path.display()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let (mut runs, mut wrong) = (0, Vec::new());
    for path in below("fidelity/healthy") {
        let (plan, _) = plan_of(&path);
        for it in explain(&plan, Options::default(), &|_, _| ()).unwrap() {
            runs += 1;
            let found = causes(&it).iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
            if !found.is_empty() {
                wrong.push(format!("{} {}: {found}", path.display(), it.label()));
            }
        }
    }
    assert!(runs >= 100, "{runs}");
    assert!(wrong.len() * 50 <= runs, "{wrong:#?}");
}

#[test]
fn founding_reports_have_their_causes() {
    let of = |file, label| first_cause(file, label);
    let journal = of("journal-pingpong.toml", "cfq@4.19 · write_cache=write through");
    assert_eq!(journal, ("dependent-tasks-apart", Some("jbd2/sda-8".to_string())));
    let plain = of("journal-pingpong.toml", "deadline@4.19 · write_cache=write through");
    assert_eq!(plain.0, "nothing");
    let dump = of("dump-cooperation.toml", "cfq@2.6.28 · hz=1000, clone_io=off");
    assert_eq!(dump.0, "cooperating-tasks-apart");
    let shared = of("dump-cooperation.toml", "cfq@2.6.28 · hz=1000, clone_io=on");
    assert_eq!(shared.0, "nothing");
}
