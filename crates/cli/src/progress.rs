//! A progress bar on the standard error, if that is a terminal and the work takes over a second.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::mpsc;
use std::time::Duration;

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_secs(1);

/// Does `work`, which is given a function to call with how many runs are done, and how many there
/// are.
pub fn with_bar<T: Send>(work: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> T) -> T {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {elapsed}{left}");
    bar.set_style(style.expect("the template is well formed").with_key("left", left));
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
        let result = work(&|done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
        });
        drop(finished);
        bar.finish_and_clear();
        result
    })
}

/// How long the runs that are left take if they are as those that are done.
fn left(state: &ProgressState, out: &mut dyn Write) {
    let (done, all) = (state.pos(), state.len().unwrap_or(0));
    // Nobody may be looking.
    let _ = match time_left(done, all, state.elapsed()) {
        Some(left) => write!(out, ", {} left", HumanDuration(left)),
        None => Ok(()),
    };
}

/// The time for the rest; none before anything is done.
fn time_left(done: u64, all: u64, elapsed: Duration) -> Option<Duration> {
    let rest = all.checked_sub(done).filter(|rest| done > 0 && *rest > 0)?;
    Some(elapsed.mul_f64(rest as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let after = |done| time_left(done, 12, Duration::from_secs(6));
        assert_eq!((after(0), after(12)), (None, None));
        assert_eq!(after(3), Some(Duration::from_secs(18)));
    }
}
