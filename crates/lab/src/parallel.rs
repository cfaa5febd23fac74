//! Runs at a time, as many as there are threads, with what comes of them in the order of the work.

use crate::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// As many threads as there are cores for us.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does each piece of work once. Nothing is begun after a failure, and the first one in the order
/// of the work is returned. `done` is called whenever a piece is done.
pub fn each<W: Sync, T: Send>(
    work: &[W],
    threads: usize,
    job: impl Fn(&W) -> Result<T, Error> + Sync,
    done: impl Fn() + Sync,
) -> Result<Vec<T>, Error> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let slots: Vec<Mutex<Option<Result<T, Error>>>> =
        work.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = work.get(index) else { break };
            let result = job(piece);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *slots[index].lock().expect("nobody panicked with the lock") = Some(result);
            done();
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, work.len().max(1)) {
            scope.spawn(worker);
        }
    });
    slots.into_iter().filter_map(|slot| slot.into_inner().expect("as above")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_work() {
        let count = AtomicUsize::new(0);
        let work: Vec<u64> = (0..100).collect();
        let done = || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let twice = each(&work, 7, |it| Ok(2 * it), done).expect("nothing fails");
        assert_eq!(twice, work.iter().map(|it| 2 * it).collect::<Vec<_>>());
        assert_eq!(count.into_inner(), 100);
    }

    #[test]
    fn the_first_failure_is_told() {
        let fail = |it: &u64| match it {
            3 | 5 => Err(Error::bad("here", format!("{it} fails"), "another")),
            it => Ok(*it),
        };
        let error = each(&[1, 2, 3, 4, 5], 1, fail, || ()).expect_err("two of them fail");
        assert!(error.to_string().contains("3 fails"), "{error}");
    }
}
