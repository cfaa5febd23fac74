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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::counters::REASONS;
    use std::collections::BTreeSet;

    #[test]
    fn every_layer_has_a_place_of_its_own() {
        use Layer::*;
        let plain = [
            Computing, Core, Pause, Task, Page, DirtyLimit, Lock, Journal, Tag, Throttle, Limits,
            Plug, Withheld, Others, Full, Host, Requeued, Device, Interrupt,
        ];
        let held = REASONS.map(Held);
        let all = plain.iter().chain(&held);
        let places: BTreeSet<usize> = all.map(|layer| layer.place()).collect();
        assert_eq!(places.len(), plain.len() + held.len());
        assert_eq!(places.last(), Some(&(Layer::COUNT - 1)));
    }
}
