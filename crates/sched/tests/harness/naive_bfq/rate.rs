//! Rule bfq-rate: how fast the disk is.

use super::{MS, NaiveBfq, Rate};
use block::{Cx, RequestId};

impl NaiveBfq {
    /// Rule bfq-rate.
    pub(super) fn note_dispatch(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let request = cx.request(rq);
        let (now, length) = (self.nanos, i64::from(request.sectors.0));
        if self.rate.samples == 0 {
            self.restart_rate(length);
        } else if now - self.rate.last > 100 * MS && self.in_driver == 0 {
            self.evaluate_rate(Some(length));
        } else {
            self.rate.samples += 1;
            let soon = self.in_driver > 0 || now - self.last_completion < 2 * MS;
            let near = !self.is_seek(self.last_position, request.sector.0, length);
            self.rate.sequential += i64::from(soon && near);
            self.rate.total += length;
            let starts_anew = self.rate.samples % 32 == 0;
            self.rate.largest = if starts_anew { length } else { self.rate.largest.max(length) };
            self.rate.delta = now - self.rate.first;
            if self.rate.delta >= 1_000 * MS {
                self.evaluate_rate(Some(length));
            }
        }
        self.last_position = request.end().0;
        self.rate.last = now;
    }

    pub(super) fn is_seek(&self, last: u64, sector: u64, length: i64) -> bool {
        last != 0 && sector.abs_diff(last) > 800 && (self.rotational || length < 64)
    }

    fn restart_rate(&mut self, length: i64) {
        let (peak, delta, now) = (self.rate.peak, self.rate.delta, self.nanos);
        self.rate = Rate {
            peak,
            samples: 1,
            sequential: 0,
            total: length,
            largest: length,
            first: now,
            last: now,
            delta,
        };
    }

    pub(super) fn evaluate_rate(&mut self, next: Option<i64>) {
        if self.rate.samples >= 32 && self.rate.delta >= 300 * MS {
            self.rate.delta = self.rate.delta.max(self.last_completion - self.rate.first);
            let Rate { samples, sequential, total, delta, peak, .. } = self.rate;
            let rate = (total << 16) / (delta / 1_000);
            let discard = sequential < 3 * samples / 4 && rate <= peak || rate > 20 << 16;
            if !discard {
                let w = (9 * sequential / samples * delta / (1_000 * MS)).min(8);
                let d = 10 - w;
                self.rate.peak = (peak * (d - 1) / d + rate / d).max(1);
                self.tune_max_budget();
            }
        }
        match next {
            Some(length) => self.restart_rate(length),
            None => self.rate.samples = 0,
        }
    }

    pub(super) fn tune_max_budget(&mut self) {
        if self.max_budget_set == 0 {
            let millis = self.timeout * 1_000 / self.hz;
            self.max_budget = (self.rate.peak * 1_000 * millis) >> 16;
        }
    }
}
