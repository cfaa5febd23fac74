//! A guest's copy of fio does not look at the clock a quarter of a million times before it begins.
//!
//! When fio starts, it measures the processor's counter against the clock: it reads the clock in a
//! loop until 1.28 ms have passed, and does so 51 times (fio 3.33). In a guest each look takes
//! 256 ns of its time, and many times that of the host's, as the system call goes through another
//! process. So in the copy, fio's calls of `clock_gettime` lead to a function of ours. It watches
//! the first of these loops, and in those that follow has the guest's kernel look at the clock
//! instead of fio, many times in one system call: `recvmmsg` with a limit of time does so after
//! each message, and it is given the same message again and again. So time passes as before, in
//! the same steps and with the same interruptions, and every time that fio sees is the clock's.
//! After the last loop the function stands aside for good.
//!
//! One thing differs: a loop during which another process had its turn ends a look later, as the
//! clock is looked at once more after the system call.
//!
//! The copy is changed in a way that costs no time in the guest: the file keeps its length, the
//! function goes where the code's last page has room, and its memory is behind the program's own.
//! A program that is built in another way stays as it is.

use std::fs;
use std::io;
use std::path::Path;

/// The function that is looked for.
const NAME: &[u8] = b"clock_gettime\0";

/// Bytes that the function keeps its state in; they begin as zeros.
const STATE: u64 = 80;

/// The function, if this program is made for the processor that guests are for. It begins with a
/// resolver, which the dynamic linker calls for the function's address, and its last eight bytes
/// are the distance from themselves to the state.
#[cfg(target_arch = "x86_64")]
fn code() -> Option<Vec<u8>> {
    unsafe extern "C" {
        static paternoster_calibration: u8;
        static paternoster_calibration_end: u8;
    }
    let (begin, end) = (&raw const paternoster_calibration, &raw const paternoster_calibration_end);
    // SAFETY: the two symbols are the ends of one piece of constant data, below.
    Some(unsafe { std::slice::from_raw_parts(begin, end.offset_from(begin) as usize) }.to_vec())
}

