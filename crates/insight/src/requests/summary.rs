//! What the lives of many requests come to: how much of their time was spent in which layer.

use crate::layer::Layer;
use crate::life::Life;
use base::Duration;
use std::collections::BTreeMap;

/// A layer's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// All requests together.
    pub time: Duration,
    /// How many spent any time there.
    pub requests: u64,
    /// The longest that one did.
    pub longest: Duration,
}

/// The sums of lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many.
    pub requests: u64,
    /// All their time together.
    pub total: Duration,
    /// By layer; the parts add up to `total`.
    pub layers: BTreeMap<Layer, Part>,
}

impl Summary {
    /// Adds a life.
    pub fn see(&mut self, life: &Life) {
        self.requests += 1;
        self.total += life.end().saturating_since(life.queued);
        for (layer, time) in &life.layers {
            let part = self.layers.entry(*layer).or_default();
            part.time += *time;
            part.requests += 1;
            part.longest = part.longest.max(*time);
        }
    }
}
