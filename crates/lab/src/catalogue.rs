//! What there is to choose from: schedulers, models, hosts, guests, kernels, experiments, programs,
//! metrics, tunables.
//!
//! Plain tables of words for whoever prints them; everything comes from the lists that the code
//! itself works by.

use crate::error::Error;
use crate::experiment::builtin;
use crate::figure::{METRICS, Metric, Of, POINTS, Point};
use crate::kernels::Kernels;
use crate::scheduler_spec::{SchedulerSpec, versions};
use base::nearest;
use block::{KERNELS, QUEUE_SETTINGS, Shape};
use device::Model;
use guest::Profile;
use machine::Host;
use params::Parameter;
use sched::Schedulers;
use std::path::Path;

/// A table of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The headings.
    pub headings: Vec<&'static str>,
    /// The lines.
    pub rows: Vec<Vec<String>>,
}

/// Programs that run without being a command of their own.
const REPLAY: (&str, &str) = ("(a trace)", "replays recorded requests, timed or back to back");

/// The schedulers there are.
pub fn schedulers() -> Table {
    let row = |name: &'static str| {
        let shape = match sched::shape_of(name) {
            Some(Shape::Single) => "single queue",
            _ => "blk-mq",
        };
        let default = sched::default_kernel(name).expect("it is in the list");
        vec![
            name.to_string(),
            shape.to_string(),
            default.version.to_string(),
            versions(sched::kernels(name)),
        ]
    };
    let headings = vec!["scheduler", "block layer", "default", "kernels"];
    Table { headings, rows: sched::names().map(row).collect() }
}

/// The kernels there are.
pub fn kernels() -> Table {
    let row = |kernel: &block::Kernel| {
        let shapes = [(Shape::Single, "single queue"), (Shape::Multi, "blk-mq")];
        let shapes: Vec<&str> =
            shapes.iter().filter(|(shape, _)| kernel.has(*shape)).map(|it| it.1).collect();
        let schedulers: Vec<&str> =
            sched::names().filter(|name| sched::about_on(name, kernel).is_some()).collect();
        vec![
            kernel.version.to_string(),
            kernel.hz.get().to_string(),
            shapes.join(", "),
            schedulers.join(", "),
        ]
    };
    let headings = vec!["kernel", "HZ", "block layer", "schedulers"];
    Table { headings, rows: KERNELS.iter().map(row).collect() }
}

/// The device models that are built in.
pub fn models() -> Result<Table, Error> {
    let row = |name| {
        let model = Model::builtin(name)?;
        Ok(vec![name.to_string(), model.kind().to_string(), model.title().to_string()])
    };
    let rows = Model::names().map(row).collect::<Result<_, Error>>()?;
    Ok(Table { headings: vec!["model", "kind", "what it is"], rows })
}

/// All parameters of a model.
pub fn model(name: &str) -> Result<Table, Error> {
    let model = Model::find(name)?;
    Ok(parameters(model.parameters()))
}

/// The hosts that are built in.
pub fn hosts() -> Result<Table, Error> {
    let row = |name| {
        let host = Host::named(name)?;
        Ok(vec![name.to_string(), host.machine.cores.to_string(), host.title])
    };
    let rows = Host::names().map(row).collect::<Result<_, Error>>()?;
    Ok(Table { headings: vec!["host", "cores", "what it is"], rows })
}

/// All parameters of a host.
pub fn host(name: &str) -> Result<Table, Error> {
    Ok(parameters(Host::find(name)?.parameters()))
}

/// The profiles of guests that are built in.
pub fn guests() -> Result<Table, Error> {
    let row = |name| {
        let guest = Profile::find(name, Path::new(""))?;
        Ok(vec![name.to_string(), guest.title.clone()])
    };
    let rows = Profile::names().map(row).collect::<Result<_, Error>>()?;
    Ok(Table { headings: vec!["guest", "what it is"], rows })
}

/// All facts of a guest.
pub fn guest(name: &str) -> Result<Table, Error> {
    let guest = Profile::find(name, Path::new(""))?;
    let mut table = parameters(guest.parameters());
    table.headings.insert(4, "date");
    for (row, parameter) in table.rows.iter_mut().zip(guest.parameters()) {
        row.insert(4, parameter.date.clone());
    }
    Ok(table)
}

