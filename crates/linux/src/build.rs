//! The kernel: found in a cache, or configured and built there from its source.
//!
//! The source is compiled as it is. The frequency of the tick is a configuration symbol without a
//! prompt, so another default is put before the architecture's by a file of our own beside the
//! build; not a byte of the source changes. One call of the C library is wrapped when the kernel
//! is linked (`link`). The result is kept under its version, the fingerprint of our
//! configuration and its HZ, so it is built once. A tree that somebody names may differ from what
//! its version says, so a fingerprint of it is a part of its version; so are symbols that
//! somebody sets.

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base::{Fingerprint, Hz};

use crate::about::About;
use crate::cache::{Cache, Kernel, TREE, Work};
use crate::configuration::{
    check, check_architecture, fragment, left_out, schedulers, settings, with_hz,
};
use crate::error::BuildError;
use crate::link::{linking_compiler, wrap_ptrace};
use crate::source::{Origin, unpack};
use crate::tool::{run, tool};

pub use crate::source::Source;

/// Programs and files that a build needs, each with the Debian package that has it.
const TOOLS: [(&str, &str); 11] = [
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
    // A guest's first program: in the end the kernel is started.
    ("busybox", "busybox-static"),
];

/// Parts of a tree without which nothing can be built: User-Mode Linux, and a block layer.
const PARTS: [&str; 4] = ["Kconfig", "arch/um/Kconfig", "block/Kconfig", "block/Kconfig.iosched"];

/// Lines that `make` prints in a whole build of 6.12 with our configuration (measured).
const EXPECTED_STEPS: u32 = 1340;

/// What to build and how.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Where the source comes from.
    pub source: Source,
    /// The frequency of the tick. 100 is the architecture's default.
    pub hz: Hz,
    /// What the kernel is to be called besides its version.
    pub label: Option<String>,
    /// Symbols of its configuration as they were typed: `SYMBOL=VALUE`.
    pub configuration: Vec<String>,
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
    /// The source of this series or version is being fetched from Debian's archive.
    Fetching(String),
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
    /// The tree offers I/O schedulers that its configuration leaves out.
    LeftOut(Vec<String>),
    /// The binary is stripped and put into the cache.
    Keeping,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Waiting => write!(f, "waiting for another build of the same kernel"),
            Progress::Fetching(kernel) => {
                write!(f, "fetching the source of {kernel} from Debian's archive")
            }
            Progress::Unpacking(tarball) => write!(f, "unpacking {}", tarball.display()),
            Progress::Configuring => write!(f, "configuring"),
            Progress::Compiling { done, expected, step } => {
                write!(f, "{done} of about {expected}: {step}")
            }
            Progress::LeftOut(symbols) => {
                let symbols = symbols.join(", ");
                write!(f, "left out, for something they depend on is off: {symbols}")
            }
            Progress::Keeping => write!(f, "keeping the kernel"),
        }
    }
}

