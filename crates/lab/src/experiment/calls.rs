//! How many I/O calls the jobs of a run may make.

use crate::error::Error;

/// I/O calls of a run of which nobody limits the time (assumed: half a minute of computing).
pub const MOST_CALLS: u64 = 4_000_000;

/// Commands of a run in the world `linux` of which nobody limits the time (assumed: as long).
pub const MOST_COMMANDS: u64 = 200_000;

/// What `calls` accepts.
const ACCEPTED_CALLS: &str = "a whole number from 1 on, or all";

/// How many calls jobs may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallLimit {
    /// [`MOST_CALLS`] where nobody limits the time, otherwise all.
    #[default]
    Usual,
    /// As many as jobs make.
    All,
    /// So many.
    AtMost(u64),
}

impl CallLimit {
    /// As it is written.
    pub fn parse(text: &str, place: &str) -> Result<CallLimit, Error> {
        match text.parse() {
            _ if text == "all" => Ok(CallLimit::All),
            Ok(calls) if calls > 0 => Ok(CallLimit::AtMost(calls)),
            _ => Err(Error::bad(place, format!("calls \"{text}\""), ACCEPTED_CALLS)),
        }
    }

    /// As it is in results.
    pub fn to_json(self) -> serde_json::Value {
        match self {
            CallLimit::Usual => serde_json::Value::Null,
            CallLimit::All => "all".into(),
            CallLimit::AtMost(calls) => calls.into(),
        }
    }
}
