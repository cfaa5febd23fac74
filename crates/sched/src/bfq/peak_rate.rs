//! How fast the disk is, from what it was given and when (rules bfq-rate).

use super::Bfq;
use super::queue::QueueId;
use base::Sector;
use block::{Cx, RequestId};

/// Rates are sectors a microsecond, with so many binary places.
const PLACES: u32 = 16;
/// What disks that rotate do, and others: the references of raising.
const REFERENCES: [u64; 2] = [14_000, 33_000];
const LEAST_SAMPLES: u64 = 32;
/// Nanoseconds.
const LEAST_INTERVAL: u64 = 300_000_000;
const INTERVAL: u64 = 1_000_000_000;
/// So long a pause ends an interval, in nanoseconds.
const PAUSE: u64 = 100_000_000;
/// A request that comes so soon after the last completion is taken to be sequential.
const SOON: u64 = 2_000_000;
/// A request that begins more than so many sectors from the last one is a seek.
const FAR: u64 = 800;

/// The estimate and what it comes from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeakRate {
    pub peak: u64,
    /// As the disk said when the scheduler was attached.
    was_rotational: bool,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first_dispatch: i64,
    last_dispatch: i64,
    delta: u64,
}

impl PeakRate {
    /// Two thirds of what such disks do.
    pub fn new(is_rotational: bool) -> PeakRate {
        let reference = REFERENCES[usize::from(!is_rotational)];
        PeakRate { peak: 2 * reference / 3, was_rotational: is_rotational, ..PeakRate::default() }
    }

    /// What such a disk does, and in how many milliseconds a large program loads from it.
    pub fn reference(&self) -> (u64, u64) {
        let is_flash = usize::from(!self.was_rotational);
        (REFERENCES[is_flash], [7_000, 2_500][is_flash])
    }
}

impl Bfq {
    /// A request goes to the disk.
    pub(super) fn sample_dispatch(&mut self, cx: &mut Cx<'_>, id: QueueId, rq: RequestId) {
        let (now, sectors) = (self.nanos, u64::from(cx.request(rq).sectors.0));
        // The kernel's differences have no sign: what is done since a task read the clock was long
        // ago. (Observed on 6.12.117.)
        let since = |then: i64| now.wrapping_sub(then) as u64;
        if self.rate.samples == 0 {
            let samples = self.rate.samples;
            self.message(cx, format_args!("update_peak_rate: goto reset, samples {samples}"));
            self.restart_rate(cx, Some(sectors));
        } else if since(self.rate.last_dispatch) > PAUSE && self.in_driver == 0 {
            self.evaluate_rate(cx, Some(sectors));
        } else {
            self.rate.samples += 1;
            let is_soon = self.in_driver > 0 || since(self.last_completion) < SOON;
            if is_soon && self.is_sequential(cx, rq) {
                self.rate.sequential += 1;
            }
            self.rate.sectors += sectors;
            let keeps = !self.rate.samples.is_multiple_of(32);
            self.rate.largest = if keeps { self.rate.largest.max(sectors) } else { sectors };
            self.rate.delta = since(self.rate.first_dispatch);
            if self.rate.delta >= INTERVAL {
                self.evaluate_rate(cx, Some(sectors));
            }
        }
        self.last_position = cx.request(rq).end();
        if self.in_service == Some(id) {
            self.in_serv_last_pos = self.last_position;
        }
        self.rate.last_dispatch = now;
    }

    /// It begins close to where the last one ended; or is long, where that is as good.
    fn is_sequential(&self, cx: &Cx<'_>, rq: RequestId) -> bool {
        let last = self.last_position;
        match self.rules.samples_as_queues {
            true => !self.is_seek(cx, last, rq),
            false => cx.request(rq).sector.0.abs_diff(last.0) < FAR,
        }
    }

    /// A request that begins far from `last`, and is not large on a disk that does not rotate.
    pub(super) fn is_seek(&self, cx: &Cx<'_>, last: Sector, rq: RequestId) -> bool {
        let request = cx.request(rq);
        let is_far = last.0 != 0 && request.sector.0.abs_diff(last.0) > FAR;
        is_far && (self.is_rotational || request.sectors.0 < 64)
    }

    /// The disk had nothing to do for so long that its rate cannot be told.
    pub(super) fn look_for_gap(&mut self, cx: &mut Cx<'_>) {
        let gap = ((self.nanos - self.last_completion) / 1_000) as u64;
        if gap > 2_000 && (self.rate.largest << PLACES) / gap < 1 << (PLACES - 10) {
            self.evaluate_rate(cx, None);
        }
        self.last_completion = self.nanos;
    }

    fn restart_rate(&mut self, cx: &mut Cx<'_>, first: Option<u64>) {
        let now = self.nanos;
        match first {
            Some(sectors) => {
                self.rate.first_dispatch = now;
                self.rate.last_dispatch = now;
                self.rate.samples = 1;
                self.rate.sequential = 0;
                self.rate.sectors = sectors;
                self.rate.largest = sectors;
            }
            None => self.rate.samples = 0,
        }
        let PeakRate { samples, sequential, sectors, .. } = self.rate;
        self.message(
            cx,
            format_args!(
                "reset_rate_computation at end, sample {samples}/{sequential} tot_sects {sectors}"
            ),
        );
    }

    fn evaluate_rate(&mut self, cx: &mut Cx<'_>, first: Option<u64>) {
        if self.rate.samples >= LEAST_SAMPLES && self.rate.delta >= LEAST_INTERVAL {
            let until = self.last_completion.wrapping_sub(self.rate.first_dispatch) as u64;
            self.rate.delta = self.rate.delta.max(until);
            self.take_rate(cx);
        }
        self.restart_rate(cx, first);
    }

    fn take_rate(&mut self, cx: &mut Cx<'_>) {
        let PeakRate { samples, sequential, sectors, delta, peak, .. } = self.rate;
        let rate = (sectors << PLACES) / (delta / 1_000).max(1);
        let is_random = sequential < 3 * samples / 4 && rate <= peak;
        if is_random || rate > 20 << PLACES {
            return;
        }
        let weight = 9 * sequential / samples;
        let weight = (weight.wrapping_mul(delta) / INTERVAL).min(8);
        let divisor = 10 - weight;
        self.rate.peak = (peak * (divisor - 1) / divisor + rate / divisor).max(1);
        self.adapt_max_budget(cx);
    }

    /// The largest budget is what the disk does in the time for a budget.
    pub(super) fn adapt_max_budget(&mut self, cx: &mut Cx<'_>) {
        if self.settings.max_budget == 0 {
            let millis = self.hz.millis_from_jiffies(self.settings.timeout_sync);
            let budget = (self.rate.peak * 1_000 * millis) >> PLACES;
            self.max_budget = budget;
            self.message(cx, format_args!("new max_budget = {budget}"));
        }
    }
}
