//! `paternoster conform`.

use crate::arguments::ConformOptions;
use crate::output::{Destination, print};
use crate::terminal::style;
use conform::{Options, conform as compare};
use lab::Error;
use lab::kernels::parse_kernel;
use lab::scheduler_spec::parse_assignment;
use report::Style;

/// Compares decisions with recordings of the kernel.
pub fn conform(asked: &ConformOptions) -> Result<bool, Error> {
    let options = options(asked)?;
    let json = Destination::asked("--json", asked.json.as_ref())?;
    let mut results = Vec::new();
    for path in &asked.traces {
        results.push(compare(path, &options)?);
    }
    let document = || report::json::to_text(&report::conform::document(&results));
    if json == Some(Destination::Stdout) {
        return print(document().as_bytes()).map(|()| true);
    }
    // A recording is a line.
    let style = Style { width: usize::MAX, ..style() };
    print(style.text(&report::conform::text(&results, &style)).as_bytes())?;
    json.map_or(Ok(()), |destination| destination.write(&document())).map(|()| true)
}

fn options(asked: &ConformOptions) -> Result<Options, Error> {
    let kernel = asked.kernel.as_deref().map(|name| parse_kernel(name, "--kernel"));
    let mut settings = Vec::new();
    for text in asked.set.iter().flat_map(|list| list.split(',')).filter(|it| !it.is_empty()) {
        settings.push(parse_assignment(text, "--set")?);
    }
    Ok(Options {
        kernel: kernel.transpose()?,
        scheduler: asked.scheduler.clone(),
        settings,
        device: asked.trace_device.clone(),
        ..Options::default()
    })
}
