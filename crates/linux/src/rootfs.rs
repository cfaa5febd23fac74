//! A root directory for guests, made of programs that the host has.
//!
//! It holds copies, never links: a guest runs as its own root and must not reach the host's files.
//! Which libraries a program needs is what the dynamic linker itself says. A root is only read by
//! its guests, so one serves any number of runs, also at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::calibration;
use crate::error::RootError;
use crate::script;

/// Where programs are looked for beside the directories of `PATH`.
const SYSTEM_DIRECTORIES: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];
/// Directories that something is mounted on, or that programs expect.
const EMPTY_DIRECTORIES: [&str; 9] =
    ["dev", "proc", "sys", "tmp", "run", "guest", "root", "mnt", "var/tmp"];
/// Directories that a guest mounts something of its own on, so that nothing of the root is seen
/// there.
const HIDDEN: [&str; 9] =
    ["/dev", "/proc", "/sys", "/tmp", "/run", "/guest", "/mnt", "/var/tmp", "/busybox"];
/// Where programs are that others stand for.
const HIDDEN_PROGRAMS: &str = "usr/libexec/paternoster";
/// The directory of what does not keep its place on the host.
pub(crate) const BROUGHT: &str = "/brought";
/// Programs that start others. Busybox prefers its own to those of the path, whatever it is told,
/// so the host's are used where they exist.
const STARTERS: [&str; 9] =
    ["sh", "env", "ionice", "nice", "setsid", "taskset", "timeout", "xargs", "chrt"];
/// The program that looks at the clock for long before it begins.
const FIO: &str = "fio";
/// The packages that have the programs people ask for.
const PACKAGES: [(&str, &str); 9] = [
    ("busybox", "busybox-static"),
    ("fio", "fio"),
    ("dd", "coreutils"),
    ("mke2fs", "e2fsprogs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("ionice", "util-linux"),
    ("blkdiscard", "util-linux"),
    ("stress-ng", "stress-ng"),
];

/// A root directory that guests can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    directory: PathBuf,
    begin_with: &'static [(&'static str, &'static str)],
}

impl Root {
    /// Makes a root in `directory`, which is created, with busybox and `programs`: names that are
    /// looked for on this host, or paths. Programs appear where they are on the host.
    pub fn make(directory: &Path, programs: &[&str]) -> Result<Root, RootError> {
        Root::make_with(directory, programs, &[])
    }

