//! What the lives of many requests come to: how much of their time was spent in which layer.

use crate::layer::Layer;
use crate::life::Life;
use base::Duration;

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
    /// By the place of their layers.
    parts: Vec<Option<(Layer, Part)>>,
}

impl Summary {
    /// Adds a life.
    pub fn see(&mut self, life: &Life) {
        self.requests += 1;
        self.total += life.end().saturating_since(life.queued);
        if self.parts.is_empty() {
            self.parts.resize(Layer::COUNT, None);
        }
        for (layer, time) in &life.layers {
            let part = &mut self.parts[layer.place()];
            let (_, part) = part.get_or_insert((*layer, Part::default()));
            part.time += *time;
            part.requests += 1;
            part.longest = part.longest.max(*time);
        }
    }

    /// The layers in which time was spent; the parts add up to `total`.
    pub fn layers(&self) -> impl Iterator<Item = &(Layer, Part)> {
        self.parts.iter().flatten()
    }
}
