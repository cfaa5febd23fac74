//! How a guest says that it is done, so that it need not be waited for.
//!
//! A kernel that is turned off with commands under way waits for them for ever. Nothing that a
//! script does rules them out: the flusher and journals write when they like. So the guest
//! unmounts the directory of its results, says there that it is over, and is turned off; if that
//! takes long, its kernel is ended.

use std::path::{Path, PathBuf};

use base::{Duration, Instant};

/// What [`INIT`](crate::script::INIT) leaves in the guest's directory when all else is there.
const OVER: &str = "over";

/// Looks for a guest's farewell.
pub(crate) struct Farewell {
    over: PathBuf,
    next_look: Instant,
    seen: bool,
}

impl Farewell {
    /// How long a guest may take to turn itself off, in its own time; most take some ticks.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// The farewell of a guest that leaves its results in this directory.
    pub fn in_directory(guest: &Path) -> Farewell {
        Farewell { over: guest.join(OVER), next_look: Instant::ZERO, seen: false }
    }

    /// Whether the guest was over a while ago and is still there. Looks once in a while.
    pub fn overdue(&mut self, now: Instant) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + Self::PATIENCE;
        let before = self.seen;
        self.seen = before || self.over.exists();
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_a_second_to_turn_itself_off() {
        let guest = crate::Directory::make().unwrap();
        let mut farewell = Farewell::in_directory(guest.path());
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(!farewell.overdue(at(0)) && !farewell.overdue(at(7)));
        std::fs::create_dir(guest.path().join(OVER)).unwrap();
        assert!(!farewell.overdue(at(7)), "it looks once a second");
        assert!(!farewell.overdue(at(8)));
        assert!(!farewell.overdue(at(8) + Duration::from_millis(999)));
        assert!(farewell.overdue(at(9)));
    }
}
