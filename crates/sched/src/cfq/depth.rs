//! Whether the disk queues commands, guessed from how many it was given (rules cfq-queues).

/// Requests that a disk with queueing is expected to take at once.
const THRESHOLD: u32 = 5;
/// Completions under load after which the guess is made.
const SAMPLES: u32 = 50;

/// The guess, and what it is made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DepthProbe {
    known: Option<bool>,
    deepest: u32,
    samples: u32,
}

/// What is looked at when a request completes, before it is taken off the count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub in_driver: u32,
    pub queued: u32,
    /// The active queue waits for its process, and has so few requests, dispatched or queued.
    pub active: Option<u32>,
}

impl DepthProbe {
    /// Whether the disk queues commands; what is not known counts as that it does.
    pub fn queues(&self) -> bool {
        self.known != Some(false)
    }

    /// It was seen to queue, and nothing that completes will change that.
    pub fn is_decided(&self) -> bool {
        self.known == Some(true)
    }

    /// A request completed.
    pub fn completed(&mut self, load: Load) {
        self.deepest = self.deepest.max(load.in_driver);
        if self.is_decided() || load.queued <= THRESHOLD && load.in_driver <= THRESHOLD {
            return;
        }
        if load.active.is_some_and(|few| few < THRESHOLD) && load.in_driver < THRESHOLD {
            return;
        }
        let before = self.samples;
        self.samples += 1;
        if before >= SAMPLES {
            self.known = Some(self.deepest >= THRESHOLD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_load_never_decides() {
        let mut probe = DepthProbe::default();
        (0..200).for_each(|_| probe.completed(Load { in_driver: 1, queued: 5, active: None }));
        let few = Load { in_driver: 4, queued: 9, active: Some(4) };
        (0..200).for_each(|_| probe.completed(few));
        assert!(probe.known.is_none());
        (0..51).for_each(|_| probe.completed(Load { active: Some(5), ..few }));
        assert_eq!(probe.known, Some(false));
    }

    #[test]
    fn a_disk_that_never_had_five_does_not_queue() {
        let mut probe = DepthProbe::default();
        let load = Load { in_driver: 1, queued: 9, active: None };
        (0..50).for_each(|_| probe.completed(load));
        assert!(probe.queues(), "not known yet");
        probe.completed(load);
        assert!(!probe.queues());
        probe.completed(Load { in_driver: 5, ..load });
        assert!(probe.queues(), "it is looked at again until it does");
    }
}
