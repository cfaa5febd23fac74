//! Builds a kernel into the user's cache: `build_kernel [HZ [SERIES|TREE]]`.

use std::error::Error;

use base::Hz;
use linux::build::{Recipe, Source, build};
use linux::cache::Cache;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let hz = arguments.next().as_deref().unwrap_or("250").parse()?;
    let hz = Hz::new(hz).ok_or_else(|| format!("HZ is one of {:?}, not {hz}", Hz::CHOICES))?;
    let source = match arguments.next() {
        Some(tree) if tree.contains('/') => Source::Tree(tree.into()),
        series => Source::Debian(series.unwrap_or_else(|| "6.12".to_string())),
    };
    let jobs = std::thread::available_parallelism()?.get();
    let recipe = Recipe { source, hz, jobs, niceness: 15 };
    let kernel = build(&Cache::of_user()?, &recipe, &mut |progress| eprintln!("{progress}"))?;
    println!("{}", kernel.binary.display());
    Ok(())
}
