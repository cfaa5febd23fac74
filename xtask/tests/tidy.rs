//! The tree is tidy, and one that is not is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether `tidy` finds nothing in a directory, and what it says.
fn tidy(root: &Path) -> (bool, String) {
    let tidy = Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidy").arg(root).output().unwrap();
    let said = String::from_utf8_lossy(&[tidy.stdout, tidy.stderr].concat()).into_owned();
    (tidy.status.success(), said)
}

#[test]
fn nothing_is_there_that_a_check_complains_about() {
    let (is_tidy, said) = tidy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    assert!(is_tidy, "{said}");
}

/// A tree with files, removed when dropped.
struct Planted(PathBuf);

impl Planted {
    fn new(name: &str, files: &[(&str, &str)]) -> Planted {
        let name = format!("tidy-{}-{}", std::process::id(), name.replace(' ', "-"));
        let planted = Planted(std::env::temp_dir().join(name));
        for (path, text) in files {
            let path = planted.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        planted
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A crate that nothing is wrong with.
const CRATE: [(&str, &str); 2] = [
    ("crates/block/Cargo.toml", "[dependencies]\nbase = \"1\"\n"),
    ("crates/block/src/lib.rs", "use base::Bytes;\n"),
];

/// A check, and a file that it complains about.
const PLANTS: [(&str, &str, &str); 12] = [
    ("unused dependency", "crates/base/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
    ("arrow up", "crates/base/Cargo.toml", "[dependencies]\nblock = \"1\"\n"),
    ("dead item", "crates/block/src/a.rs", "pub fn nobody_names_it() {}\n"),
    ("circle", "crates/block/src/a.rs", "use crate::b::B;\n"),
    ("dead link", "docs/a.md", "[b](b.md)\n"),
    ("stale table", "fidelity/results/raw.md", "`fidelity/gone.toml`\n"),
    (
        "long line",
        "crates/block/src/a.rs",
        "// This line is wider than a page, which has a hundred columns and not one column more \
         than a hundred.\n",
    ),
    ("version comparison", "crates/block/src/a.rs", "kernel.version > Version::V4_19;\n"),
    ("name of one guest", "crates/block/src/a.rs", "let name = \"jbd2/vda-8\";\n"),
    ("old word", "docs/a.md", concat!("A ", "Str", "and", " runs.\n")),
    ("comment in documentation", "crates/block/src/a.rs", "/// A disk. // measured\n"),
    ("machine path", "docs/a.md", concat!("In `/ho", "me/me`.\n")),
];

#[test]
fn each_check_refuses_what_is_planted_for_it() {
    let clean = Planted::new("clean", &CRATE);
    assert_eq!(tidy(&clean.0), (true, String::new()));
    for (check, path, text) in PLANTS {
        let mut files = CRATE.to_vec();
        files.push((path, text));
        if check == "circle" {
            files.push(("crates/block/src/b.rs", "use crate::a::A;\n"));
        }
        let planted = Planted::new(check, &files);
        let (is_tidy, said) = tidy(&planted.0);
        assert!(!is_tidy, "{check} is not found");
        assert!(said.contains(&format!(": {check}: ")), "{check}: {said}");
        let allowed = format!("[[allow]]\ncheck = \"{check}\"\nreason = \"planted\"\n");
        fs::create_dir_all(planted.0.join("xtask")).unwrap();
        fs::write(planted.0.join("xtask/tidy.toml"), allowed).unwrap();
        let (is_tidy, said) = tidy(&planted.0);
        assert!(is_tidy || !said.contains(&format!(": {check}: ")), "{check} is allowed: {said}");
    }
}
