//! Parts of a request's time in the order in which they happened.

use super::Requests;
use super::log::{Log, Stands};
use super::request::Layers;
use crate::layer::Layer;
use base::{Duration, Instant};
use block::RequestId;

/// Of a request so many parts are kept at most.
pub(super) const MOST_PARTS: usize = 64;
/// Of one with more, parts are put together within so many groups: the first number that does.
const GROUPS: [usize; 3] = [16, 4, 1];

impl Requests {
    /// From now on the parts of a request's time are in the order in which they happened, and a
    /// layer may be there several times.
    pub fn in_order(mut self) -> Requests {
        self.state.log = Some(Log::default());
        self
    }

    /// What the queue did since a request was inserted or chosen, where somebody wants to know.
    pub(super) fn stands(&mut self, id: RequestId, at: Instant) -> Stands {
        if self.state.log.is_none() {
            return Stands::new();
        }
        let since = self.get(id).and_then(|it| it.stands_since());
        let since = since.zip(self.state.log.as_ref());
        since.map_or(Stands::new(), |(since, log)| log.between(since, at))
    }
}

/// Adds what comes behind all others.
pub(super) fn push(layers: &mut Layers, layer: Layer, time: Duration) {
    if time.is_zero() {
        return;
    }
    match layers.last_mut() {
        Some(last) if last.0 == layer => last.1 += time,
        _ => layers.push((layer, time)),
    }
}

/// Puts parts together that are near each other, where there are too many: within a group each
/// layer is there once.
pub(super) fn thin(layers: &mut Layers) {
    for groups in GROUPS {
        if layers.len() <= MOST_PARTS {
            return;
        }
        let all = std::mem::take(layers);
        for group in all.chunks(all.len().div_ceil(groups)) {
            push_sums(layers, group);
        }
    }
}

/// Adds the sums of a group, in the order in which layers come up in it.
fn push_sums(layers: &mut Layers, group: &[(Layer, Duration)]) {
    let start = layers.len();
    for (layer, time) in group {
        match layers[start..].iter_mut().find(|it| it.0 == *layer) {
            Some(it) => it.1 += *time,
            None => layers.push((*layer, *time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_parts_become_few_that_add_up() {
        let mut layers = Layers::new();
        for number in 0..1000 {
            let layer = if number % 2 == 0 { Layer::Full } else { Layer::Others };
            push(&mut layers, layer, Duration::from_nanos(number));
        }
        thin(&mut layers);
        let sum: Duration = layers.iter().map(|it| it.1).sum();
        assert_eq!(sum.as_nanos(), (0..1000).sum::<u64>());
        assert!(layers.len() <= MOST_PARTS, "{}", layers.len());
    }
}
