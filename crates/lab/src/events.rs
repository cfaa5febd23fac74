//! Requests and system calls of a run, one by one: it runs again for that, and does the same.

use crate::error::Error;
use crate::plan::{Plan, Row};
use crate::worlds;
use block::Event;
use insight::requests::Requests;
use insight::{Call, Calls, Life};
use machine::{Observer, Several};

/// Hands out requests when they are done.
struct Lives<'a> {
    requests: Requests,
    sink: &'a mut dyn FnMut(&Life),
}

impl Observer for Lives<'_> {
    fn see(&mut self, event: &Event) {
        self.requests.see(event);
        self.requests.done().for_each(|life| (self.sink)(&life));
    }
}

/// Runs a row in the simulator with a seed: `on_life` gets each request, and `on_call` each system
/// call, if there is one.
pub fn of(
    plan: &Plan,
    row: &Row,
    seed: u64,
    on_life: &mut dyn FnMut(&Life),
    on_call: Option<&mut dyn FnMut(&Call)>,
) -> Result<(), Error> {
    let depth = Some(row.facts().queue_depth);
    let mut lives = Lives { requests: Requests::new(depth), sink: on_life };
    let mut calls = on_call.map(|sink| Calls::new(depth, move |call: Call| sink(&call)));
    let mut observers: Vec<&mut dyn Observer> = vec![&mut lives];
    observers.extend(calls.as_mut().map(|it| it as &mut dyn Observer));
    worlds::watch(plan, row, seed, &mut Several(observers))?;
    lives.requests.finish();
    lives.requests.done().for_each(|life| (lives.sink)(&life));
    Ok(())
}
