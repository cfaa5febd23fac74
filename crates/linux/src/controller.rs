//! The loop that a guest lives in: one thread, two kinds of socket, no clock but the guest's.
//!
//! Either the guest runs, and we answer what it says, or it waits, and we decide what happens
//! next: a disk finishes something, or the guest runs again at the time it asked for. Ties go to
//! the disk, as an interrupt is there before the timer that is due at the same instant.
//!
//! Sections cited are those of the project's findings on Linux in virtual time.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration as WallTime, Instant as WallInstant};

use base::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::{Clock, Protocol};
use crate::drive::{Done, Drive};
use crate::error::RunError;
use crate::farewell::Farewell;
use crate::launch::Process;
use crate::log::DeviceLog;
use crate::ring::Chain;
use crate::vhost::{Port, Served};
use crate::watch::Watchdog;

/// A disk and its connection, once the guest's driver has made one.
pub(crate) struct Attached {
    pub drive: Drive,
    pub listener: UnixListener,
    port: Option<Port>,
}

impl Attached {
    /// A disk that the guest will find at `listener`.
    pub fn new(drive: Drive, listener: UnixListener) -> Attached {
        Attached { drive, listener, port: None }
    }

    /// When the guest has to hear of it again. A driver that has let go hears nothing more.
    fn next_event(&self) -> Option<Instant> {
        self.port.as_ref().and_then(|_| self.drive.next_event())
    }
}

/// What drives a guest from its start to its end.
pub(crate) struct Controller {
    process: Process,
    listener: UnixListener,
    clock: Option<Clock>,
    disks: Vec<Attached>,
    protocol: Protocol,
    watchdog: Watchdog,
    farewell: Farewell,
    /// The real time at which the guest's time was zero, if the guest may not be ahead of it.
    paced_from: Option<WallInstant>,
    log: DeviceLog,
    chain: Chain,
    done: Vec<Done>,
}

/// What is left when a guest has ended.
pub(crate) struct Ended {
    pub at: Instant,
    pub disks: Vec<Drive>,
    pub log: DeviceLog,
}

/// Who can have something to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    NewClock,
    Clock,
    NewDisk(usize),
    Disk(usize),
    Call(usize),
    Process,
}

impl Controller {
    /// Drives `process`, whose clock will connect to `listener`.
    pub fn new(
        process: Process,
        listener: UnixListener,
        disks: Vec<Attached>,
        protocol: Protocol,
        watchdog: Watchdog,
        farewell: Farewell,
    ) -> Controller {
        Controller {
            process,
            listener,
            clock: None,
            disks,
            protocol,
            watchdog,
            farewell,
            paced_from: None,
            log: DeviceLog::default(),
            chain: Chain::default(),
            done: Vec::new(),
        }
    }

    /// Holds the guest back to real time, for somebody who types. The one use of a real clock.
    pub fn paced(mut self) -> Controller {
        self.paced_from = Some(WallInstant::now());
        self
    }

    /// Runs the guest to its end.
    pub fn run(mut self) -> Result<Ended, RunError> {
        let ended = self.drive_guest();
        let at = self.clock.as_ref().map_or(Instant::ZERO, Clock::now);
        match ended {
            Ok(()) | Err(RunError::HungUp) => {}
            // A socket's patience is the watchdog's.
            Err(RunError::Link { cause, .. }) if cause.kind() == io::ErrorKind::WouldBlock => {
                return Err(self.watchdog.silent(Some(at)));
            }
            Err(error) => return Err(error),
        }
        self.process.finish(&self.watchdog)?;
        let disks = self.disks.into_iter().map(|disk| disk.drive).collect();
        Ok(Ended { at, disks, log: self.log })
    }

    /// Ends well when the guest has hung up.
    fn drive_guest(&mut self) -> Result<(), RunError> {
        loop {
            match self.clock.as_ref().is_some_and(Clock::waiting) {
                true => self.choose_next()?,
                false => match self.hear(None)? {
                    Source::Process => return Ok(()),
                    source => self.serve(source)?,
                },
            }
        }
    }

