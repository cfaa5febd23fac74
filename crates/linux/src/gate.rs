//! A program for the guest that waits for an instant and then becomes another program.
//!
//! Jobs begin at exact instants of the guest's clock, whatever was done before: the shell can
//! only sleep for a while from wherever it is. Nothing that hosts have does this, and a program
//! that needs a compiler is no help where there is none, so it is written down as machine code.

/// Where the program is loaded: the customary address of programs.
const ADDRESS: u64 = 0x40_0000;
/// Bytes in the header of an ELF-64 file and in an entry of its program header table.
const HEADER: usize = 64;
const ENTRY: usize = 56;

/// The code, from `_start` to its end; the time stands right behind it.
const CODE: [&[u8]; 22] = [
    // prctl(PR_SET_TIMERSLACK, 1): waking up 50 us late would be early enough otherwise.
    &[0xb8, 157, 0, 0, 0],
    &[0xbf, 29, 0, 0, 0],
    &[0xbe, 1, 0, 0, 0],
    SYSCALL,
    // clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL); `lea rdx, [rip + rest]`
    &[0xb8, 230, 0, 0, 0],
    &[0xbf, 1, 0, 0, 0],
    &[0xbe, 1, 0, 0, 0],
    &[0x48, 0x8d, 0x15, 55, 0, 0, 0],
    &[0x45, 0x31, 0xd2],
    SYSCALL,
    // prctl(PR_SET_TIMERSLACK, 0): back to what it was.
    &[0xb8, 157, 0, 0, 0],
    &[0xbf, 29, 0, 0, 0],
    &[0x31, 0xf6],
    SYSCALL,
    // execve(argv[1], argv + 1, envp); rax = argc, rsi = argv + 1, rdi = argv[1], rdx = envp
    &[0x48, 0x8b, 0x04, 0x24],
    &[0x48, 0x8d, 0x74, 0x24, 0x10],
    &[0x48, 0x8b, 0x3e],
    &[0x48, 0x8d, 0x54, 0xc4, 0x10],
    &[0xb8, 59, 0, 0, 0],
    SYSCALL,
    // exit(127)
    &[0xb8, 60, 0, 0, 0, 0xbf, 127, 0, 0, 0],
    SYSCALL,
];
const SYSCALL: &[u8] = &[0x0f, 0x05];

/// The program without its end: the time, as 64-bit seconds and nanoseconds, which the guest's
/// script appends when it knows it.
pub(crate) fn program() -> Vec<u8> {
    let code = CODE.concat();
    let length = (HEADER + ENTRY + code.len() + 16) as u64;
    let mut file = Vec::new();
    // Magic number, 64 bits, little-endian, version 1; an executable for x86-64, version 1.
    file.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]);
    // Entry, program header table, section header table, flags.
    file.extend((ADDRESS + (HEADER + ENTRY) as u64).to_le_bytes());
    file.extend((HEADER as u64).to_le_bytes());
    file.extend([0; 8 + 4]);
    // Sizes and numbers: header, program header entries, section header entries.
    for half in [HEADER as u16, ENTRY as u16, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // One segment, readable and executable: the whole file.
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [0, ADDRESS, ADDRESS, length, length, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_finds_the_time_behind_itself() {
        // The displacement of `lea` counts from the end of the instruction.
        let lea = CODE.iter().position(|part| part.starts_with(&[0x48, 0x8d, 0x15])).unwrap();
        let rest: usize = CODE[lea + 1..].iter().map(|part| part.len()).sum();
        assert_eq!(usize::from(CODE[lea][3]), rest);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn it_becomes_another_program_when_the_time_has_come() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::env::temp_dir().join(format!("paternoster-gate-{}", std::process::id()));
        let mut bytes = program();
        bytes.extend([0; 16]);
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let gate = std::process::Command::new(&file).args(["/bin/echo", "one", "two"]).output();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(gate.unwrap().stdout, b"one two\n");
    }
}
