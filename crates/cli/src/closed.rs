//! Whether the standard output was closed when the program began (`>&-`).
//!
//! Rust puts `/dev/null` in the place of a closed descriptor before `main`, so results would be
//! lost without a word. What stands here looks before that.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: a descriptor that is not open is only asked whether it is; the answer is an error.
    let stdout = unsafe { std::os::fd::BorrowedFd::borrow_raw(1) };
    WAS_CLOSED.store(rustix::io::fcntl_getfd(stdout).is_err(), Ordering::Relaxed);
}

// SAFETY: the section holds functions of this type, which are called once before `main`. This one
// makes a system call and needs nothing of the standard library that `main` would set up.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether nobody can read what is printed.
pub fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
