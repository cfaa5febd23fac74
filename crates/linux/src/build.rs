//! The kernel: found in a cache, or configured and built there from its source.
//!
//! The source is compiled as it is. The frequency of the tick is a configuration symbol without a
//! prompt, so another default is put before the architecture's by a file of our own beside the
//! build; not a byte of the source changes. The result is kept under its version, the fingerprint
//! of our configuration and its HZ, so it is built once. A tree that somebody names may differ
//! from what its version says, so a fingerprint of it is a part of its version.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Fingerprint, Hz};

use crate::cache::{Cache, Kernel, TREE, Work};
use crate::configuration::{CONFIGURATION, check_architecture};
use crate::error::BuildError;
use crate::launch::ends_with_us;

/// Symbols without which a guest is of no use; the configuration is checked for them, as they
/// vanish silently when something they depend on is missing.
const ESSENTIAL: [&str; 8] = [
    "UML_TIME_TRAVEL_SUPPORT",
    "STATIC_LINK",
    "VIRTIO_UML",
    "VIRTIO_BLK",
    "HOSTFS",
    "IOSCHED_BFQ",
    "MQ_IOSCHED_DEADLINE",
    "BLK_DEV_IO_TRACE",
];

/// Programs and files that a build needs, each with the Debian package that has it.
const TOOLS: [(&str, &str); 10] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("strip", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
    ("nice", "coreutils"),
];

/// Parts of a tarball that nothing of ours is built from: two thirds of it.
const NOT_UNPACKED: [&str; 9] = [
    "*/drivers/gpu/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/sound/*.[ch]",
    "*/Documentation/*.rst",
    "*/tools/testing/*",
    "*.dts",
    "*.dtsi",
];

/// Lines that `make` prints in a whole build of 6.12 with our configuration (measured).
const EXPECTED_STEPS: u32 = 1340;

/// Where the source comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Debian's package `linux-source-` of this series, such as `6.12`.
    Debian(String),
    /// An unpacked tree, which is only read.
    Tree(PathBuf),
}

/// What to build and how.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Where the source comes from.
    pub source: Source,
    /// The frequency of the tick. 100 is the architecture's default.
    pub hz: Hz,
    /// Compilers at once.
    pub jobs: usize,
    /// How much the build gives way to others, from 0 to 19.
    pub niceness: u8,
}

/// How far a build is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Somebody else builds the same kernel.
    Waiting,
    /// The tarball is being unpacked.
    Unpacking(PathBuf),
    /// The configuration is being made.
    Configuring,
    /// `done` of about `expected` steps are done; the newest is named.
    Compiling {
        /// Steps done.
        done: u32,
        /// Steps to do, roughly; at least `done`.
        expected: u32,
        /// The step, such as `CC block/bio.o`.
        step: String,
    },
    /// The binary is stripped and put into the cache.
    Keeping,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Waiting => write!(f, "waiting for another build of the same kernel"),
            Progress::Unpacking(tarball) => write!(f, "unpacking {}", tarball.display()),
            Progress::Configuring => write!(f, "configuring"),
            Progress::Compiling { done, expected, step } => {
                write!(f, "{done} of about {expected}: {step}")
            }
            Progress::Keeping => write!(f, "keeping the kernel"),
        }
    }
}

