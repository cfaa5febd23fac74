//! Histograms of the time in each layer, in the form that somebody asks for.

use super::{HANGING, paragraph, time};
use crate::style::{Paint, Style};
use insight::histogram::{Distribution, Form, Layers, Service, Unit};
use lab::explain::account::Caller;

/// Layers that have less of a caller's time are not shown.
const LEAST: f64 = 0.01;

/// Of requests: D2C first, which `biolatency` shows, and then the time of each layer.
pub fn of_requests(layers: &Layers, service: &Service, form: Form, style: &Style) -> String {
    let modes = service.modes().into_iter().map(|(mode, kinds)| {
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        format!("{} ({})", time(mode.at.as_nanos()), kinds.join(", "))
    });
    let mut out = one("D2C", "requests", service.all(), modes.collect(), form, style);
    for (layer, times) in layers.iter() {
        out.push_str(&one(layer.name(), "requests", times, modes_of(times), form, style));
    }
    out
}

/// Of calls: those of a caller as wholes, and then in each layer.
pub fn of_calls(caller: &Caller, form: Form, style: &Style) -> String {
    let whose = format!("{} {}", caller.job, caller.kind.name());
    let whole = caller.total.as_nanos() as f64;
    let mut out = String::new();
    for (layer, times) in &caller.by_layer {
        let name = match layer {
            Some(layer) => format!("{whose}, {layer}"),
            None => whose.clone(),
        };
        if times.histogram().sum() as f64 >= LEAST * whole {
            out.push_str(&one(&name, "calls", times, modes_of(times), form, style));
        }
    }
    out
}

fn modes_of(times: &Distribution) -> Vec<String> {
    let modes = times.modes();
    modes.iter().map(|mode| format!("{} × {}", mode.count, time(mode.at.as_nanos()))).collect()
}

fn one(
    name: &str,
    what: &str,
    times: &Distribution,
    modes: Vec<String>,
    form: Form,
    style: &Style,
) -> String {
    let unit = Unit::of(times);
    if form == Form::Json {
        return times.bpftrace_json(name, unit) + "\n";
    }
    let count = times.histogram().count();
    let title = format!("{name}: {count} {what}, modes {} (in {})", modes.join(", "), unit.name());
    let title = paragraph(&style.painted(&title, Some(Paint::Heading)), style, "", HANGING);
    let rows = if form == Form::Bcc { times.bcc(unit) } else { times.bpftrace(unit) };
    format!("\n{title}{rows}")
}
