//! How the time of requests is spread, and how much they move over time.

use super::Recorded;
use crate::histogram::Distribution;
use crate::layer::Layer;
use crate::life::Life;
use base::{Duration, Histogram, Instant};
use std::collections::BTreeMap;

/// How long requests spend in one layer.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The layer; none for the whole time.
    pub layer: Option<Layer>,
    /// Of so many requests.
    pub count: u64,
    /// The mean over those.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// The part of all requests' time, in thousandths.
    pub share: u64,
    /// How many requests took up to 2^n ns, for n from 0 on, and more than 2^(n−1) ns.
    pub doublings: Vec<u64>,
}

/// The whole time and each layer of it, the largest share first.
pub fn by_layer(run: &Recorded) -> Vec<Spread> {
    if let Some(outline) = &run.outline {
        return of_times(outline.times());
    }
    let mut layers = BTreeMap::new();
    run.lives.iter().for_each(|life| note(&mut layers, life));
    of_times(&layers)
}

/// Takes note of how long a request took as a whole, which is in no layer, and in each layer.
pub(super) fn note(layers: &mut BTreeMap<Option<Layer>, Distribution>, life: &Life) {
    layers.entry(None).or_default().add(life.end().saturating_since(life.queued));
    let mut own: BTreeMap<Layer, Duration> = BTreeMap::new();
    for (layer, time) in &life.layers {
        *own.entry(*layer).or_default() += *time;
    }
    for (layer, time) in own {
        layers.entry(Some(layer)).or_default().add(time);
    }
}

/// The whole time, which is that of no layer, and each layer, the largest share first.
pub fn of_times(layers: &BTreeMap<Option<Layer>, Distribution>) -> Vec<Spread> {
    let all = layers.get(&None).map_or(1, |it| it.histogram().sum().max(1));
    let mut spreads: Vec<Spread> =
        layers.iter().map(|(layer, times)| spread(*layer, times.histogram(), all)).collect();
    spreads.sort_by_key(|it| (it.layer.is_some(), std::cmp::Reverse(it.share)));
    spreads
}

fn spread(layer: Option<Layer>, times: &Histogram, all: u128) -> Spread {
    let mut doublings = Vec::new();
    for (nanos, count) in times.bins() {
        let place = (u64::BITS - nanos.saturating_sub(1).leading_zeros()) as usize;
        if place >= doublings.len() {
            doublings.resize(place + 1, 0);
        }
        doublings[place] += count;
    }
    Spread {
        layer,
        count: times.count(),
        mean: times.mean(),
        p50: times.quantile(50, 100),
        p99: times.quantile(99, 100),
        max: times.max(),
        share: (times.sum() * 1000 / all) as u64,
        doublings,
    }
}

/// Bytes that were done in each of so many equal windows from the beginning to `end`.
pub fn bytes_over_time(run: &Recorded, end: Instant, windows: usize) -> (Duration, Vec<u64>) {
    if let Some(outline) = &run.outline {
        return outline.bytes_over_time(end, windows);
    }
    let width = (end.as_nanos() / windows.max(1) as u64 + 1).max(1);
    let mut bytes = vec![0; windows];
    for life in &run.lives {
        let window = (life.completed.as_nanos() / width) as usize;
        if let Some(bytes) = bytes.get_mut(window) {
            *bytes += life.sectors.bytes().0;
        }
    }
    (Duration::from_nanos(width), bytes)
}
