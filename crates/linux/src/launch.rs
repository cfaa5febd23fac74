//! Starts the kernel so that nothing of the host gets into it by chance, and ends it for sure.
//!
//! The kernel takes randomness from the host's `getrandom` and from the layout of its memory, and
//! hashes its command line. So the layout is fixed, `getrandom` fails, the environment is empty,
//! and every file is named relative to the directory it runs in. One variable is needed: glibc's
//! registration for restartable sequences kills the processes that stand for the guest's.
//!
//! A fence keeps it from the caller's files ([`crate::fence`]).
//!
//! Sections cited are those of the project's findings on Linux in virtual time.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::directory::Directory;
use crate::error::RunError;
use crate::fence::Fence;
use crate::watch::Watchdog;

/// What the guest's screen is written to, in the directory of the run.
pub(crate) const CONSOLE: &str = "console";

/// What leads to the root directory there.
pub(crate) const ROOT: &str = "rootfs";

/// Where the guest's memory is, or what leads there.
const MEMORY: &str = "memory";

/// What a kernel believes to be its own name. It looks for it when the guest reboots, and must
/// not find anything: a program of that name might not be of this world.
const NOBODY: &str = "/nonexistent/linux";

/// Where a started kernel's input comes from and its output goes.
pub(crate) enum Terminal {
    /// Nothing comes in; the output is kept in a file of the run's directory.
    Kept,
    /// The caller's own, for a shell. Whoever types makes the run unrepeatable.
    Callers,
}

/// A running kernel. It is killed when this value is dropped.
pub(crate) struct Process {
    child: Child,
    pidfd: OwnedFd,
    reaped: bool,
    /// Where its memory lies, if that is not in the directory of the run.
    _memory: Option<Directory>,
}

impl Process {
    /// Starts `kernel` in `directory`, with this much memory.
    pub fn start(
        kernel: &Path,
        arguments: &[String],
        memory: Bytes,
        directory: &Path,
        terminal: &Terminal,
    ) -> Result<Process, RunError> {
        let mut command = Command::new(kernel);
        command.args(arguments).current_dir(directory).arg0(NOBODY);
        command.env_clear();
        // Trap 1 of section 2.
        command.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
        // The kernel keeps a directory of its own in the home directory.
        command.env("HOME", "/proc/self/cwd");
        // The guest's memory is a file there, and always under the same name.
        command.env("TMPDIR", format!("/proc/self/cwd/{MEMORY}"));
        let memory = make_memory(memory, directory)?;
        match terminal {
            Terminal::Kept => {
                let console = directory.join(CONSOLE);
                let (output, errors) = File::create(&console)
                    .and_then(|output| Ok((output.try_clone()?, output)))
                    .map_err(|cause| RunError::file("creating", console, cause))?;
                command.stdin(Stdio::null()).stdout(output).stderr(errors);
                command.process_group(0);
            }
            // In the caller's process group, which owns the terminal.
            Terminal::Callers => {}
        }
        let held = memory.as_ref().map_or(directory, Directory::path);
        let fence = Fence::around(kernel, &directory.join(ROOT), &[directory, held])
            .map_err(|cause| RunError::file("fencing in", kernel, io::Error::other(cause)))?;
        let descriptor = fence.descriptor().map(AsRawFd::as_raw_fd);
        // SAFETY: the closure runs in the child between fork and exec and only makes system
        // calls; it does not allocate, lock or panic. The fence is open until it has run.
        unsafe { command.pre_exec(move || without_chance(descriptor)) };
        let failed = |cause| RunError::Start { kernel: kernel.to_path_buf(), cause };
        let mut child = command.spawn().map_err(failed)?;
        match pidfd_open(pid(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Process { child, pidfd, reaped: false, _memory: memory }),
            Err(cause) => {
                // Both fail harmlessly when it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                Err(failed(cause.into()))
            }
        }
    }

    /// Becomes readable when the kernel has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Waits until a kernel that has hung up is gone.
    pub fn finish(&mut self, watchdog: &Watchdog) -> Result<(), RunError> {
        if self.reaped {
            return Ok(());
        }
        let timeout = Timespec::try_from(watchdog.silence).ok();
        let mut polled = [PollFd::new(&self.pidfd, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Err(watchdog.silent(None)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(cause) => return Err(RunError::file("polling", "the kernel", cause.into())),
        }
        self.end();
        Ok(())
    }

    /// Kills what is left: the kernel, its helpers and the guest's processes are in one group.
    pub fn end(&mut self) {
        if self.reaped {
            return;
        }
        // The number is ours until the child is waited for. All of these fail harmlessly when
        // there is nobody left.
        let _ = kill_process_group(pid(&self.child), Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.reaped = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes where the guest's memory is kept: in the host's, if there is room and programs may be run
/// from there, else in the directory of the run, which makes no difference to the guest.
fn make_memory(memory: Bytes, directory: &Path) -> Result<Option<Directory>, RunError> {
    const SHARED: &str = "/dev/shm";
    let place = directory.join(MEMORY);
    let fits = statvfs(SHARED).is_ok_and(|about| {
        let room = about.f_bavail.saturating_mul(about.f_frsize);
        room >= memory.0 && !about.f_flag.contains(StatVfsMountFlags::NOEXEC)
    });
    let made = fits.then(|| Directory::make_in(Path::new(SHARED)).ok()).flatten();
    let placed = match &made {
        Some(shared) => symlink(shared.path(), &place),
        None => std::fs::create_dir(&place),
    };
    placed.map_err(|cause| RunError::file("creating", place, cause))?;
    Ok(made)
}

/// Has a program that is started end when the thread ends that starts it, however that ends.
pub(crate) fn ends_with_us(command: &mut Command) {
    // SAFETY: the closure runs in the child between fork and exec and only makes a system call.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
}

fn pid(child: &Child) -> Pid {
    let id = i32::try_from(child.id()).expect("a process id is positive");
    Pid::from_raw(id).expect("a process id is not zero")
}

/// Makes the calling process one without randomness, for itself and what it executes, and puts up
/// its fence.
fn without_chance(fence: Option<RawFd>) -> io::Result<()> {
    // `getrandom` does not exist (section 2), and a handler for SIGCHLD is not set, though it seems
    // to be: under seccomp the kernel wants to hear that one of its processes has ended, and when a
    // signal comes is the host's choice.
    let [load, equal, answer] = [
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    ];
    let first_argument = std::mem::offset_of!(libc::seccomp_data, args) as u32;
    let filter = [
        instruction(load, 0, 0, 0),
        instruction(equal, 4, 0, libc::SYS_getrandom as u32),
        instruction(equal, 0, 2, libc::SYS_rt_sigaction as u32),
        instruction(load, 0, 0, first_argument),
        instruction(equal, 2, 0, libc::SIGCHLD as u32),
        instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
        instruction(answer, 0, 0, NO_SUCH_CALL),
        instruction(answer, 0, 0, DONE),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: plain system calls; the filter outlives the one that reads it.
    let failed = unsafe {
        libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) < 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
            || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || fence.is_some_and(|it| libc::syscall(libc::SYS_landlock_restrict_self, it, 0) != 0)
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

const DONE: u32 = libc::SECCOMP_RET_ERRNO;
const NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

fn instruction(code: u32, if_true: u8, if_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k: value }
}