fn parameters(all: &[Parameter]) -> Table {
    let row = |it: &Parameter| {
        vec![it.name.clone(), it.value.clone(), it.unit.clone(), it.source.clone(), it.from.clone()]
    };
    let headings = vec!["parameter", "value", "unit", "source", "from"];
    Table { headings, rows: all.iter().map(row).collect() }
}

/// The programs that can be run.
pub fn programs() -> Table {
    let rows = programs::LIST.iter().map(|it| (it.name, it.does)).chain([REPLAY]);
    let rows = rows.map(|(name, about)| vec![name.to_string(), about.to_string()]).collect();
    Table { headings: vec!["program", "what it does"], rows }
}

/// The tunables of one scheduler, or of all, and the settings of the queue.
pub fn tunables(only: Option<&str>) -> Result<Table, Error> {
    let mut rows = Vec::new();
    let specs = match only {
        Some(text) => vec![SchedulerSpec::parse(text, "list tunables", None)?],
        None => SchedulerSpec::parse_list(
            &Schedulers::default(),
            Kernels::Modelled,
            &[("all".into(), "all".into())],
            None,
        )?,
    };
    for spec in &specs {
        let about = spec.about();
        rows.extend(about.tunables.iter().map(|it| {
            let default = it.default.map_or("by device".to_string(), |value| value.to_string());
            let whose = format!("{}@{}", spec.name, spec.kernel.version);
            tunable(&whose, it.name, it.unit, &default, (it.min, it.max), it.effect)
        }));
    }
    rows.extend(
        QUEUE_SETTINGS.iter().map(|it| {
            tunable("(queue)", it.name, it.unit, "by device", (it.min, it.max), it.effect)
        }),
    );
    let headings = vec!["of", "tunable", "default", "unit", "range", "what it does"];
    Ok(Table { headings, rows })
}

fn tunable(
    whose: &str,
    name: &str,
    unit: &str,
    default: &str,
    (min, max): (i64, i64),
    effect: &str,
) -> Vec<String> {
    let range = format!("{} to {}", bound(min), bound(max));
    [whose, name, default, unit, &range, effect].map(str::to_string).to_vec()
}

/// The bounds of a C `int` are no limits that anybody chose.
fn bound(value: i64) -> String {
    match value {
        _ if value == i64::from(i32::MAX) => "INT_MAX".to_string(),
        _ if value == i64::from(i32::MIN) => "INT_MIN".to_string(),
        _ => value.to_string(),
    }
}

/// The experiments that come with the program.
pub fn experiments() -> Result<Table, Error> {
    let row = |name: &'static str| {
        let experiment = builtin::load(name).expect("it is in the list")?;
        Ok(vec![name.to_string(), experiment.title])
    };
    let rows = builtin::names().map(row).collect::<Result<_, Error>>()?;
    Ok(Table { headings: vec!["experiment", "title"], rows })
}

/// The figures that results can be judged by, those of distributions with each point and with one
/// of the bounds that may stand there.
pub fn metrics() -> Table {
    let row = |metric: &Metric| vec![metric.name.to_string(), metric.about.to_string()];
    let points = |metric: &Metric| {
        let point = |(point, _): &(&str, Point)| {
            vec![format!("{}_{point}", metric.name), metric.about.to_string()]
        };
        let about = "In %, how many took longer; or than any other time.";
        let over = vec![format!("{}_over_40ms", metric.name), format!("{} {about}", metric.about)];
        POINTS.iter().map(point).chain([over]).collect::<Vec<_>>()
    };
    let rows = METRICS.iter().flat_map(|metric| match metric.of {
        Of::Value(_) => vec![row(metric)],
        Of::Distribution(_) => points(metric),
    });
    Table { headings: vec!["metric", "what it means"], rows: rows.collect() }
}

/// The error for a subject that cannot be listed.
pub fn unknown_subject(subject: &str, known: &[&str]) -> Error {
    let problem =
        format!("nothing called \"{subject}\"{}", nearest(subject, known.iter().copied()));
    Error::bad("list", problem, known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_as_wide_as_its_headings() {
        let tables = [
            schedulers(),
            kernels(),
            models().unwrap(),
            model("hdd-7200-sata").unwrap(),
            hosts().unwrap(),
            host("free").unwrap(),
            programs(),
            experiments().unwrap(),
            metrics(),
            tunables(None).unwrap(),
            tunables(Some("deadline")).unwrap(),
        ];
        for table in tables {
            assert!(!table.rows.is_empty());
            assert!(table.rows.iter().all(|row| row.len() == table.headings.len()));
        }
    }
}
