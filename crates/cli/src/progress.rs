//! A progress bar on the standard error, if that is a terminal and the work takes over a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc;
use std::time::Duration;

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does `work`, which is given a function to call with the number of runs that are done.
pub fn with_bar<T: Send>(runs: usize, work: impl FnOnce(&(dyn Fn(usize) + Sync)) -> T) -> T {
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed}");
    bar.set_style(style.expect("the template is well formed"));
    let (finished, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        if std::io::stderr().is_terminal() {
            let bar = bar.clone();
            scope.spawn(move || {
                if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(Duration::from_millis(200));
                }
            });
        }
        let result = work(&|done| bar.set_position(done as u64));
        drop(finished);
        bar.finish_and_clear();
        result
    })
}
