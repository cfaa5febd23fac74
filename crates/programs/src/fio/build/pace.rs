//! How fast a job goes, and the latency or steadiness it looks for.

use base::{Bytes, Duration};

use super::super::error::ParseError;
use super::super::job::{
    Direction, Flow, LatencyTarget, Pace, Pattern, PerDirection, Rate, Steady, Think,
};
use super::super::settings::Value;
use super::super::value;
use super::Builder;

impl Builder<'_, '_> {
    pub(super) fn pace(&mut self, pattern: &Pattern) -> Result<Pace, ParseError> {
        let rate = self.rates("rate", "rate_iops")?;
        let rate_min = self.rates("rate_min", "rate_iops_min")?;
        for direction in Direction::ALL {
            let (Some(rate), Some(least)) =
                (rate[direction as usize], rate_min[direction as usize])
            else {
                continue;
            };
            let block = pattern.sizes[direction as usize].least().0.max(1);
            let bytes = |rate| match rate {
                Rate::Bandwidth(bytes) => u128::from(bytes.0),
                Rate::Requests(requests) => u128::from(requests) * u128::from(block),
            };
            if bytes(least) > bytes(rate) {
                return Err(self.error("rate_min", "is above the rate"));
            }
        }
        let cycle = self.number("rate_cycle").unwrap_or(0);
        Ok(Pace {
            think: self.think()?,
            rate,
            rate_min,
            poisson: self.choice("rate_process") == "poisson",
            rate_cycle: Duration::from_millis(cycle.min(u64::from(u32::MAX))),
            rate_ignores_think: self.switch("rate_ignore_thinktime"),
            flow: self.flow()?,
        })
    }

    /// The rates of an option for bandwidth and one for requests; 0 means no limit.
    fn rates(
        &self,
        bandwidth: &str,
        requests: &str,
    ) -> Result<PerDirection<Option<Rate>>, ParseError> {
        let above_zero = |number: Option<i64>| {
            number.and_then(|number| u64::try_from(number).ok()).filter(|number| *number > 0)
        };
        let bytes = self.numbers(bandwidth).map(above_zero);
        let counts = self.numbers(requests).map(above_zero);
        if bytes.iter().zip(&counts).any(|(bytes, count)| bytes.is_some() && count.is_some()) {
            let message = format!("cannot be combined with {bandwidth}");
            return Err(self.error(requests, message));
        }
        Ok(std::array::from_fn(|direction| {
            let bandwidth = bytes[direction].map(|bytes| Rate::Bandwidth(Bytes(bytes)));
            bandwidth.or(counts[direction].map(Rate::Requests))
        }))
    }

    fn think(&mut self) -> Result<Option<Think>, ParseError> {
        let Some(time) = self.duration("thinktime").filter(|time| !time.is_zero()) else {
            for option in ["thinktime_spin", "thinktime_blocks", "thinktime_iotime"] {
                if self.settings.get(option).is_some() {
                    self.note(format!("{option} has no effect without thinktime"));
                }
            }
            return Ok(None);
        };
        let spin = self.duration("thinktime_spin").unwrap_or(Duration::ZERO);
        let io_time = self.duration("thinktime_iotime").filter(|time| !time.is_zero());
        // With a time between pauses, a number of blocks counts only if it is given.
        let blocks = match self.settings.get("thinktime_blocks") {
            None if io_time.is_some() => u32::MAX,
            _ => self.count("thinktime_blocks")?,
        };
        Ok(Some(Think {
            time,
            spin: spin.min(time),
            blocks,
            at_issue: self.choice("thinktime_blocks_type") == "issue",
            io_time,
        }))
    }

    fn flow(&self) -> Result<Option<Flow>, ParseError> {
        let weight = self.count_or_zero("flow")?;
        let sleep = self.number("flow_sleep").unwrap_or(0).min(u64::from(u32::MAX));
        Ok((weight > 0).then(|| Flow {
            id: self.numbers("flow_id")[0].unwrap_or(0),
            weight,
            sleep: Duration::from_micros(sleep),
        }))
    }

    pub(super) fn latency(&mut self) -> Result<Option<LatencyTarget>, ParseError> {
        let window = self.duration("latency_window").filter(|window| !window.is_zero());
        let Some(target) = self.duration("latency_target").filter(|target| !target.is_zero())
        else {
            return Ok(None);
        };
        let percentile = match self.settings.value("latency_percentile") {
            Some(Value::Fractions(list)) => list.first().copied().unwrap_or(0),
            _ => 0,
        };
        let window = window.ok_or_else(|| {
            self.error("latency_target", "needs latency_window, the time to try each depth for")
        })?;
        Ok(Some(LatencyTarget {
            target,
            window,
            percentile: u32::try_from(percentile).unwrap_or(0),
            run: self.switch("latency_run"),
        }))
    }

    pub(super) fn steady(&mut self) -> Result<Option<Steady>, ParseError> {
        let duration = self.duration("steadystate_duration").unwrap_or(Duration::ZERO);
        let Some(Value::Choice(word, rest)) = self.settings.get("steadystate") else {
            return Ok(None);
        };
        let limit = rest.as_deref().ok_or_else(|| {
            self.error("steadystate", format!("{word} needs a limit")).accepts("iops_slope:0.3%")
        })?;
        let bandwidth = word.starts_with("bw");
        let (limit, percent) = self
            .steady_limit(limit, bandwidth)
            .ok_or_else(|| self.error("steadystate", format!("'{limit}' is no limit")))?;
        if duration.is_zero() {
            self.note("steadystate has no effect without steadystate_duration");
            return Ok(None);
        }
        Ok(Some(Steady {
            bandwidth,
            slope: word.ends_with("slope"),
            limit,
            percent,
            duration,
            ramp: self.duration("steadystate_ramp_time").unwrap_or(Duration::ZERO),
        }))
    }

    /// A limit in millionths, and whether it is a percentage. Only an amount of data has units.
    fn steady_limit(&self, text: &str, is_data: bool) -> Option<(u64, bool)> {
        let (limit, behind) = value::decimal(text).ok()?;
        let percent = behind.starts_with('%');
        if percent || !is_data {
            return Some((u64::try_from(limit).ok()?, percent));
        }
        let bytes = value::number(text, self.settings.unit_base()).ok()?.value;
        Some((u64::try_from(bytes).ok()?.checked_mul(1_000_000)?, false))
    }
}
