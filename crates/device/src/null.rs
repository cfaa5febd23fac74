//! A disk that takes a fixed time, or none, for everything: for tests, and to see what the layers
//! above cost.
//!
//! Leaves out everything: no data rate, no limit on what is served at once.

use std::collections::VecDeque;

use base::{Duration, Instant};
use block::command::{Command, Facts, Tag};

use crate::Device;
use params::{Accept, Section, Table, spec};

pub(crate) const SCHEMA: Section =
    Section { name: "service", required: true, specs: &[spec("time", Accept::Time(0.0, 10e9))] };

/// What a null disk needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    service: Duration,
}

impl Parameters {
    pub fn load(table: &Table) -> Self {
        Parameters { service: table.time("service.time") }
    }
}

/// A disk with one service time for all commands.
pub(crate) struct Null {
    facts: Facts,
    service: Duration,
    // All take equally long, so they finish in the order in which they came.
    in_flight: VecDeque<(Instant, Tag)>,
}

impl Null {
    pub fn new(facts: Facts, parameters: &Parameters) -> Self {
        Null { facts, service: parameters.service, in_flight: VecDeque::new() }
    }
}

impl Device for Null {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn accept(&mut self, now: Instant, command: Command) {
        self.in_flight.push_back((now + self.service, command.tag));
    }

    fn next_event(&self) -> Option<Instant> {
        self.in_flight.front().map(|(at, _)| *at)
    }

    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>) {
        while let Some((at, tag)) = self.in_flight.front() {
            if *at > now {
                break;
            }
            completed.push(*tag);
            self.in_flight.pop_front();
        }
    }
}