/// Builds the kernel of `recipe`, unless `cache` has it, and returns it.
///
/// Takes some minutes and about 1 GB in the cache directory, most of which it gives back, also when
/// it fails. A second build of the same kernel at the same time waits for the first.
pub fn build(
    cache: &Cache,
    recipe: &Recipe,
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernel, BuildError> {
    check_architecture()?;
    let origin = match (find_source(&recipe.source), &recipe.source) {
        // Whoever has the kernel needs neither source nor tools.
        (Err(error), Source::Debian(series)) => {
            return cache.find(series, recipe.hz)?.ok_or(error);
        }
        (origin, _) => origin?,
    };
    let version = origin.version()?;
    if let Some(kernel) = cache.find(&version, recipe.hz)? {
        return Ok(kernel);
    }
    check_tools()?;
    let work = cache.work(&version, recipe.hz, &mut || progress(Progress::Waiting))?;
    // It may be there by now.
    if let Some(kernel) = cache.find(&version, recipe.hz)? {
        return Ok(kernel);
    }
    cache.check_room()?;
    let made = make_kernel(&origin, &work, recipe, progress);
    // Somebody else may have used up the room.
    let stripped = made.map_err(|error| match error.is_full_disk() {
        true => cache.check_room().err().unwrap_or(error),
        false => error,
    })?;
    cache.keep(&stripped, &version, recipe.hz)
}

/// Makes the kernel in `work`; returns its file.
fn make_kernel(
    origin: &Origin,
    work: &Work,
    recipe: &Recipe,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, BuildError> {
    let tree = match origin {
        Origin::Tree(tree) => tree.clone(),
        Origin::Tarball(tarball) => {
            progress(Progress::Unpacking(tarball.clone()));
            unpack(tarball, &work.directory("source")?)?
        }
    };
    progress(Progress::Configuring);
    let object = work.directory("object")?;
    configure(&tree, &object, recipe)?;
    compile(&tree, &object, recipe, progress)?;
    progress(Progress::Keeping);
    let stripped = object.join("linux.stripped");
    let mut strip = tool("strip");
    strip.arg("-o").arg(&stripped).arg(object.join("linux"));
    run("stripping the kernel", &mut strip)?;
    Ok(stripped)
}

/// The tools that are missing, each with its package.
pub fn missing_tools() -> Vec<(&'static str, &'static str)> {
    let mut missing: Vec<_> =
        TOOLS.into_iter().filter(|(tool, _)| crate::rootfs::find_program(tool).is_none()).collect();
    // The kernel is linked statically.
    let libc = ["/usr/lib/x86_64-linux-gnu/libc.a", "/usr/lib64/libc.a", "/usr/lib/libc.a"];
    if !libc.iter().any(|file| Path::new(file).exists()) {
        missing.push(("libc.a", "libc6-dev"));
    }
    missing
}

fn check_tools() -> Result<(), BuildError> {
    let missing = missing_tools();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let tools = missing.iter().map(|(tool, _)| *tool).collect::<Vec<_>>().join(", ");
    Err(BuildError::MissingTools { tools, packages: packages.join(" ") })
}

/// A source that was found.
enum Origin {
    Tree(PathBuf),
    Tarball(PathBuf),
}

impl Origin {
    /// The version that the top-level makefile names, and which tree of that version it is.
    fn version(&self) -> Result<String, BuildError> {
        match self {
            Origin::Tree(tree) => {
                let file = tree.join("Makefile");
                let text = fs::read_to_string(&file)
                    .map_err(|cause| BuildError::NoTree { tree: tree.clone(), cause })?;
                let version = version_in(&text).ok_or(BuildError::NoVersion { file })?;
                Ok(format!("{version}{TREE}{}", tree_key(tree)?))
            }
            Origin::Tarball(tarball) => {
                // The makefile is near the beginning; tar stops there.
                let mut tar = tool("tar");
                tar.args([
                    "--extract",
                    "--to-stdout",
                    "--occurrence=1",
                    "--wildcards",
                    "--no-wildcards-match-slash",
                ]);
                tar.arg("--file").arg(tarball).arg("linux-*/Makefile");
                let text = run("reading the version of the source", &mut tar)?;
                version_in(&text).ok_or(BuildError::NoVersion { file: tarball.clone() })
            }
        }
    }
}

fn find_source(source: &Source) -> Result<Origin, BuildError> {
    match source {
        Source::Tree(tree) => Ok(Origin::Tree(tree.clone())),
        Source::Debian(series) => {
            let stem = format!("/usr/src/linux-source-{series}");
            let (tarball, tree) = (PathBuf::from(format!("{stem}.tar.xz")), PathBuf::from(stem));
            match (tarball.exists(), tree.join("Makefile").exists()) {
                (true, _) => Ok(Origin::Tarball(tarball)),
                (false, true) => Ok(Origin::Tree(tree)),
                (false, false) => Err(BuildError::NoSource { series: series.clone(), tarball }),
            }
        }
    }
}

/// The version in the first lines of a kernel's makefile: `6.12.117`.
fn version_in(makefile: &str) -> Option<String> {
    let value = |name: &str| {
        makefile.lines().take(20).find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| value.trim().to_string())
        })
    };
    let (version, patch, sub) = (value("VERSION")?, value("PATCHLEVEL")?, value("SUBLEVEL")?);
    let extra = value("EXTRAVERSION").unwrap_or_default();
    let number = format!("{version}.{patch}.{sub}{extra}");
    // The version names a directory of the cache.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    (!version.is_empty() && number.chars().all(plain)).then_some(number)
}

