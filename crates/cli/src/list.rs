//! `paternoster list`.

use crate::output::print;
use crate::terminal::style;
use lab::{Error, Experiment, catalogue};
use report::Style;
use std::path::Path;

const SUBJECTS: [&str; 8] =
    ["schedulers", "models", "hosts", "guests", "kernels", "experiments", "programs", "tunables"];
/// Where experiments are looked for.
const EXPERIMENTS: &str = "experiments";

/// Lists a subject, or everything of which there is little.
pub fn list(subject: Option<&str>, name: Option<&str>) -> Result<bool, Error> {
    // A list is read line by line, so its lines are whole.
    let style = Style { width: usize::MAX, ..style() };
    let text = match (subject, name) {
        (None, _) => {
            let tables = [
                catalogue::schedulers(),
                catalogue::kernels(),
                catalogue::models()?,
                catalogue::hosts()?,
                catalogue::programs(),
            ];
            tables.iter().map(|it| report::text::table(it, &style)).collect::<Vec<_>>().join("\n")
        }
        (Some("experiments"), None) => report::text::experiments(&experiments()?, &style),
        (Some(subject), name) => report::text::table(&table(subject, name)?, &style),
    };
    print(text.as_bytes()).map(|()| true)
}

fn table(subject: &str, name: Option<&str>) -> Result<catalogue::Table, Error> {
    match (subject, name) {
        ("schedulers", None) => Ok(catalogue::schedulers()),
        ("schedulers" | "tunables", name) => catalogue::tunables(name),
        ("models", None) => catalogue::models(),
        ("models", Some(name)) => catalogue::model(name),
        ("hosts", None) => catalogue::hosts(),
        ("hosts", Some(name)) => catalogue::host(name),
        ("guests", None) => catalogue::guests(),
        ("guests", Some(name)) => catalogue::guest(name),
        ("kernels", None) => Ok(catalogue::kernels()),
        ("programs", None) => Ok(catalogue::programs()),
        ("kernels" | "programs" | "experiments", Some(name)) => {
            let problem = format!("\"{name}\" after {subject}");
            Err(Error::bad("list", problem, format!("list {subject}")))
        }
        _ => Err(catalogue::unknown_subject(subject, &SUBJECTS)),
    }
}

/// The experiments in the directory of that name.
fn experiments() -> Result<Vec<(String, Experiment)>, Error> {
    let directory = Path::new(EXPERIMENTS);
    let entries =
        std::fs::read_dir(directory).map_err(|cause| Error::unreadable(directory, cause))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_toml = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "toml");
    let mut paths: Vec<_> = paths.filter(is_toml).collect();
    paths.sort();
    let load =
        |path: std::path::PathBuf| Ok((path.display().to_string(), Experiment::load(&path)?));
    paths.into_iter().map(load).collect()
}
