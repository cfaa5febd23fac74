//! The disk behind the queue: what is exchanged with it, and where its interrupts go.

use crate::cpus::Cause;
use crate::observe::Mark;
use base::Instant;
use block::Tag;
use block::command::{Command, Stage, Transport};
use device::Device;

/// A device and what the driver knows of commands that are with it.
pub(crate) struct Disk {
    device: Box<dyn Device>,
    /// What the kernel calls it, such as `sda`.
    name: String,
    /// Commands complete where they were issued; with a single hardware queue on the first core.
    has_several_queues: bool,
    /// On which core a command was issued, and when, by tag.
    issued: Vec<(u16, Instant)>,
    /// Commands that are done and were not told.
    completed: Vec<Tag>,
}

/// What the kernel calls the first disk of a transport.
pub const fn disk_name(transport: Transport) -> &'static str {
    match transport {
        Transport::Sata | Transport::Scsi => "sda",
        Transport::Nvme => "nvme0n1",
        Transport::Virtio => "vda",
        Transport::Loop => "loop0",
    }
}

impl Disk {
    /// An idle disk. Without a name it is called as the first one of its transport is.
    pub fn new(device: Box<dyn Device>, name: &str) -> Disk {
        let facts = device.facts();
        let has_several_queues = facts.hardware_queues > 1;
        let name = if name.is_empty() { disk_name(facts.transport) } else { name }.to_string();
        Disk { device, name, has_several_queues, issued: Vec::new(), completed: Vec::new() }
    }

    /// What the kernel calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on what the device does for each command is kept.
    pub fn keep_stages(&mut self) {
        self.device.keep_stages();
    }

    /// What it did for a command that is finished, if that is kept and known.
    pub fn take_stages(&mut self, tag: Tag) -> Box<[(Instant, Stage)]> {
        self.device.take_stages(tag)
    }

    /// When something happens in the device next.
    pub fn next_event(&self) -> Option<Instant> {
        self.device.next_event()
    }

    /// When something happens in the device next that may concern others. What goes on inside it
    /// before `limit` and ends no command is done.
    pub fn next_event_beyond(&mut self, limit: Instant) -> Option<Instant> {
        loop {
            let at = self.device.next_event()?;
            if at >= limit || self.advance(at) {
                return Some(at);
            }
        }
    }

    /// A core has issued a command; the device gets it when its data have been moved.
    pub fn issue(&mut self, now: Instant, core: u16, command: &Command, mark: &mut Mark) {
        let tag = command.tag.0 as usize;
        if tag >= self.issued.len() {
            self.issued.resize(tag + 1, (0, now));
        }
        self.issued[tag] = (core, now);
        mark.command(now, command);
    }

    /// The device takes a command.
    pub fn accept(&mut self, now: Instant, command: Command) {
        self.device.accept(now, command);
    }

    /// Lets the device do what it has done by now; whether a command is done that was not told.
    pub fn advance(&mut self, now: Instant) -> bool {
        self.device.advance(now, &mut self.completed);
        !self.completed.is_empty()
    }

    /// Lets the device do what it has done by now; `interrupt` is told of each command that is
    /// done, whether it took no time, and which core is to be interrupted for it: one interrupt
    /// for each hardware queue.
    pub fn complete(
        &mut self,
        now: Instant,
        mark: &mut Mark,
        mut interrupt: impl FnMut(usize, Cause),
    ) {
        self.advance(now);
        for tag in self.completed.drain(..) {
            mark.completion(now, tag.0);
            let (issuer, issued) = self.issued[tag.0 as usize];
            let core = if self.has_several_queues { issuer } else { 0 };
            interrupt(usize::from(core), Cause::Completion { tag, at_once: issued == now });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::Model;

    #[test]
    fn a_disk_is_called_as_its_transport_has_it_unless_the_guest_knows_better() {
        let name = |model, name| {
            let device = Model::builtin(model).unwrap().build(1);
            Disk::new(device, name).name().to_string()
        };
        assert_eq!(name("hdd-7200-sata", ""), "sda");
        assert_eq!(name("nvme-plp", ""), "nvme0n1");
        assert_eq!(name("hdd-7200-sata", "vda"), "vda");
    }
}
