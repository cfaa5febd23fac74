//! The programs of a shell's line, each with the group and the priority that it runs in.
//!
//! Understood are commands that follow each other, `sh -c`, `echo $$ > GROUP/cgroup.procs`, and
//! prefixes of programs. Everything else a shell can do is passed over.

use crate::recording::manifest::Manifest;
use block::Ioprio;
use programs::behind_prefixes;

/// A name of a task has so many bytes.
const NAME: usize = 15;

/// A program of a command.
#[derive(Clone, Debug, Default)]
pub struct Part {
    program: String,
    /// The index of its group in the manifest.
    pub cgroup: Option<usize>,
    /// What it was started with.
    pub ioprio: Option<Ioprio>,
}

impl Part {
    /// Whether a task of this name is one of its.
    pub fn is_called(&self, name: &str) -> bool {
        name == self.program || name == self.program.get(..NAME).unwrap_or(&self.program)
    }

    fn says_something(&self) -> bool {
        self.cgroup.is_some() || self.ioprio.is_some()
    }
}

/// The programs of which a line says something, and others of the same names.
pub fn parts(line: &str, manifest: &Manifest) -> Vec<Part> {
    let mut all = Vec::new();
    take(line, Part::default(), manifest, &mut all);
    let is_like =
        |one: &Part| all.iter().any(|it| it.says_something() && it.program == one.program);
    all.iter().filter(|it| is_like(it)).cloned().collect()
}

fn take(line: &str, mut shell: Part, manifest: &Manifest, all: &mut Vec<Part>) {
    for command in commands(line) {
        if command.first().is_some_and(|it| it == "echo") {
            let path = command.last().map(|it| it.trim_start_matches('>')).unwrap_or_default();
            let group = path.strip_suffix("/cgroup.procs").or(path.strip_suffix("/tasks"));
            shell.cgroup = group.and_then(|path| manifest.cgroup(path)).or(shell.cgroup);
            continue;
        }
        let Some(behind) = behind_prefixes(&command) else { continue };
        let named = behind.cgroup.as_deref().and_then(|name| ending_in(name, manifest));
        let part = Part {
            program: behind.program,
            cgroup: named.or(shell.cgroup),
            ioprio: behind.ioprio.or(shell.ioprio),
        };
        let is_shell = matches!(part.program.as_str(), "sh" | "bash" | "dash" | "ash" | "zsh");
        match behind.arguments.iter().skip_while(|it| *it != "-c").nth(1).filter(|_| is_shell) {
            Some(line) => take(line, part, manifest, all),
            None => all.push(part),
        }
    }
}

/// The group whose path ends in what a prefix names.
fn ending_in(name: &str, manifest: &Manifest) -> Option<usize> {
    let name = name.trim_start_matches('/');
    let is_it = |path: &str| path.strip_suffix(name).is_some_and(|above| above.ends_with('/'));
    manifest.cgroups.iter().position(|group| is_it(&group.path))
}

/// The commands of a line as words without their quotes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ';' | '&' | '|' | '\n' | '(' | ')') => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    commands.push(words);
    commands
}