    /// The guest waits: what happens next is the earlier of a disk's event and its own.
    fn choose_next(&mut self) -> Result<(), RunError> {
        let clock = self.clock.as_ref().expect("a guest that waits has a clock");
        let (now, request) = (clock.now(), clock.request());
        let event = self.disks.iter().filter_map(Attached::next_event).min();
        let next = event.into_iter().chain(request).min();
        if self.held_back(next)? {
            return Ok(());
        }
        let Some(at) = next else { return Err(RunError::Deadlock { at: now }) };
        if self.farewell.overdue(at) {
            self.process.end();
            return Err(RunError::HungUp);
        }
        self.watchdog.check(at)?;
        // A request for a time that has passed is granted now.
        let at = at.max(now);
        let clock = self.clock.as_mut().expect("it was there before");
        if event.is_none_or(|event| event > at) {
            return clock.run_guest(at, event);
        }
        clock.set_now(at);
        for disk in 0..self.disks.len() {
            self.complete(disk, at)?;
        }
        Ok(())
    }

    /// Whether `next` is in the future of a guest that keeps to real time. Then a moment has
    /// passed, and keys that were pressed in it may have changed what comes next: the guest says
    /// so in the shared memory only.
    fn held_back(&mut self, next: Option<Instant>) -> Result<bool, RunError> {
        const MOMENT: WallTime = WallTime::from_millis(10);
        let Some(start) = self.paced_from else { return Ok(false) };
        let early = next.map_or(MOMENT, |next| {
            WallTime::from_nanos(next.as_nanos()).saturating_sub(start.elapsed())
        });
        if early.is_zero() {
            return Ok(false);
        }
        match self.poll(None, early.min(MOMENT))? {
            None => Ok(true),
            Some(Source::Process) => Err(RunError::HungUp),
            Some(source) => self.serve(source).map(|()| true),
        }
    }

    /// Lets a disk do what is due and interrupts the guest if anything is done.
    fn complete(&mut self, disk: usize, now: Instant) -> Result<(), RunError> {
        if self.disks[disk].next_event().is_none_or(|at| at > now) {
            return Ok(());
        }
        let Attached { drive, port, .. } = &mut self.disks[disk];
        let port = port.as_mut().expect("its driver hears of events");
        let memory = port.memory.as_ref().expect("requests lie in memory");
        self.done.clear();
        drive.advance(now, memory, &mut self.log, &mut self.done)?;
        for done in &self.done {
            port.ring.put(memory, done.head, done.written)?;
        }
        if self.done.is_empty() || !port.ring.wants_call(memory)? {
            return Ok(());
        }
        port.call()?;
        // Only when the guest has answered is the interrupt in its queue (section 3). It asks for
        // nothing before, unless that is how it tells the time.
        while self.clock.as_ref().is_none_or(|clock| !clock.shared()) {
            match self.hear(Some(disk))? {
                Source::Call(_) => break,
                Source::Process => return Err(RunError::HungUp),
                source => self.serve(source)?,
            }
        }
        let port = self.disks[disk].port.as_mut().expect("it was there before");
        match port.finish_call()? {
            true => Ok(()),
            false => Err(RunError::HungUp),
        }
    }

    fn serve(&mut self, source: Source) -> Result<(), RunError> {
        match source {
            Source::NewClock => {
                let link = self.accept(&self.listener)?;
                let clock = Clock::new(link, self.protocol)
                    .map_err(|cause| RunError::file("making", "shared memory", cause))?;
                self.clock = Some(clock);
                Ok(())
            }
            Source::Clock => {
                let clock = self.clock.as_mut().expect("it was polled");
                match clock.serve()? {
                    true => Ok(()),
                    false => Err(RunError::HungUp),
                }
            }
            Source::NewDisk(disk) => self.attach(disk),
            Source::Disk(disk) => self.serve_disk(disk),
            Source::Call(_) | Source::Process => unreachable!("the callers look after these"),
        }
    }

    fn attach(&mut self, disk: usize) -> Result<(), RunError> {
        // Without a clock of ours the guest would run in real time, and go on for ever.
        if !self.clock.as_ref().is_some_and(Clock::started) {
            return Err(RunError::NoClock);
        }
        let link = self.accept(&self.disks[disk].listener)?;
        let Attached { drive, port, .. } = &mut self.disks[disk];
        let patience = self.watchdog.silence;
        *port = Some(Port::new(link, patience, drive.features(), drive.configuration()));
        Ok(())
    }