#[cfg(not(target_arch = "x86_64"))]
fn code() -> Option<Vec<u8>> {
    None
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .rodata",
    ".globl paternoster_calibration, paternoster_calibration_end",
    // Places in the state: whether all is over, calls so far; who called last, with which pointer,
    // how often in succession, when, and when somebody else had called before; who that was;
    // how long a loop takes, once one has been seen; and a socket.
    ".set OVER, 0; .set CALLS, 4; .set SITE, 8; .set POINTER, 16; .set RUN, 24; .set LAST, 32",
    ".set BEGIN, 40; .set FROM, 48; .set FROM_POINTER, 56; .set LENGTH, 64; .set SOCKET, 72",
    // A loop has so many looks at least, and begins within the first so many calls.
    ".set LOOP, 1000; .set FIRST_CALLS, 16384",
    // Looks that the kernel is asked for at once.
    ".set MESSAGES, 256",
    "paternoster_calibration:",
    "lea rax, [rip + 2f]",
    "ret",
    // int clock_gettime(clockid_t edi, struct timespec *rsi)
    "2:",
    "mov eax, 228",
    "syscall",
    "lea r8, [rip + 99f]",
    "add r8, [r8]",
    "cmp dword ptr [r8 + OVER], 0",
    "jne 9f",
    "test eax, eax",
    "jnz 9f",
    "imul rdx, [rsi], 1000000000",
    "add rdx, [rsi + 8]",
    "mov r9, [rsp]",
    "cmp qword ptr [r8 + LENGTH], 0",
    "jne 5f",
    // No loop has been seen yet.
    "inc dword ptr [r8 + CALLS]",
    "cmp dword ptr [r8 + CALLS], FIRST_CALLS",
    "ja 8f",
    "cmp r9, [r8 + SITE]",
    "jne 3f",
    "cmp rsi, [r8 + POINTER]",
    "jne 3f",
    "inc dword ptr [r8 + RUN]",
    "mov [r8 + LAST], rdx",
    "ret",
    // Somebody else calls than before.
    "3:",
    "cmp dword ptr [r8 + RUN], LOOP",
    "jae 4f",
    "mov rcx, [r8 + SITE]",
    "mov [r8 + FROM], rcx",
    "mov rcx, [r8 + POINTER]",
    "mov [r8 + FROM_POINTER], rcx",
    "mov rcx, [r8 + LAST]",
    "mov [r8 + BEGIN], rcx",
    "mov [r8 + SITE], r9",
    "mov [r8 + POINTER], rsi",
    "mov [r8 + LAST], rdx",
    "mov dword ptr [r8 + RUN], 0",
    "ret",
    // A loop is over, which was the first.
    "4:",
    "mov rcx, [r8 + LAST]",
    "sub rcx, [r8 + BEGIN]",
    "mov [r8 + LENGTH], rcx",
    // What a loop is like is known: this is a look in one, or the one before it, or all is over.
    "5:",
    "cmp r9, [r8 + SITE]",
    "jne 6f",
    "cmp rsi, [r8 + POINTER]",
    "je 7f",
    "6:",
    "cmp r9, [r8 + FROM]",
    "jne 8f",
    "cmp rsi, [r8 + FROM_POINTER]",
    "jne 8f",
    "mov [r8 + BEGIN], rdx",
    "ret",
    // All is over: close(socket)
    "8:",
    "mov dword ptr [r8 + OVER], 1",
    "cmp dword ptr [r8 + SOCKET], 0",
    "je 9f",
    "push rdi",
    "push rsi",
    "mov edi, [r8 + SOCKET]",
    "mov eax, 3",
    "syscall",
    "pop rsi",
    "pop rdi",
    "xor eax, eax",
    "9:",
    "ret",
    // In a loop: what is left of it but for the last few looks.
    "7:",
    "cmp dword ptr [r8 + SOCKET], 0",
    "je 30f",
    "mov r10, [r8 + BEGIN]",
    "add r10, [r8 + LENGTH]",
    "sub r10, rdx",
    "sub r10, 4 * 256",
    "jle 9b",
    // recvmmsg(socket, messages, MESSAGES, MSG_PEEK | MSG_DONTWAIT, what is left): the kernel finds
    // the same message again and again, and looks at the clock after each time. A message has 64
    // bytes, zeros; no more stack is used than the dynamic linker has before.
    "push rdi",
    "push rsi",
    "sub rsp, 64 * MESSAGES + 16",
    "mov rdi, rsp",
    "mov ecx, 8 * MESSAGES",
    "xor eax, eax",
    "rep stosq",
    "mov [rdi], rax",
    "mov [rdi + 8], r10",
    "mov edi, [r8 + SOCKET]",
    "mov rsi, rsp",
    "lea r8, [rsp + 64 * MESSAGES]",
    "mov edx, MESSAGES",
    "mov r10d, 0x42",
    "mov eax, 299",
    "syscall",
    // clock_gettime as it was asked for
    "add rsp, 64 * MESSAGES + 16",
    "pop rsi",
    "pop rdi",
    "mov eax, 228",
    "syscall",
    "ret",
    // A socket with a message to itself: socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK) ...
    "30:",
    "push rdi",
    "push rsi",
    "push r8",
    "sub rsp, 16",
    "mov eax, 41",
    "mov edi, 16",
    "mov esi, 3",
    "mov edx, 2",
    "syscall",
    "test eax, eax",
    "js 33f",
    "mov [r8 + SOCKET], eax",
    "mov edi, eax",
    // ... bind(socket, { AF_NETLINK, getpid() }, 12) ...
    "mov eax, 39",
    "syscall",
    "mov qword ptr [rsp], 16",
    "mov [rsp + 4], eax",
    "mov dword ptr [rsp + 8], 0",
    "mov rsi, rsp",
    "mov edx, 12",
    "mov eax, 49",
    "syscall",
    "test eax, eax",
    "jnz 32f",
    // ... sendto(socket, one byte, 1, 0, the same address, 12)
    "mov edx, 1",
    "xor r10d, r10d",
    "mov r8, rsp",
    "mov r9d, 12",
    "mov eax, 44",
    "syscall",
    "mov r8, [rsp + 16]",
    "cmp eax, 1",
    "je 34f",
    "32:",
    "mov eax, 3",
    "syscall",
    "33:",
    "mov dword ptr [r8 + OVER], 1",
    "34:",
    "add rsp, 16",
    "pop r8",
    "pop rsi",
    "pop rdi",
    "xor eax, eax",
    "ret",
    "99:",
    ".quad 0",
    "paternoster_calibration_end:",
    ".popsection",
);

