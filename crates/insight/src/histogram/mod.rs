//! How time is distributed, by layer: histograms with their modes, in the forms that people know.
//!
//! [`Distribution::bpftrace`] is what `hist()` of bpftrace prints, [`Distribution::bcc`] what
//! `biolatency` of bcc does; [`Distribution`] itself is written as JSON by serde.

mod modes;
mod service;
mod text;

pub use modes::Mode;
pub use service::Service;
pub use text::{Form, Unit};

use crate::layer::Layer;
use crate::life::Life;
use base::{Duration, Histogram};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Some durations.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    bins: Histogram,
    /// By unit: how many are zero, one, below four, below eight and so on. Borders of the bins are
    /// not those of doublings of a unit.
    doublings: [Vec<u64>; 2],
}

impl Distribution {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.bins.record(time);
        for unit in [Unit::Nanos, Unit::Micros] {
            let value = time.as_nanos() / unit.nanos();
            let place = value.checked_ilog2().map_or(0, |power| power as usize + 1);
            let counts = &mut self.doublings[unit as usize];
            if place >= counts.len() {
                counts.resize(place + 1, 0);
            }
            counts[place] += 1;
        }
    }

    /// Adds all of another one.
    pub fn merge(&mut self, other: &Distribution) {
        self.bins.merge(&other.bins);
        for (own, others) in self.doublings.iter_mut().zip(&other.doublings) {
            own.resize(own.len().max(others.len()), 0);
            own.iter_mut().zip(others).for_each(|(sum, count)| *sum += count);
        }
    }

    /// All of them, in bins that are at most 1/64 wide.
    pub fn histogram(&self) -> &Histogram {
        &self.bins
    }

    /// Where they heap up, the shortest first.
    pub fn modes(&self) -> Vec<Mode> {
        modes::of(&self.bins)
    }

    fn doublings(&self, unit: Unit) -> &[u64] {
        &self.doublings[unit as usize]
    }
}

/// Quantiles that are written.
const QUANTILES: [(&str, u64, u64); 5] = [
    ("p50_ns", 50, 100),
    ("p90_ns", 90, 100),
    ("p99_ns", 99, 100),
    ("p99.9_ns", 999, 1000),
    ("p99.99_ns", 9999, 10_000),
];

/// Count, extremes, mean, quantiles, modes and bins; times in nanoseconds.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Distribution", 6 + QUANTILES.len())?;
        out.serialize_field("count", &self.bins.count())?;
        out.serialize_field("min_ns", &self.bins.min().as_nanos())?;
        out.serialize_field("mean_ns", &self.bins.mean().as_nanos())?;
        out.serialize_field("max_ns", &self.bins.max().as_nanos())?;
        for (name, numerator, denominator) in QUANTILES {
            out.serialize_field(name, &self.bins.quantile(numerator, denominator).as_nanos())?;
        }
        out.serialize_field("modes", &self.modes())?;
        let bins: Vec<(u64, u64)> = self.bins.bins().filter(|bin| bin.1 > 0).collect();
        out.serialize_field("bins", &bins)?;
        out.end()
    }
}

/// The time of requests in each layer.
#[derive(Clone, Debug, Default)]
pub struct Layers(Vec<Option<(Layer, Distribution)>>);

impl Layers {
    /// Adds a life. A layer that it was not in is left out, not counted as zero.
    pub fn see(&mut self, life: &Life) {
        if self.0.is_empty() {
            self.0.resize_with(Layer::COUNT, || None);
        }
        for (layer, time) in &life.layers {
            let entry = &mut self.0[layer.place()];
            let (_, times) = entry.get_or_insert_with(|| (*layer, Distribution::default()));
            times.add(*time);
        }
    }

    /// The layers in which any time was spent.
    pub fn iter(&self) -> impl Iterator<Item = &(Layer, Distribution)> {
        self.0.iter().flatten()
    }
}

/// A map from names of layers.
impl Serialize for Layers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(layer, times)| (layer.name(), times)))
    }
}