    fn serve_disk(&mut self, disk: usize) -> Result<(), RunError> {
        let port = self.disks[disk].port.as_mut().expect("it was polled");
        match port.serve()? {
            Served::Answered => Ok(()),
            // The driver lets go of the disk when the guest powers off.
            Served::HungUp => {
                self.disks[disk].port = None;
                Ok(())
            }
            Served::Kicked => self.kicked(disk),
        }
    }

    /// Takes all new requests of a disk now; the guest goes on when it knows what to expect.
    fn kicked(&mut self, disk: usize) -> Result<(), RunError> {
        let Attached { drive, port, .. } = &mut self.disks[disk];
        let port = port.as_mut().expect("it was served");
        let clock = self.clock.as_mut().expect("a disk is attached after the clock");
        let Some(memory) = port.memory.as_ref() else {
            return Err(RunError::protocol("a kick without memory".to_string()));
        };
        let now = clock.now();
        while port.ring.take(memory, &mut self.chain)? {
            drive.accept(now, &self.chain, memory, &mut self.log)?;
        }
        clock.expect(drive.next_event())?;
        port.answer_kick()
    }

    fn accept(&self, listener: &UnixListener) -> Result<UnixStream, RunError> {
        let accept = || -> io::Result<UnixStream> {
            let (link, _) = listener.accept()?;
            link.set_read_timeout(Some(self.watchdog.silence))?;
            link.set_write_timeout(Some(self.watchdog.silence))?;
            Ok(link)
        };
        accept().map_err(|cause| RunError::file("accepting", "a connection of the guest", cause))
    }

    /// Waits until somebody has something to say; `called` is a disk whose call is unanswered.
    fn hear(&self, called: Option<usize>) -> Result<Source, RunError> {
        let heard = self.poll(called, self.watchdog.silence)?;
        heard.ok_or_else(|| self.watchdog.silent(self.clock.as_ref().map(Clock::now)))
    }

    /// Waits for `patience` at most.
    fn poll(&self, called: Option<usize>, patience: WallTime) -> Result<Option<Source>, RunError> {
        let mut sources = Vec::with_capacity(4);
        let mut polled = Vec::with_capacity(4);
        let mut add = |source, fd| {
            sources.push(source);
            polled.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        };
        match &self.clock {
            Some(clock) => add(Source::Clock, clock.link().as_fd()),
            None => add(Source::NewClock, self.listener.as_fd()),
        }
        if let Some(disk) = called {
            let port = self.disks[disk].port.as_ref().expect("it was called");
            add(Source::Call(disk), port.call_link()?.as_fd());
        }
        for (disk, Attached { port, listener, .. }) in self.disks.iter().enumerate() {
            match port {
                Some(port) => add(Source::Disk(disk), port.link().as_fd()),
                None => add(Source::NewDisk(disk), listener.as_fd()),
            }
        }
        add(Source::Process, self.process.pidfd());
        let timeout = Timespec::try_from(patience).ok();
        loop {
            match poll(&mut polled, timeout.as_ref()) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(cause) => {
                    return Err(RunError::file("polling", "the sockets", cause.into()));
                }
            }
        }
        let ready = polled.iter().position(|polled| !polled.revents().is_empty());
        Ok(ready.map(|ready| sources[ready]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use base::Bytes;
    use device::Model;

    use crate::launch::Terminal;
    use crate::store::Contents;

    #[test]
    fn a_kernel_that_finds_its_disk_before_its_clock_has_no_time_travel() {
        let directory =
            std::env::temp_dir().join(format!("paternoster-loop-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let listen = |name: &str| UnixListener::bind(directory.join(name)).unwrap();
        let device = Model::builtin("null").unwrap().build(0);
        let drive = Drive::new(0, "disk".into(), device, Contents::forgetful());
        let disks = vec![Attached::new(drive, listen("disk0"))];
        let (sleep, arguments) = (Path::new("/bin/sleep"), ["60".to_string()]);
        let process =
            Process::start(sleep, &arguments, Bytes(1 << 20), &directory, &Terminal::Kept).unwrap();
        let _link = UnixStream::connect(directory.join("disk0")).unwrap();
        let (clock, watchdog) = (listen("clock"), Watchdog::default());
        let farewell = Farewell::in_directory(&directory);
        let controller =
            Controller::new(process, clock, disks, Protocol::Messages, watchdog, farewell);
        let ended = controller.run();
        assert!(matches!(ended, Err(RunError::NoClock)));
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
