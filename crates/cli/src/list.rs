//! `paternoster list`.

use crate::output::print;
use crate::terminal::style;
use lab::experiment::builtin;
use lab::{Error, catalogue};
use report::Style;

/// What can be listed.
pub const SUBJECTS: [&str; 9] = [
    "schedulers",
    "models",
    "hosts",
    "guests",
    "kernels",
    "experiments",
    "programs",
    "tunables",
    "metrics",
];

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
        (Some("experiments"), Some(name)) => experiment(name)?.to_string(),
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
        ("experiments", None) => catalogue::experiments(),
        ("metrics", None) => Ok(catalogue::metrics()),
        ("kernels" | "programs" | "metrics", Some(name)) => {
            let problem = format!("\"{name}\" after {subject}");
            Err(Error::bad("list", problem, format!("list {subject}")))
        }
        _ => Err(catalogue::unknown_subject(subject, &SUBJECTS)),
    }
}

/// The text of an experiment.
fn experiment(name: &str) -> Result<&'static str, Error> {
    let refuse = || {
        let hint = base::nearest(name, builtin::names());
        let problem = format!("no experiment \"{name}\"{hint}");
        Error::bad("list", problem, builtin::names().collect::<Vec<_>>().join(", "))
    };
    builtin::text(name).ok_or_else(refuse)
}
