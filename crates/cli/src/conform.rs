//! `paternoster conform`.

use crate::arguments::ConformOptions;
use crate::output::{print, write_file};
use conform::{Options, conform as compare};
use lab::Error;
use lab::scheduler_spec::{parse_assignment, parse_kernel};

/// Compares decisions with recordings of the kernel.
pub fn conform(asked: &ConformOptions) -> Result<bool, Error> {
    let options = options(asked)?;
    let mut results = Vec::new();
    for path in &asked.traces {
        results.push(compare(path, &options)?);
    }
    let text = match &asked.json {
        None => report::conform::text(&results),
        Some(file) => {
            let document = report::json::to_text(&report::conform::document(&results));
            if let Some(file) = file {
                write_file(file, &document)?;
                report::conform::text(&results)
            } else {
                document
            }
        }
    };
    print(text.as_bytes()).map(|()| true)
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
    })
}