/// A fingerprint of the names, sizes and times of all files of a tree.
fn tree_key(tree: &Path) -> Result<String, BuildError> {
    let mut fingerprint = Fingerprint::new();
    let mut directories = vec![tree.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let failed = |cause| BuildError::file("reading", &directory, cause);
        let mut entries = fs::read_dir(&directory)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let about = entry.metadata().map_err(failed)?;
            match about.is_dir() {
                true if entry.file_name() == ".git" => {}
                true => directories.push(entry.path()),
                false => {
                    let path = entry.path();
                    let name = path.strip_prefix(tree).expect("it is in the tree");
                    fingerprint.mix_bytes(name.as_os_str().as_encoded_bytes());
                    fingerprint.mix(about.size());
                    fingerprint.mix(about.mtime() as u64);
                    fingerprint.mix(about.mtime_nsec() as u64);
                }
            }
        }
    }
    Ok(fingerprint.to_string())
}

/// Unpacks `tarball` into `directory` and returns the tree in it.
fn unpack(tarball: &Path, directory: &Path) -> Result<PathBuf, BuildError> {
    let mut tar = tool("nice");
    tar.arg("tar").arg("--extract").arg("--file").arg(tarball).arg("--directory").arg(directory);
    tar.args(["--strip-components=1"]);
    tar.args(NOT_UNPACKED.map(|pattern| format!("--exclude={pattern}")));
    run("unpacking the source", &mut tar)?;
    Ok(directory.to_path_buf())
}

/// A program of the host that finds others where we do.
fn tool(name: &str) -> Command {
    let mut command = Command::new(crate::rootfs::find_program(name).unwrap_or(name.into()));
    // None of the directories has a colon in it, as they were cut at colons.
    let path = std::env::join_paths(crate::rootfs::program_directories()).unwrap_or_default();
    command.env("PATH", path).env("LC_ALL", "C").stdin(Stdio::null());
    ends_with_us(&mut command);
    command
}

/// A call of `make` for our architecture, the same on every machine.
fn make(tree: &Path, object: &Path, recipe: &Recipe) -> Command {
    let mut make = tool("nice");
    make.arg("-n").arg(recipe.niceness.to_string()).arg("make").arg("ARCH=um");
    make.arg("-C").arg(tree);
    make.arg(format!("O={}", object.display()));
    make.arg(format!("KBUILD_KCONFIG={}", object.join("Kconfig.hz").display()));
    // Build time, user and host end up in /proc/version, which a guest can see.
    make.args(["KBUILD_BUILD_TIMESTAMP=1970-01-01", "KBUILD_BUILD_VERSION=1"]);
    make.args(["KBUILD_BUILD_USER=paternoster", "KBUILD_BUILD_HOST=paternoster"]);
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    make
}

fn configure(tree: &Path, object: &Path, recipe: &Recipe) -> Result<(), BuildError> {
    let file = tree.join("Kconfig");
    let kconfig = fs::read_to_string(&file)
        .map_err(|cause| BuildError::NoTree { tree: tree.to_path_buf(), cause })?;
    let kconfig = with_hz(&kconfig, recipe.hz).ok_or(BuildError::NoVersion { file })?;
    let fragment = object.join("fragment.config");
    for (file, text) in
        [(object.join("Kconfig.hz"), kconfig.as_str()), (fragment.clone(), CONFIGURATION)]
    {
        fs::write(&file, text).map_err(|cause| BuildError::file("writing", &file, cause))?;
    }
    let mut command = make(tree, object, recipe);
    command.arg(format!("KCONFIG_ALLCONFIG={}", fragment.display())).arg("allnoconfig");
    run("configuring the kernel", &mut command)?;
    let file = object.join(".config");
    let text =
        fs::read_to_string(&file).map_err(|cause| BuildError::file("reading", &file, cause))?;
    check_configuration(&text, recipe.hz)
}

/// The top-level Kconfig with our default for HZ before all others: the first default counts.
fn with_hz(kconfig: &str, hz: Hz) -> Option<String> {
    let title = kconfig.lines().find(|line| line.starts_with("mainmenu "))?;
    let ours = format!("{title}\n\nconfig HZ\n\tint\n\tdefault {}\n", hz.get());
    Some(kconfig.replacen(title, &ours, 1))
}

