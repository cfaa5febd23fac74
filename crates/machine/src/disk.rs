//! The disk behind the queue: what is exchanged with it, and where its interrupts go.

use crate::observe::Mark;
use base::Instant;
use block::Tag;
use block::command::Command;
use device::Device;

/// A device and what the driver knows of commands that are with it.
pub(crate) struct Disk {
    device: Box<dyn Device>,
    /// Commands complete where they were issued; with a single hardware queue on the first core.
    has_several_queues: bool,
    /// On which core a command was issued, by tag.
    issued_on: Vec<u16>,
    /// Commands that are done and were not told.
    completed: Vec<Tag>,
}

impl Disk {
    /// An idle disk.
    pub fn new(device: Box<dyn Device>) -> Disk {
        let has_several_queues = device.facts().hardware_queues > 1;
        Disk { device, has_several_queues, issued_on: Vec::new(), completed: Vec::new() }
    }

    /// When something happens in the device next.
    pub fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }

    /// A core has issued a command; the device gets it when its data have been moved.
    pub fn issue(&mut self, now: Instant, core: u16, command: &Command, mark: &mut Mark) {
        let tag = command.tag.0 as usize;
        if tag >= self.issued_on.len() {
            self.issued_on.resize(tag + 1, 0);
        }
        self.issued_on[tag] = core;
        mark.command(now, command);
    }

    /// The device takes a command.
    pub fn accept(&mut self, now: Instant, command: Command) {
        self.device.accept(now, command);
    }

    /// Lets the device do what it has done by now; `interrupt` is told of each command that is
    /// done, and which core is to be interrupted for it: one interrupt for each hardware queue.
    pub fn complete(
        &mut self,
        now: Instant,
        mark: &mut Mark,
        mut interrupt: impl FnMut(usize, Tag),
    ) {
        self.device.advance(now, &mut self.completed);
        for tag in self.completed.drain(..) {
            mark.completion(now, tag.0);
            let core = if self.has_several_queues { self.issued_on[tag.0 as usize] } else { 0 };
            interrupt(usize::from(core), tag);
        }
    }
}
