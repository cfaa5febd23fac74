//! What a kernel can do that others cannot, as the help text in its program says.
//!
//! A kernel is given a word only if it knows it: others would hand it to the guest's first program.

use std::fs;
use std::path::Path;

use memchr::memmem;

/// How the help on the word begins. It is a text of its own, so a zero is before it.
const SECCOMP: &[u8] = b"\0seccomp=<";

/// Whether it can run its processes under seccomp (7.x). Each process then hands its system calls
/// to the kernel through memory that both see, and is not stopped by ptrace for each of them.
pub(crate) fn seccomp(kernel: &Path) -> bool {
    // What cannot be read offers nothing; to start it says why.
    fs::read(kernel).is_ok_and(|program| memmem::find(&program, SECCOMP).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_that_explains_the_word_is_given_it() {
        let file = std::env::temp_dir().join(format!("paternoster-offers-{}", std::process::id()));
        for (program, expected) in [
            (&b"\x7fELF\0\0seccomp=<on/auto/off>\n"[..], true),
            (b"\x7fELF\0CONFIG_SECCOMP=y\0no seccomp=<\0", false),
            (b"", false),
        ] {
            fs::write(&file, program).unwrap();
            assert_eq!(seccomp(&file), expected);
        }
        fs::remove_file(&file).unwrap();
        assert!(!seccomp(&file));
    }
}