    /// The same, where programs of some names always begin with an option, however they are called:
    /// a script that gives it to them stands in their place.
    pub(crate) fn make_with(
        directory: &Path,
        programs: &[&str],
        begin_with: &'static [(&'static str, &'static str)],
    ) -> Result<Root, RootError> {
        let root = Root { directory: directory.to_path_buf(), begin_with };
        for name in EMPTY_DIRECTORIES {
            root.make_directory(Path::new(name))?;
        }
        root.write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0o644)?;
        root.write("etc/group", "root:x:0:\n", 0o644)?;
        root.write("init", script::INIT, 0o755)?;
        root.install_busybox()?;
        for program in STARTERS.iter().filter_map(|name| find_program(name)) {
            root.add_program(&program)?;
        }
        root.link_shell()?;
        for program in programs {
            root.add_program(&locate(program)?)?;
        }
        Ok(root)
    }

    /// The root that was made in `directory` before.
    pub fn at(directory: &Path) -> Root {
        Root { directory: directory.to_path_buf(), begin_with: &[] }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds a copy of a file at the place that it has on the host.
    pub fn add_file(&self, file: &Path) -> Result<(), RootError> {
        self.copy(file, file)
    }

    /// Adds a copy of a file at another place.
    pub fn add_file_as(&self, file: &Path, place: &Path) -> Result<(), RootError> {
        self.copy(file, place)
    }

    /// Adds an empty directory, which guests mount something on.
    pub fn add_directory(&self, path: &Path) -> Result<(), RootError> {
        self.make_directory(path)
    }

    /// Adds a program by name, or a program, file or directory by its path; returns by what path a
    /// guest finds it. Programs of the system keep their place; the rest is in `/brought`.
    pub fn bring(&self, wanted: &str) -> Result<PathBuf, RootError> {
        let named = !wanted.contains('/');
        if let Some(program) = find_program(wanted).filter(|_| named) {
            self.add_program(&program)?;
            if !Path::new(wanted).is_file() {
                return Ok(PathBuf::from(wanted));
            }
        } else if named && !Path::new(wanted).exists() {
            return locate(wanted);
        }
        let place = Path::new(wanted);
        let path =
            place.canonicalize().map_err(|cause| RootError::file("looking for", place, cause))?;
        if path == Path::new("/") {
            return Err(RootError::Everything);
        }
        let plain = place.is_absolute() && !place.components().any(|it| it == Component::ParentDir);
        if plain && HIDDEN.iter().all(|hidden| !place.starts_with(hidden)) {
            self.add_program(place)?;
            return Ok(place.to_path_buf());
        }
        let name = Path::new(path.file_name().unwrap_or_default());
        self.copy_all(&path, &Path::new(BROUGHT).join(name))?;
        if path.is_file() {
            self.add_what_it_needs(&path)?;
        }
        // It is copied to where commands run.
        Ok(if named { name.to_path_buf() } else { Path::new(".").join(name) })
    }

    fn copy(&self, file: &Path, to: &Path) -> Result<(), RootError> {
        let inside = self.inside(to);
        if inside.exists() {
            return Ok(());
        }
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let option = self.begin_with.iter().find(|(known, _)| *known == name);
        if let Some((_, option)) = option.filter(|_| is_executable(file)) {
            let real =
                Path::new("/").join(HIDDEN_PROGRAMS).join(to.strip_prefix("/").unwrap_or(to));
            let path = real.to_string_lossy().replace('\'', r"'\''");
            let script = format!("#!/busybox/sh\nexec '{path}' {option} \"$@\"\n");
            self.write(&to.to_string_lossy(), &script, 0o755)?;
            return self.copy_file(file, &real);
        }
        self.copy_file(file, to)
    }

    fn copy_file(&self, file: &Path, to: &Path) -> Result<(), RootError> {
        let inside = self.inside(to);
        self.make_directory(to.parent().unwrap_or(Path::new("")))?;
        fs::copy(file, &inside).map_err(|cause| RootError::file("copying", file, cause))?;
        if file.file_name().is_some_and(|name| name == FIO) {
            calibration::shorten(&inside)
                .map_err(|cause| RootError::file("changing", &inside, cause))?;
        }
        Ok(())
    }

    /// Copies a file, or a directory with everything in it but sockets, pipes and devices. Links to
    /// directories, and those that lead nowhere, stay links.
    fn copy_all(&self, path: &Path, to: &Path) -> Result<(), RootError> {
        if !path.is_dir() {
            return self.copy(path, to);
        }
        let failed = |cause| RootError::file("reading", path, cause);
        self.make_directory(to)?;
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().map_err(failed)?;
            match () {
                () if kind.is_symlink() && !from.is_file() => self.copy_link(&from, &to)?,
                () if kind.is_dir() || from.is_file() => self.copy_all(&from, &to)?,
                () => {}
            }
        }
        Ok(())
    }

    fn copy_link(&self, link: &Path, to: &Path) -> Result<(), RootError> {
        let inside = self.inside(to);
        if inside.symlink_metadata().is_ok() {
            return Ok(());
        }
        let made = fs::read_link(link).and_then(|target| symlink(target, &inside));
        made.map_err(|cause| RootError::file("copying the link", link, cause))
    }

    /// Busybox, and a link to it for each of its programs.
    fn install_busybox(&self) -> Result<(), RootError> {
        let busybox = locate("busybox")?;
        let listed = Command::new(&busybox)
            .arg("--list")
            .output()
            .map_err(|cause| RootError::file("running", &busybox, cause))?;
        self.make_directory(Path::new("busybox"))?;
        self.add_libraries(&busybox)?;
        let copy = self.directory.join("busybox/busybox");
        if !copy.exists() {
            fs::copy(&busybox, &copy)
                .map_err(|cause| RootError::file("copying", &busybox, cause))?;
        }
        for name in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
            let link = self.directory.join("busybox").join(name);
            if name != "busybox" && link.symlink_metadata().is_err() {
                symlink("busybox", &link)
                    .map_err(|cause| RootError::file("creating", &link, cause))?;
            }
        }
        Ok(())
    }

    /// Makes sure that there is a `/bin/sh`, which jobs and other people's scripts expect.
    fn link_shell(&self) -> Result<(), RootError> {
        self.make_directory(Path::new("bin"))?;
        let shell = self.directory.join("bin/sh");
        if shell.symlink_metadata().is_ok() {
            return Ok(());
        }
        let real = find_program("sh").filter(|sh| self.inside(sh).exists());
        symlink(real.unwrap_or_else(|| PathBuf::from("/busybox/sh")), &shell)
            .map_err(|cause| RootError::file("creating", &shell, cause))
    }

    fn add_program(&self, program: &Path) -> Result<(), RootError> {
        self.copy_all(program, program)?;
        match program.is_file() {
            true => self.add_what_it_needs(program),
            false => Ok(()),
        }
    }

    fn add_what_it_needs(&self, program: &Path) -> Result<(), RootError> {
        match interpreter(program)? {
            Interpreter::None => Ok(()),
            Interpreter::Linker(_) => self.add_libraries(program),
            Interpreter::Script(path) if self.inside(&path).exists() => Ok(()),
            Interpreter::Script(path) => self.add_program(&path),
        }
    }

    /// Copies what the dynamic linker names for `program`, and the linker.
    fn add_libraries(&self, program: &Path) -> Result<(), RootError> {
        let Interpreter::Linker(linker) = interpreter(program)? else { return Ok(()) };
        let output = Command::new(&linker)
            .arg("--list")
            .arg(program)
            .env("LC_ALL", "C")
            .env_remove("LD_PRELOAD")
            .output()
            .map_err(|cause| RootError::file("running", &linker, cause))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(RootError::Linker { linker, program: program.to_path_buf(), message });
        }
        self.add_file(&linker)?;
        for library in libraries(program, &String::from_utf8_lossy(&output.stdout))? {
            self.add_file(&library)?;
        }
        Ok(())
    }

    fn inside(&self, path: &Path) -> PathBuf {
        let plain = path.components().filter(|part| matches!(part, Component::Normal(_)));
        self.directory.join(plain.collect::<PathBuf>())
    }

    fn make_directory(&self, path: &Path) -> Result<(), RootError> {
        let directory = self.inside(path);
        fs::create_dir_all(&directory)
            .map_err(|cause| RootError::file("creating", &directory, cause))
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<(), RootError> {
        // Never joined as it is: an absolute path would lead out of the root.
        let file = self.inside(Path::new(name));
        self.make_directory(Path::new(name).parent().unwrap_or(Path::new("")))?;
        fs::write(&file, text)
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(mode)))
            .map_err(|cause| RootError::file("writing", &file, cause))
    }
}

