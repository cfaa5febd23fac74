//! How far requests are from each other (rule cfq-early-think-2).

use base::Sector;

/// Samples from which the mean counts, in units of the exponential mean.
const VALID_SAMPLES: u64 = 80;
/// Samples up to which a far seek may weigh much.
const FEW_SAMPLES: u64 = 60;
/// How much farther than four times the mean a seek may count, in sectors: at first, and later.
const FAR: [u64; 2] = [2_097_152, 131_072];
/// A mean beyond is seeky, in sectors.
const SEEKY: u64 = 8_192;

/// An exponential mean with weight 1/8.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeks {
    last_end: Sector,
    samples: u64,
    total: u64,
    mean: u64,
}

impl Seeks {
    /// A request arrives. `from_zero`: the first one is measured from sector 0.
    pub fn note(&mut self, sector: Sector, end: Sector, from_zero: bool) {
        let is_first = self.last_end == Sector(0) && !from_zero;
        let distance = if is_first { 0 } else { sector.0.abs_diff(self.last_end.0) };
        let far = FAR[usize::from(self.samples > FEW_SAMPLES)];
        let distance = distance.min(4 * self.mean + far);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * distance) / 8;
        self.mean = (self.total + self.samples / 2) / self.samples;
        self.last_end = end;
    }

    pub fn is_seeky(&self) -> bool {
        self.mean > SEEKY
    }

    /// The mean, once there were enough samples.
    pub fn valid_mean(&self) -> Option<u64> {
        (self.samples > VALID_SAMPLES).then_some(self.mean)
    }

    /// Seeky, and known to be.
    pub fn is_known_seeky(&self) -> bool {
        self.valid_mean().is_some_and(|mean| mean > SEEKY)
    }

    /// What counts as close: the mean, or 8192 sectors while there is none.
    pub fn close(&self) -> u64 {
        self.valid_mean().unwrap_or(SEEKY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the first request that is not seeky, all of them sequential.
    fn first_sequential(start: u64) -> u64 {
        let mut seeks = Seeks::default();
        let mut at = start;
        for number in 1.. {
            seeks.note(Sector(at), Sector(at + 8), true);
            at += 8;
            if !seeks.is_seeky() {
                return number;
            }
        }
        unreachable!()
    }

    #[test]
    fn a_far_beginning_is_long_remembered() {
        // Rule cfq-early-think-3 counts sequential requests after the far one: 28, and 8.
        assert_eq!(first_sequential(1 << 22), 28);
        assert_eq!(first_sequential(100_000), 8);
        let mut seeks = Seeks::default();
        seeks.note(Sector(1 << 22), Sector(1 << 22), true);
        assert_eq!(seeks.mean, 2_097_152);
    }

    #[test]
    fn the_first_request_of_a_queue_is_no_seek() {
        let mut seeks = Seeks::default();
        seeks.note(Sector(1 << 22), Sector((1 << 22) + 8), false);
        assert_eq!((seeks.mean, seeks.valid_mean()), (0, None));
        assert_eq!(seeks.close(), 8_192);
    }
}