/// Builds the kernel of `recipe`, unless `cache` has it, and returns it.
///
/// Takes some minutes and about 1 GB in the cache directory, most of which it gives back, also when
/// it fails; of a tree it keeps the objects. A second build of the same kernel at the same time
/// waits for the first.
pub fn build(
    cache: &Cache,
    recipe: &Recipe,
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernel, BuildError> {
    check_architecture()?;
    let built = find_or_build(cache, recipe, progress);
    cache.remove_locks();
    built
}

fn find_or_build(
    cache: &Cache,
    recipe: &Recipe,
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernel, BuildError> {
    let mut about = About { configuration: settings(&recipe.configuration)?, ..About::default() };
    let here = recipe.source.here()?;
    about.tree = here.as_ref().and_then(|it| it.tree().map(Path::to_path_buf));
    if let Some(label) = &recipe.label {
        check_label(label)?;
        cache.check_label(label, &|it| is_of(it, &recipe.source, about.tree.as_deref()))?;
        about.label = Some(label.clone());
    }
    if let Some(origin) = here {
        return build_from(cache, &origin, recipe, about, progress);
    }
    let Source::Debian { kernel, .. } = &recipe.source else { unreachable!("a tree is here") };
    // Whoever has the kernel needs neither source nor tools.
    if let Some(there) = cache.of_debian(kernel, recipe.hz, &about.configuration)? {
        return named(cache, there, about);
    }
    check_tools()?;
    let waiting = &mut || progress(Progress::Waiting);
    let work = cache.work(&format!("source-{kernel}"), recipe.hz, waiting)?;
    cache.check_room()?;
    progress(Progress::Fetching(kernel.clone()));
    let origin = recipe.source.fetch(&work.directory("apt")?)?;
    build_from(cache, &origin, recipe, about, progress)
}

/// Whether a kernel was made from this source, or from another state of it.
fn is_of(kernel: &Kernel, source: &Source, tree: Option<&Path>) -> bool {
    let is_series = match source {
        Source::Debian { kernel: series, .. } => kernel.begins(series),
        Source::Tree(_) => true,
    };
    is_series && kernel.about.tree.as_deref() == tree
}

/// A kernel that there is, under the label that is wanted now.
fn named(cache: &Cache, kernel: Kernel, wanted: About) -> Result<Kernel, BuildError> {
    match wanted.label {
        None => Ok(kernel),
        label => {
            let about = About { label, ..kernel.about.clone() };
            cache.name(kernel, about)
        }
    }
}

/// Builds from a source that is here.
fn build_from(
    cache: &Cache,
    origin: &Origin,
    recipe: &Recipe,
    mut about: About,
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernel, BuildError> {
    let version = version_of(origin, &about.configuration)?;
    if let Some(kernel) = cache.of_version(&version, recipe.hz)? {
        return named(cache, kernel, about);
    }
    check_tools()?;
    let waiting = &mut || progress(Progress::Waiting);
    let work = cache.work(&version, recipe.hz, waiting)?;
    // It may be there by now.
    if let Some(kernel) = cache.of_version(&version, recipe.hz)? {
        return named(cache, kernel, about);
    }
    cache.check_room()?;
    let made = make_kernel(cache, origin, &work, (recipe, &mut about), progress);
    // Somebody else may have used up the room.
    let stripped = made.map_err(|error| match error.is_full_disk() {
        true => cache.check_room().err().unwrap_or(error),
        false => error,
    })?;
    cache.keep(&stripped, &version, recipe.hz, about)
}

/// The version of a source that is built with these symbols.
fn version_of(origin: &Origin, configuration: &[String]) -> Result<String, BuildError> {
    let version = origin.version()?;
    if configuration.is_empty() {
        return Ok(version);
    }
    let mut fingerprint = Fingerprint::new();
    configuration.iter().for_each(|setting| fingerprint.mix_bytes(setting.as_bytes()));
    let (version, of_tree) = version.split_once(TREE).unwrap_or((&version, ""));
    fingerprint.mix_bytes(of_tree.as_bytes());
    Ok(format!("{version}{TREE}{fingerprint}"))
}

/// A label is a word that nobody takes for a version.
fn check_label(label: &str) -> Result<(), BuildError> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.chars().all(is_part) {
        true => Ok(()),
        false => Err(BuildError::BadLabel { label: label.to_string() }),
    }
}

/// Makes the kernel in `work`; returns its file.
fn make_kernel(
    cache: &Cache,
    origin: &Origin,
    work: &Work,
    (recipe, about): (&Recipe, &mut About),
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf, BuildError> {
    let tree = match origin {
        Origin::Tree(tree) => tree.clone(),
        Origin::Tarball(tarball) => {
            progress(Progress::Unpacking(tarball.clone()));
            unpack(tarball, &work.directory("source")?)?
        }
    };
    check_tree(&tree)?;
    let kconfig = fs::read_to_string(tree.join("block/Kconfig.iosched")).unwrap_or_default();
    let wanted = Wanted { schedulers: schedulers(&kconfig), settings: &about.configuration };
    let stripped = work.directory("object")?.join("linux.stripped");
    match origin.tree() {
        None => {
            let object = work.directory("object")?;
            make_in(&tree, &object, recipe, &wanted, progress)?;
            strip(&object, &stripped)?;
        }
        Some(tree) => {
            let waiting = &mut || progress(Progress::Waiting);
            let mut objects = cache.objects(tree, recipe.hz, &wanted.fragment(), waiting)?;
            let object = objects.directory("")?;
            make_in(tree, &object, recipe, &wanted, progress)?;
            strip(&object, &stripped)?;
            objects.keep();
            about.objects = Some(objects.name());
        }
    }
    Ok(stripped)
}

/// Refuses a tree without the parts that every guest is built from.
fn check_tree(tree: &Path) -> Result<(), BuildError> {
    match PARTS.into_iter().find(|part| !tree.join(part).exists()) {
        None => Ok(()),
        Some(part) => {
            let cause = io::Error::new(io::ErrorKind::NotFound, format!("it has no {part}"));
            Err(BuildError::NoTree { tree: tree.to_path_buf(), cause })
        }
    }
}

/// What a kernel is to have beside what all have.
struct Wanted<'a> {
    schedulers: Vec<String>,
    settings: &'a [String],
}

impl Wanted<'_> {
    fn fragment(&self) -> String {
        fragment(&self.schedulers, self.settings)
    }
}

fn make_in(
    tree: &Path,
    object: &Path,
    recipe: &Recipe,
    wanted: &Wanted<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), BuildError> {
    progress(Progress::Configuring);
    wrap_ptrace(object)?;
    let configured = configure(tree, object, recipe, wanted)?;
    let left_out = left_out(&configured, &wanted.schedulers);
    if !left_out.is_empty() {
        progress(Progress::LeftOut(left_out));
    }
    compile(tree, object, recipe, progress)?;
    progress(Progress::Keeping);
    Ok(())
}

fn strip(object: &Path, stripped: &Path) -> Result<(), BuildError> {
    let mut strip = tool("strip");
    strip.arg("-o").arg(stripped).arg(object.join("linux"));
    run("stripping the kernel", &mut strip).map(drop)
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
    // So would whether the tree is a repository of git and stands at a tag.
    make.arg("LOCALVERSION=");
    make.arg(linking_compiler(object));
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    make
}

/// Configures the kernel; returns its configuration.
fn configure(
    tree: &Path,
    object: &Path,
    recipe: &Recipe,
    wanted: &Wanted<'_>,
) -> Result<String, BuildError> {
    let file = tree.join("Kconfig");
    let kconfig = fs::read_to_string(&file)
        .map_err(|cause| BuildError::NoTree { tree: tree.to_path_buf(), cause })?;
    let kconfig = with_hz(&kconfig, recipe.hz).ok_or(BuildError::NoVersion { file })?;
    let fragment = object.join("fragment.config");
    for (file, text) in
        [(object.join("Kconfig.hz"), kconfig), (fragment.clone(), wanted.fragment())]
    {
        fs::write(&file, text).map_err(|cause| BuildError::file("writing", &file, cause))?;
    }
    let mut command = make(tree, object, recipe);
    command.arg(format!("KCONFIG_ALLCONFIG={}", fragment.display())).arg("allnoconfig");
    run("configuring the kernel", &mut command)?;
    let file = object.join(".config");
    let text =
        fs::read_to_string(&file).map_err(|cause| BuildError::file("reading", &file, cause))?;
    check(&text, recipe.hz, wanted.settings)?;
    Ok(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_can_be_given_to_the_same_source_again() {
        let kernel = |version: &str, tree: Option<&str>| Kernel {
            binary: PathBuf::new(),
            version: version.to_string(),
            hz: crate::configuration::default_hz(),
            about: About { tree: tree.map(PathBuf::from), ..About::default() },
        };
        let debian = |series: &str| Source::Debian { kernel: series.to_string(), suite: None };
        assert!(is_of(&kernel("6.12.117", None), &debian("6.12"), None));
        assert!(!is_of(&kernel("6.12.117", None), &debian("6.1"), None));
        assert!(!is_of(&kernel("6.12.117+0a", Some("/mine")), &debian("6.12"), None));
        let (mine, path) = (Source::Tree("/mine".into()), Some(Path::new("/mine")));
        assert!(is_of(&kernel("7.3.4+0a", Some("/mine")), &mine, path));
        assert!(!is_of(&kernel("7.3.4+0a", Some("/other")), &mine, path));
        assert!(!is_of(&kernel("7.3.4", None), &mine, path));
    }
}