/// Where programs are looked for: the absolute directories of `PATH`, then those of the system.
pub(crate) fn program_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    directories.chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from)).collect()
}

/// The file of a program on this host.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let mut files = program_directories().into_iter().map(|directory| directory.join(name));
    files.find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let about = file.metadata();
    about.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn locate(program: &str) -> Result<PathBuf, RootError> {
    if program.contains('/') {
        let path = Path::new(program);
        return path.canonicalize().map_err(|cause| RootError::file("looking for", path, cause));
    }
    find_program(program).ok_or_else(|| {
        let package = PACKAGES.iter().find(|(name, _)| *name == program);
        let hint = package.map(|(_, package)| format!("; on Debian: apt-get install {package}"));
        RootError::NoProgram { program: program.to_string(), hint: hint.unwrap_or_default() }
    })
}

/// What a program needs to be run by.
enum Interpreter {
    None,
    /// The dynamic linker that its file names.
    Linker(PathBuf),
    /// It is a script.
    Script(PathBuf),
}

fn interpreter(program: &Path) -> Result<Interpreter, RootError> {
    let mut bytes = Vec::new();
    fs::File::open(program)
        .and_then(|file| file.take(1 << 20).read_to_end(&mut bytes))
        .map_err(|cause| RootError::file("reading", program, cause))?;
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        return Ok(match line.split_whitespace().next() {
            Some(path) => Interpreter::Script(PathBuf::from(path)),
            None => Interpreter::None,
        });
    }
    Ok(elf_interpreter(&bytes).map_or(Interpreter::None, Interpreter::Linker))
}

/// The dynamic linker that a 64-bit little-endian ELF file names in its PT_INTERP segment.
fn elf_interpreter(bytes: &[u8]) -> Option<PathBuf> {
    /// Where things are in the header and in an entry of the program header table (ELF-64).
    const TABLE: usize = 32;
    const ENTRY_SIZE: usize = 54;
    const ENTRIES: usize = 56;
    const OFFSET: usize = 8;
    const LENGTH: usize = 32;
    const PT_INTERP: u32 = 3;
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let half = |at: usize| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| {
        let value = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        usize::try_from(value).ok()
    };
    let (table, size) = (long(TABLE)?, usize::from(half(ENTRY_SIZE)?));
    for index in 0..usize::from(half(ENTRIES)?) {
        let entry = table.checked_add(index * size)?;
        if word(entry)? == PT_INTERP {
            let from = long(entry + OFFSET)?;
            let text = bytes.get(from..from.checked_add(long(entry + LENGTH)?)?)?;
            let text = std::str::from_utf8(text).ok()?;
            return Some(PathBuf::from(text.trim_end_matches('\0')));
        }
    }
    None
}

