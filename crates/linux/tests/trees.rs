//! Trees that cannot be built end with one message and leave nothing behind. The trees here are no
//! kernels: a makefile of a few lines stands for one, so that a build takes no time.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use base::Hz;
use linux::build::{Recipe, Source, build};
use linux::{BuildError, Cache, Kernel};
use testing::Need;

const TOOLS: Need = Need {
    name: "what builds a kernel",
    how: "apt-get install make gcc flex bison bc busybox-static",
    is_there: || cfg!(target_arch = "x86_64") && linux::build::missing_tools().is_empty(),
};

const ELEVATOR: &str = "config MQ_IOSCHED_DEADLINE\n\ttristate \"deadline\"\n";
const MAKEFILE: &str = "VERSION = 9\nPATCHLEVEL = 1\nSUBLEVEL = 0\nEXTRAVERSION =\n\
    allnoconfig:\n\tcp $(KCONFIG_ALLCONFIG) $(O)/.config; echo CONFIG_HZ=250 >> $(O)/.config\n\
    linux:\n\tcp /bin/true $(O)/linux\n";
const PARTS: [(&str, &str); 5] = [
    ("Makefile", MAKEFILE),
    ("Kconfig", "mainmenu \"Linux\"\n"),
    ("arch/um/Kconfig", ""),
    ("block/Kconfig", ""),
    ("block/Kconfig.iosched", ELEVATOR),
];

/// A place for a cache and trees.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(common::directory(name))
    }

    fn tree(&self, name: &str) -> PathBuf {
        let tree = self.0.join(name);
        for (part, text) in PARTS {
            fs::create_dir_all(tree.join(part).parent().unwrap()).unwrap();
            fs::write(tree.join(part), text).unwrap();
        }
        tree
    }

    fn cache(&self) -> Cache {
        Cache::at(&self.0.join("cache"))
    }

    fn build(&self, tree: &Path, label: Option<&str>) -> Result<Kernel, BuildError> {
        let recipe = Recipe {
            source: Source::Tree(tree.to_path_buf()),
            hz: Hz::new(250).unwrap(),
            label: label.map(str::to_string),
            configuration: Vec::new(),
            jobs: 1,
            niceness: 0,
        };
        build(&self.cache(), &recipe, &mut |_| ())
    }

    /// What is in the cache. A lock stays while somebody has it: here also what tests beside this
    /// one have just started, and the next build removes it.
    fn kept(&self) -> Vec<String> {
        let entries = fs::read_dir(self.cache().directory()).into_iter().flatten();
        let names = entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|it| !it.starts_with("lock-")).collect()
    }

    /// Asserts that a tree is refused with these words, and that nothing is left.
    fn assert_refused(&self, tree: &Path, says: &str) {
        let message = self.build(tree, Some("mine")).unwrap_err().to_string();
        assert!(message.contains(says), "{}: {message}", tree.display());
        assert_eq!(self.kept(), [""; 0], "{}", tree.display());
    }
}

fn what_is_no_tree_is_refused_for_what_it_lacks() {
    let place = Place::new("no-tree");
    let lacks = |part: &str| {
        let tree = place.tree(&format!("without-{}", part.replace('/', "-")));
        fs::remove_file(tree.join(part)).unwrap();
        tree
    };
    place.assert_refused(&lacks("block/Kconfig"), "it has no block/Kconfig; accepted: the top");
    place.assert_refused(&lacks("block/Kconfig.iosched"), "it has no block/Kconfig.iosched");
    place.assert_refused(&lacks("arch/um/Kconfig"), "it has no arch/um/Kconfig");
    place.assert_refused(&lacks("Kconfig"), "it has no Kconfig");
    place.assert_refused(&lacks("Makefile"), "is not the source tree of a kernel: No such file");
    let file = place.tree("file").join("Makefile");
    place.assert_refused(&file, "is not the source tree of a kernel: Not a directory");
    place.assert_refused(&place.0.join("nowhere"), "nowhere is not the source tree of a kernel");
    let binary = place.tree("binary");
    fs::write(binary.join("Makefile"), b"\xff\xfe").unwrap();
    place.assert_refused(&binary, "is not the source tree of a kernel: stream did not contain");
    let nameless = place.tree("nameless");
    fs::write(nameless.join("Makefile"), MAKEFILE.replace("SUBLEVEL", "LEVEL")).unwrap();
    place.assert_refused(&nameless, "not the makefile or Kconfig of a kernel that is known");
}

fn a_build_that_fails_says_why_and_leaves_nothing() {
    let place = Place::new("fails");
    let changed = |name: &str, from: &str, to: &str| {
        let tree = place.tree(name);
        fs::write(tree.join("Makefile"), MAKEFILE.replace(from, to)).unwrap();
        tree
    };
    let broken = changed("broken", "cp /bin/true", "echo 'x.c:1: error: no' >&2; false");
    place
        .assert_refused(&broken, "compiling the kernel failed (exit status: 2):\nx.c:1: error: no");
    let syntax = changed("syntax", "cp $(K", "echo 'Kconfig:3: wrong' >&2; exit 1; cp $(K");
    place.assert_refused(&syntax, "configuring the kernel failed (exit status: 2):\nKconfig:3");
    let copy = "cp $(KCONFIG_ALLCONFIG) $(O)/.config";
    let without = "grep -v TIME_TRAVEL $(KCONFIG_ALLCONFIG) > $(O)/.config";
    let timeless = changed("timeless", copy, without);
    place.assert_refused(&timeless, "missing: CONFIG_UML_TIME_TRAVEL_SUPPORT=y");
}

fn a_tree_is_one_by_whatever_path_and_is_only_read() {
    let place = Place::new("paths");
    let tree = place.tree("a tree");
    let before = files(&tree);
    let kernel = place.build(&tree, Some("mine")).unwrap();
    let link = place.0.join("link");
    std::os::unix::fs::symlink(&tree, &link).unwrap();
    assert_eq!(place.build(&link, Some("mine")).unwrap(), kernel);
    assert_eq!(files(&tree), before);
    // What git remembers of it is no part of it.
    fs::create_dir(tree.join(".git")).unwrap();
    fs::write(tree.join(".git/HEAD"), "x").unwrap();
    assert_eq!(place.build(&tree, Some("mine")).unwrap(), kernel);
}

fn a_label_goes_on_with_its_tree_and_belongs_to_no_other() {
    let place = Place::new("label");
    let (tree, other) = (place.tree("tree"), place.tree("other"));
    let first = place.build(&tree, Some("mine")).unwrap();
    fs::write(tree.join("block/new.c"), "").unwrap();
    let second = place.build(&tree, Some("mine")).unwrap();
    assert_ne!(first.version, second.version);
    assert_eq!(first.about.objects, second.about.objects, "what has not changed is not compiled");
    assert_eq!(place.cache().kernels().unwrap(), [second]);
    let kept = place.kept();
    let message = place.build(&other, Some("mine")).unwrap_err().to_string();
    assert!(message.contains("`paternoster linux remove mine` before"), "{message}");
    assert_eq!(place.kept(), kept);
}

/// The files of a tree.
fn files(tree: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(tree).unwrap().map(|it| it.unwrap().path());
    let mut all: Vec<PathBuf> =
        entries.flat_map(|it| if it.is_dir() { files(&it) } else { vec![it] }).collect();
    all.sort();
    all
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [TOOLS] => what_is_no_tree_is_refused_for_what_it_lacks,
            a_build_that_fails_says_why_and_leaves_nothing,
            a_tree_is_one_by_whatever_path_and_is_only_read,
            a_label_goes_on_with_its_tree_and_belongs_to_no_other;
    ])
}
