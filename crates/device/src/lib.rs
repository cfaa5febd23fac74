//! Models of disks: what a drive does with the commands it is given, and how long that takes.
//!
//! A [`Device`] is a pure machine in virtual time. It opens no file but its TOML at load, starts no
//! thread and reads no clock; after load it computes in integers only. A [`Model`] is what a model
//! file says; it builds devices.

mod builtin;
mod distribution;
mod flash;
mod model;
mod null;
mod rotational;
mod single_server;
mod stages;
mod table;
mod token_bucket;
mod virtual_disk;

pub use model::Model;

use base::Instant;
use block::command::{Command, Facts, Stage, Tag};

/// A disk as the block layer meets it: commands go in, completions come out later.
///
/// The caller promises to have at most `facts().queue_depth` commands per hardware queue in
/// flight, each with a different tag, and never to let time go backwards. Whoever drives a device
/// does three things: hands it commands with [`Device::accept`], asks when it next has something
/// to do with [`Device::next_event`], and lets it act with [`Device::advance`] at exactly that
/// time (or later). Equal times complete in a fixed order, so a run is the same every time.
pub trait Device {
    /// What the device tells the kernel about itself.
    fn facts(&self) -> &Facts;

    /// Takes a command at time `now`.
    fn accept(&mut self, now: Instant, command: Command);

    /// The next time at which [`Device::advance`] would do something; `None` when nothing is
    /// going on inside.
    fn next_event(&self) -> Option<Instant>;

    /// Does everything that is due at or before `now`; tags of finished commands are appended to
    /// `completed` in the order in which they finish.
    fn advance(&mut self, now: Instant, completed: &mut Vec<Tag>);

    /// From now on the device keeps what it does for each command, if it knows.
    fn keep_stages(&mut self) {}

    /// What it did for a command that is finished and since when, if it was to keep that; the next
    /// command with that tag has not come yet.
    fn take_stages(&mut self, _tag: Tag) -> Box<[(Instant, Stage)]> {
        Box::default()
    }
}
