//! Whether the disk queues commands (rule cfq-early-end-2): taken for granted at first, and
//! looked at anew after every 51 completions under load.

/// Requests that a disk with queueing is expected to take at once.
const THRESHOLD: u32 = 5;
/// Completions before the one that decides.
const SAMPLES: u32 = 50;

/// The guess, and what the next one will be made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Depth {
    pub queues: bool,
    peak: u32,
    samples: u32,
}

impl Default for Depth {
    fn default() -> Depth {
        Depth { queues: true, peak: 0, samples: 0 }
    }
}

impl Depth {
    /// A request completes and is not taken off the count yet.
    pub fn completed(&mut self, in_driver: u32, queued: u32) {
        self.peak = self.peak.max(in_driver);
        if queued <= THRESHOLD && in_driver <= THRESHOLD {
            return;
        }
        self.samples += 1;
        if self.samples > SAMPLES {
            *self = Depth { queues: self.peak >= THRESHOLD, peak: 0, samples: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_51st_sample_decides_and_the_next_may_decide_otherwise() {
        let mut depth = Depth::default();
        (0..50).for_each(|_| depth.completed(1, 9));
        assert!(depth.queues);
        depth.completed(1, 9);
        assert!(!depth.queues);
        (0..51).for_each(|_| depth.completed(6, 0));
        assert!(depth.queues);
    }

    #[test]
    fn a_light_load_never_decides() {
        let mut depth = Depth::default();
        (0..1_000).for_each(|_| depth.completed(1, 5));
        assert!(depth.queues);
    }
}