/// Changes a copy of fio, if it is built in a way that is understood.
pub(crate) fn shorten(program: &Path) -> io::Result<()> {
    let mut bytes = fs::read(program)?;
    match code().and_then(|code| change(&mut bytes, code)) {
        Some(()) => fs::write(program, bytes),
        None => Ok(()),
    }
}

/// Where things are in an ELF-64 file and in its tables; what they are called there.
mod elf {
    pub const X86_64: u16 = 62;
    pub const MACHINE: usize = 18;
    pub const TABLE: usize = 32;
    pub const ENTRIES: usize = 56;
    /// Bytes in an entry of the program header table, and what is where in it.
    pub const ENTRY: usize = 56;
    pub const FLAGS: usize = 4;
    pub const OFFSET: usize = 8;
    pub const ADDRESS: usize = 16;
    pub const FILE_SIZE: usize = 32;
    pub const MEMORY_SIZE: usize = 40;
    pub const LOAD: u32 = 1;
    pub const DYNAMIC: u32 = 2;
    pub const EXECUTABLE: u32 = 1;
    pub const WRITABLE: u32 = 2;
    /// Entries of the dynamic section.
    pub const PLT_SIZE: u64 = 2;
    pub const STRINGS: u64 = 5;
    pub const SYMBOLS: u64 = 6;
    pub const RELOCATIONS: u64 = 7;
    pub const RELOCATIONS_SIZE: u64 = 8;
    pub const PLT: u64 = 23;
    /// Bytes in a symbol and in a relocation.
    pub const SYMBOL: u64 = 24;
    pub const RELOCATION: u64 = 24;
    /// Relocations by a function's address, and by the answer of a resolver.
    pub const BY_NAME: [u64; 2] = [6, 7];
    pub const BY_RESOLVER: u64 = 37;
    /// Bytes in a page.
    pub const PAGE: u64 = 4096;
}

/// A part of the file that is mapped.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Where its entry in the table is.
    entry: usize,
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

fn word<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    bytes.get(usize::try_from(at).ok()?..)?.first_chunk().copied()
}

fn long(bytes: &[u8], at: u64) -> Option<u64> {
    word(bytes, at).map(u64::from_le_bytes)
}

fn put(bytes: &mut [u8], at: u64, value: &[u8]) -> Option<()> {
    let at = usize::try_from(at).ok()?;
    bytes.get_mut(at..at.checked_add(value.len())?)?.copy_from_slice(value);
    Some(())
}

fn segments(bytes: &[u8]) -> Option<Vec<Segment>> {
    let half = |at: usize| word(bytes, at as u64).map(u16::from_le_bytes);
    if !bytes.starts_with(b"\x7fELF\x02\x01") || half(elf::MACHINE)? != elf::X86_64 {
        return None;
    }
    let table = usize::try_from(long(bytes, elf::TABLE as u64)?).ok()?;
    let entries = (0..usize::from(half(elf::ENTRIES)?)).map(|number| {
        let entry = table.checked_add(number * elf::ENTRY)?;
        let field = |at: usize| long(bytes, (entry + at) as u64);
        Some(Segment {
            entry,
            kind: word(bytes, entry as u64).map(u32::from_le_bytes)?,
            flags: word(bytes, (entry + elf::FLAGS) as u64).map(u32::from_le_bytes)?,
            offset: field(elf::OFFSET)?,
            address: field(elf::ADDRESS)?,
            file_size: field(elf::FILE_SIZE)?,
            memory_size: field(elf::MEMORY_SIZE)?,
        })
    });
    entries.collect()
}

/// Where in the file an address of the program is.
fn place(segments: &[Segment], address: u64) -> Option<u64> {
    let loaded = segments.iter().filter(|it| it.kind == elf::LOAD);
    let inside =
        |it: &&Segment| address.checked_sub(it.address).is_some_and(|within| within < it.file_size);
    let segment = loaded.into_iter().find(inside)?;
    segment.offset.checked_add(address - segment.address)
}