/// The files in the answer of `ld.so --list`: `name => path (address)` or `path (address)`.
fn libraries(program: &Path, listed: &str) -> Result<BTreeSet<PathBuf>, RootError> {
    let mut files = BTreeSet::new();
    for line in listed.lines() {
        let line = line.trim();
        let (name, place) = line.split_once(" => ").unwrap_or((line, line));
        if place.starts_with("not found") {
            let (program, library) = (program.to_path_buf(), name.to_string());
            return Err(RootError::NoLibrary { program, library });
        }
        // What has no path is the kernel's own (linux-vdso.so.1).
        let path = place.rsplit_once(" (").map_or(place, |(path, _)| path);
        if path.starts_with('/') {
            files.insert(PathBuf::from(path));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_may_have_links_that_lead_nowhere_and_is_not_everything() {
        let scratch =
            std::env::temp_dir().join(format!("paternoster-bring-{}", std::process::id()));
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        fs::create_dir_all(from.join("inner")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("inner/file"), "x").unwrap();
        symlink("/nowhere", from.join("dangling")).unwrap();
        symlink(".", from.join("inner/itself")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let root = Root::at(&to);
        root.copy_all(&from, Path::new("brought")).unwrap();
        let brought = to.join("brought");
        assert_eq!(fs::read_link(brought.join("dangling")).unwrap(), Path::new("/nowhere"));
        assert_eq!(fs::read_link(brought.join("inner/itself")).unwrap(), Path::new("."));
        assert_eq!(fs::read_to_string(brought.join("inner/file")).unwrap(), "x");
        assert!(!brought.join("socket").exists());
        let refused = root.bring("/").unwrap_err().to_string();
        assert!(refused.contains("accepted: a program"), "{refused}");
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn a_script_stands_in_for_a_program_in_the_root_and_nowhere_else() {
        let scratch =
            std::env::temp_dir().join(format!("paternoster-stand-in-{}", std::process::id()));
        let (from, to) = (scratch.join("from"), scratch.join("to"));
        fs::create_dir_all(&from).unwrap();
        let tool = from.join("tool");
        fs::write(&tool, "the tool").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let root = Root { directory: to.clone(), begin_with: &[("tool", "--first")] };
        root.add_program(&tool).unwrap();
        assert_eq!(fs::read_to_string(&tool).unwrap(), "the tool");
        let place = tool.strip_prefix("/").unwrap();
        let script = fs::read_to_string(to.join(place)).unwrap();
        let real = Path::new(HIDDEN_PROGRAMS).join(place);
        assert_eq!(script, format!("#!/busybox/sh\nexec '/{}' --first \"$@\"\n", real.display()));
        assert_eq!(fs::read_to_string(to.join(real)).unwrap(), "the tool");
        fs::remove_dir_all(&scratch).unwrap();
    }

    #[test]
    fn the_linkers_answer_is_understood() {
        let listed = "\tlinux-vdso.so.1 (0x00007fff)\n\tlibm.so.6 => /lib/libm.so.6 (0x7f)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let files: Vec<_> = libraries(Path::new("/bin/x"), listed).unwrap().into_iter().collect();
        assert_eq!(files, [Path::new("/lib/libm.so.6"), Path::new("/lib64/ld-linux-x86-64.so.2")]);
        let missing = libraries(Path::new("/bin/x"), "\tlibq.so.1 => not found\n").unwrap_err();
        assert!(missing.to_string().contains("/bin/x needs libq.so.1"), "{missing}");
    }

    #[test]
    fn damaged_programs_have_no_interpreter() {
        assert_eq!(elf_interpreter(b""), None);
        assert_eq!(elf_interpreter(b"\x7fELF\x02\x01"), None);
        let mut bytes = [0xff; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(elf_interpreter(&bytes), None);
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let missing = locate("no-such-program-anywhere").unwrap_err().to_string();
        assert!(missing.starts_with("no-such-program-anywhere is not in PATH"), "{missing}");
    }
}
