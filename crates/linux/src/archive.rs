//! Debian's archive: the source of a kernel that no installed package has.
//!
//! An ordinary user may ask for it: apt's lists, its cache and the package are files of a directory
//! of ours, and nothing is installed. Keys are those that this machine's apt trusts.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::BuildError;
use crate::rootfs::find_program;
use crate::tool::{run, tool};

/// How the packages with sources begin.
const PACKAGE: &str = "linux-source-";
/// The mirror that is asked when this machine's apt names none.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Debian's own keys, of all its suites.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// What apt would fetch besides, and nobody reads: translations and descriptions of programs.
const SPARE: &str = "Acquire::Languages \"none\";\n\
    Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
    Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n\
    APT::Sandbox::User \"\";\n";

/// Fetches the tarball with the source of a series or version into `directory`.
pub(crate) fn fetch(
    wanted: &str,
    suite: Option<&str>,
    directory: &Path,
) -> Result<PathBuf, BuildError> {
    if find_program("apt-get").is_none() || find_program("dpkg-deb").is_none() {
        return Err(missing(wanted, suite, ""));
    }
    let apt = Apt::at(directory, suite)?;
    run("reading the lists of Debian's archive", apt.tool("apt-get").args(["-qq", "update"]))?;
    let package = format!("{PACKAGE}{}", series(wanted));
    let version = apt.version(&package, wanted)?;
    let Some(version) = version else {
        return Err(missing(wanted, suite, &apt.others()?));
    };
    let mut download = apt.tool("apt-get");
    download.args(["-qq", "download", &format!("{package}={version}")]).current_dir(directory);
    run("fetching the source from Debian's archive", &mut download)?;
    let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("deb"));
    let file = files(directory)?.into_iter().find(is_package);
    let file = file.ok_or_else(|| missing(wanted, suite, ""))?;
    let unpacked = directory.join("package");
    let mut unpack = tool("dpkg-deb");
    unpack.arg("-x").arg(&file).arg(&unpacked);
    run("unpacking the package", &mut unpack)?;
    // It is large, and nobody reads it again.
    let _ = fs::remove_file(&file);
    Ok(unpacked.join(format!("usr/src/{package}.tar.xz")))
}

/// The series of a version: `7.3` of `7.3.4`.
fn series(wanted: &str) -> &str {
    let second = wanted.match_indices('.').nth(1);
    second.map_or(wanted, |(at, _)| &wanted[..at])
}

/// Whether a package's version is of the kernel that is wanted: `7.3.4-1~bpo13+1` is 7.3 and 7.3.4.
fn is_of(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.starts_with(['.', '-', '~', '+']))
}

fn missing(wanted: &str, suite: Option<&str>, others: &str) -> BuildError {
    let suite = suite.map_or("the configured suites".to_string(), |suite| format!("suite {suite}"));
    let others = match others {
        "" => String::new(),
        others => format!(" (there: {others})"),
    };
    BuildError::NoSource { wanted: wanted.to_string(), suite, others }
}

/// apt with files of its own.
struct Apt {
    configuration: PathBuf,
}

impl Apt {
    fn at(directory: &Path, suite: Option<&str>) -> Result<Apt, BuildError> {
        for part in ["lists/partial", "cache/archives/partial", "sources"] {
            let path = directory.join(part);
            fs::create_dir_all(&path)
                .map_err(|cause| BuildError::file("creating", &path, cause))?;
        }
        let apt = Apt { configuration: directory.join("apt.conf") };
        let at = directory.display();
        let mut text = format!("Dir::State::Lists \"{at}/lists\";\nDir::Cache \"{at}/cache\";\n");
        text.push_str(SPARE);
        if let Some(suite) = suite {
            // The machine's own sources say which mirror is near.
            write(&apt.configuration, SPARE)?;
            let sources = apt.sources_of(suite);
            write(&directory.join("sources/suite.sources"), &sources)?;
            text.push_str("Dir::Etc::SourceList \"/dev/null\";\n");
            text.push_str(&format!("Dir::Etc::SourceParts \"{at}/sources\";\n"));
        }
        write(&apt.configuration, &text)?;
        Ok(apt)
    }

    /// A program of apt that uses our files.
    fn tool(&self, name: &str) -> Command {
        let mut command = tool(name);
        command.env("APT_CONFIG", &self.configuration);
        command
    }

    /// Sources with one suite, from the mirror that this machine uses.
    fn sources_of(&self, suite: &str) -> String {
        let format = "$(REPO_URI)";
        let mut targets = self.tool("apt-get");
        targets.args(["indextargets", "--format", format, "Created-By: Packages"]);
        let uris = run("looking for a mirror", &mut targets).unwrap_or_default();
        let end = if suite.ends_with("-security") { "debian-security" } else { "debian" };
        let ours = |uri: &&str| uri.trim_end_matches('/').ends_with(&format!("/{end}"));
        let default = MIRROR.replace("debian.org/debian", &format!("debian.org/{end}"));
        let uri = uris.lines().find(ours).map_or(default, str::to_string);
        let signed = match Path::new(KEYRING).exists() {
            true => format!("Signed-By: {KEYRING}\n"),
            false => String::new(),
        };
        format!("Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n{signed}")
    }

    /// The newest version of a package that is of the kernel that is wanted.
    fn version(&self, package: &str, wanted: &str) -> Result<Option<String>, BuildError> {
        let listed =
            run("looking for the source", self.tool("apt-cache").args(["madison", package]))?;
        let versions = listed.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
        Ok(versions.filter(|version| is_of(version, wanted)).map(str::to_string).next())
    }

    /// The series whose source there is.
    fn others(&self) -> Result<String, BuildError> {
        let names = run("looking for sources", self.tool("apt-cache").args(["pkgnames", PACKAGE]))?;
        let mut series: Vec<&str> =
            names.lines().filter_map(|name| name.strip_prefix(PACKAGE)).collect();
        series.sort_unstable();
        Ok(series.join(", "))
    }
}

fn write(file: &Path, text: &str) -> Result<(), BuildError> {
    fs::write(file, text).map_err(|cause| BuildError::file("writing", file, cause))
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, BuildError> {
    fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| entry.map(|it| it.path())).collect())
        .map_err(|cause| BuildError::file("reading", directory, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_its_series() {
        assert_eq!((series("7.3"), series("7.3.4"), series("7")), ("7.3", "7.3", "7"));
        assert!(is_of("7.3.4-1~bpo13+1", "7.3") && is_of("7.3.4-1~bpo13+1", "7.3.4"));
        assert!(!is_of("7.30.1-1", "7.3") && !is_of("7.3.41-1", "7.3.4"));
    }

    #[test]
    fn what_is_missing_is_named_with_what_there_is() {
        let message = missing("9.9", Some("sid"), "6.12, 7.2").to_string();
        assert!(message.contains("linux-source-9.9") && message.contains("suite sid"), "{message}");
        assert!(message.contains("6.12, 7.2") && message.contains("--suite"), "{message}");
    }
}
