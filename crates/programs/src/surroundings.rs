//! What a job file may ask about the machine it is parsed for.

use std::io;
use std::path::Path;

use guest::Habits;
use machine::Mount;

/// The surroundings of a job: the simulated host for the keywords, and the user's own surroundings
/// for `${VARIABLES}` and files. The parser reaches for nothing else.
pub struct Surroundings<'a> {
    /// `$pagesize`, in bytes.
    pub page_size: u64,
    /// `$ncpus`: cores of the host.
    pub ncpus: u32,
    /// `$mb_memory`: memory of the host in MiB.
    pub mb_memory: u64,
    /// The file system that is mounted, if one is: names that are not below `/dev` are files there.
    pub mount: Option<&'a Mount>,
    /// What was seen of programs besides what they are asked for.
    pub habits: &'a Habits,
    /// Looks up an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a job file or an included file.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<String>,
}

impl Surroundings<'_> {
    /// The value of a keyword, without its `$`.
    pub fn keyword(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => Some(self.page_size),
            "mb_memory" => Some(self.mb_memory),
            "ncpus" => Some(u64::from(self.ncpus)),
            _ => None,
        }
    }

    /// The full name of a file that is named from where programs begin: where the file system is
    /// mounted. Without one, names stay as they are.
    pub fn placed(&self, name: &str) -> String {
        let Some(mount) = self.mount.filter(|_| !name.starts_with('/')) else {
            return name.to_string();
        };
        match name.trim_start_matches("./") {
            "." | "" => mount.point.clone(),
            relative => format!("{}/{relative}", mount.point),
        }
    }

    /// The keywords that [`Surroundings::keyword`] knows.
    pub const KEYWORDS: [&'static str; 3] = ["pagesize", "mb_memory", "ncpus"];
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings")
            .field("page_size", &self.page_size)
            .field("ncpus", &self.ncpus)
            .field("mb_memory", &self.mb_memory)
            .finish_non_exhaustive()
    }
}