/// The relocation by which the program gets the address of the function.
fn relocation(bytes: &[u8], segments: &[Segment]) -> Option<u64> {
    let dynamic = segments.iter().find(|it| it.kind == elf::DYNAMIC)?;
    let entry = |wanted: u64| {
        let places = (0..dynamic.file_size / 16).map(|number| dynamic.offset + 16 * number);
        let found = places.map(|at| Some((long(bytes, at)?, long(bytes, at + 8)?)));
        found.flatten().find(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    };
    let (strings, symbols) = (entry(elf::STRINGS)?, entry(elf::SYMBOLS)?);
    let tables = [(elf::PLT, elf::PLT_SIZE), (elf::RELOCATIONS, elf::RELOCATIONS_SIZE)];
    for (table, size) in tables
        .into_iter()
        .filter_map(|(table, size)| Some((place(segments, entry(table)?)?, entry(size)?)))
    {
        for number in 0..size / elf::RELOCATION {
            let at = table + elf::RELOCATION * number;
            let info = long(bytes, at + 8)?;
            if !elf::BY_NAME.contains(&(info & 0xffff_ffff)) {
                continue;
            }
            let symbol = place(segments, symbols + elf::SYMBOL * (info >> 32))?;
            let name = u32::from_le_bytes(word(bytes, symbol)?);
            let name = place(segments, strings + u64::from(name))?;
            if bytes.get(usize::try_from(name).ok()?..)?.starts_with(NAME) {
                return Some(at);
            }
        }
    }
    None
}

/// Leads the program's calls of the function to `code`; nothing if there is no room, or no way.
fn change(bytes: &mut [u8], mut code: Vec<u8>) -> Option<()> {
    let segments = segments(bytes)?;
    let relocation = relocation(bytes, &segments)?;
    let loaded = || segments.iter().filter(|it| it.kind == elf::LOAD);
    let text = loaded().find(|it| it.flags & elf::EXECUTABLE != 0)?;
    let data = loaded().filter(|it| it.flags & elf::WRITABLE != 0).max_by_key(|it| it.address)?;
    if loaded().any(|it| it.address > data.address) || text.file_size != text.memory_size {
        return None;
    }
    // The code begins at a multiple of 16 behind the program's own, in the page where that ends.
    let skipped = (text.offset + text.file_size).next_multiple_of(16) - text.offset;
    let (at, address) = (text.offset + skipped, text.address + skipped);
    let end = at + code.len() as u64;
    let room = bytes.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)?;
    let overlaps = loaded().any(|it| it.offset < end && it.offset > text.offset);
    if room.iter().any(|byte| *byte != 0) || overlaps || at / elf::PAGE != (end - 1) / elf::PAGE {
        return None;
    }
    let state = (data.address + data.memory_size).next_multiple_of(8);
    let distance = code.len() - 8;
    let from = address + distance as u64;
    code[distance..].copy_from_slice(&state.wrapping_sub(from).to_le_bytes());
    put(bytes, at, &code)?;
    for field in [elf::FILE_SIZE, elf::MEMORY_SIZE] {
        let size = skipped + code.len() as u64;
        put(bytes, (text.entry + field) as u64, &size.to_le_bytes())?;
    }
    let size = state + STATE - data.address;
    put(bytes, (data.entry + elf::MEMORY_SIZE) as u64, &size.to_le_bytes())?;
    put(bytes, relocation + 8, &elf::BY_RESOLVER.to_le_bytes())?;
    put(bytes, relocation + 16, &address.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is linked dynamically, if there is one here.
    fn program() -> Option<Vec<u8>> {
        ["/bin/sh", "/bin/cat"].iter().find_map(|it| fs::read(it).ok())
    }

    #[test]
    fn what_is_no_program_stays_as_it_is() {
        for text in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01"] {
            let mut bytes = text.to_vec();
            assert_eq!((change(&mut bytes, vec![0; 16]), &bytes[..]), (None, text));
        }
    }

    #[test]
    fn damaged_programs_are_survived() {
        let Some(whole) = program() else { return };
        for length in (0..whole.len()).step_by(4099) {
            let _ = change(&mut whole[..length].to_vec(), vec![0; 400]);
        }
        let mut bytes = whole.clone();
        for at in 0..1024.min(whole.len()) {
            for value in [0, 0x7f, 0xff] {
                bytes[at] = value;
                let _ = change(&mut bytes, vec![0; 400]);
                bytes.copy_from_slice(&whole);
            }
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_function_ends_where_its_way_to_the_state_is_written() {
        let code = code().expect("it is for this processor");
        assert!(code.len() > 64 && code.len() < elf::PAGE as usize);
        assert_eq!(code[code.len() - 8..], [0; 8]);
    }
}
