//! Running the program, and directories to run it in.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The directory of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A directory of its own for a test, removed when the test is done with it.
pub struct Directory(PathBuf);

impl Directory {
    /// A new, empty directory.
    pub fn new(test: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("paternoster-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    /// The names of what is in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program here.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(&[], arguments)
    }

    /// Runs the program here with these variables in its environment.
    pub fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = program();
        command.envs(variables.iter().copied());
        command.args(arguments).current_dir(&self.0).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs the program here, which must succeed, and returns what it prints.
    pub fn print(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program, which shows results as it does where nobody says how wide or in which letters.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
    for variable in ["COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command
}
