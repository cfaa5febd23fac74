//! How long the device has requests, and which ones each mode is of.

use super::{Distribution, Mode};
use crate::life::Life;
use base::Histogram;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// D2C of all requests, by what they do.
#[derive(Clone, Debug, Default)]
pub struct Service {
    all: Distribution,
    kinds: Vec<(&'static str, Histogram)>,
}

impl Service {
    /// Adds a life.
    pub fn see(&mut self, life: &Life) {
        let (kind, time) = (life.kind(), life.service());
        self.all.add(time);
        match self.kinds.iter_mut().find(|it| it.0 == kind) {
            Some((_, times)) => times.record(time),
            None => {
                let mut times = Histogram::new();
                times.record(time);
                self.kinds.push((kind, times));
            }
        }
    }

    /// All of them.
    pub fn all(&self) -> &Distribution {
        &self.all
    }

    /// The modes, the shortest first, and how many requests of each kind lie in them, the most
    /// first. Bins of 1/64 that lie on a border count as a whole.
    pub fn modes(&self) -> Vec<(Mode, Vec<(&'static str, u64)>)> {
        let of = |mode: Mode| {
            let within = |times: &Histogram| {
                let bins = times.bins().filter(|(nanos, _)| {
                    (mode.from.as_nanos()..mode.to.as_nanos()).contains(nanos)
                });
                bins.map(|bin| bin.1).sum()
            };
            let kinds = self.kinds.iter().map(|(kind, times)| (*kind, within(times)));
            let mut kinds: Vec<(&'static str, u64)> = kinds.filter(|it| it.1 > 0).collect();
            kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
            (mode, kinds)
        };
        self.all.modes().into_iter().map(of).collect()
    }
}

/// All of them, and for each mode the kinds of requests.
impl Serialize for Service {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kinds: Vec<std::collections::BTreeMap<&'static str, u64>> =
            self.modes().into_iter().map(|(_, kinds)| kinds.into_iter().collect()).collect();
        let mut out = serializer.serialize_struct("Service", 2)?;
        out.serialize_field("all", &self.all)?;
        out.serialize_field("in_modes", &kinds)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Instant, Sectors};
    use block::Op;

    /// A write that the device has for so long; without sectors a flush.
    fn write(sectors: u32, micros: u64) -> Life {
        Life {
            op: Op::Write,
            sectors: Sectors(sectors),
            issued: Instant::from_nanos(7000),
            completed: Instant::from_nanos(7000 + micros * 1000),
            ..Life::blank()
        }
    }

    #[test]
    fn each_mode_says_which_requests_it_is_of() {
        let mut service = Service::default();
        for (sectors, micros, times) in [(8, 100, 30), (0, 800, 20), (8, 800, 5)] {
            (0..times).for_each(|_| service.see(&write(sectors, micros)));
        }
        let kinds: Vec<_> = service.modes().into_iter().map(|(_, kinds)| kinds).collect();
        assert_eq!(kinds, [vec![("write", 30)], vec![("flush", 20), ("write", 5)]]);
        assert_eq!(service.all().histogram().count(), 55);
    }
}