fn check_configuration(text: &str, hz: Hz) -> Result<(), BuildError> {
    let mut expected: Vec<String> =
        ESSENTIAL.iter().map(|symbol| format!("CONFIG_{symbol}=y")).collect();
    expected.push(format!("CONFIG_HZ={}", hz.get()));
    expected.retain(|line| !text.lines().any(|present| present == line));
    match expected.is_empty() {
        true => Ok(()),
        false => Err(BuildError::Configuration { missing: expected.join(", ") }),
    }
}

fn compile(
    tree: &Path,
    object: &Path,
    recipe: &Recipe,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BuildError> {
    let log = object.join("build.log");
    let errors =
        fs::File::create(&log).map_err(|cause| BuildError::file("creating", &log, cause))?;
    let mut command = make(tree, object, recipe);
    command.arg(format!("-j{}", recipe.jobs.max(1))).arg("linux");
    command.stdout(Stdio::piped()).stderr(errors);
    let started = command.spawn().map_err(|cause| BuildError::start("make", cause))?;
    let mut child = Reaped(started);
    let lines = BufReader::new(child.0.stdout.take().expect("the output is piped")).lines();
    let mut done = 0;
    for line in lines {
        let line = line.map_err(|cause| BuildError::file("reading the output of", &log, cause))?;
        // Steps are set in by two blanks; everything else is make talking about itself.
        let Some(step) = line.strip_prefix("  ") else { continue };
        done += 1;
        let step = step.split_whitespace().collect::<Vec<_>>().join(" ");
        progress(Progress::Compiling { done, expected: EXPECTED_STEPS.max(done), step });
    }
    let status = child.0.wait().map_err(|cause| BuildError::start("make", cause))?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    Err(BuildError::step("compiling the kernel", &command, status, &text))
}

/// A child process that is not left behind.
struct Reaped(std::process::Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        // Both fail harmlessly when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end and returns what it wrote.
fn run(step: &'static str, command: &mut Command) -> Result<String, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|cause| BuildError::start(&program, cause))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(BuildError::step(step, command, output.status, &text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_makefile() {
        let text = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = x";
        assert_eq!(version_in(text).as_deref(), Some("6.12.117"));
        assert_eq!(
            version_in(&text.replace("VERSION =\n", "VERSION = -rc1\n")).as_deref(),
            Some("6.12.117-rc1")
        );
        assert_eq!(version_in("all:\n\techo"), None);
        assert_eq!(version_in(&text.replace("117", "../..")), None);
    }

    #[test]
    fn a_tree_that_was_changed_is_another_version() {
        let tree = std::env::temp_dir().join(format!("paternoster-tree-{}", std::process::id()));
        fs::create_dir_all(tree.join("block")).unwrap();
        fs::write(tree.join("block/a.c"), "one").unwrap();
        let before = tree_key(&tree).unwrap();
        assert_eq!(tree_key(&tree).unwrap(), before);
        fs::write(tree.join("block/a.c"), "more").unwrap();
        let after = tree_key(&tree).unwrap();
        fs::remove_dir_all(&tree).unwrap();
        assert_ne!(after, before);
    }

    #[test]
    fn our_default_of_hz_stands_before_everything_that_is_sourced() {
        let text = "# x\nmainmenu \"Linux\"\n\nsource \"init/Kconfig\"\n";
        let changed = with_hz(text, Hz::new(250).unwrap()).unwrap();
        let at = |what: &str| changed.find(what).unwrap();
        assert!(at("mainmenu") < at("default 250") && at("default 250") < at("source"));
        assert_eq!(with_hz("source \"x\"\n", Hz::new(250).unwrap()), None);
    }

    #[test]
    fn a_configuration_without_time_travel_is_refused() {
        let mut text: String = ESSENTIAL.iter().map(|name| format!("CONFIG_{name}=y\n")).collect();
        text.push_str("CONFIG_HZ=100\n");
        check_configuration(&text, Hz::new(100).unwrap()).unwrap();
        let refused = check_configuration(&text.replace("TIME", "TEA"), Hz::new(250).unwrap());
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y, CONFIG_HZ=250"), "{message}");
    }
}
