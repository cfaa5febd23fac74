//! A profile: everything that was seen of one guest, or is assumed where nothing was.

use crate::boot::{Boot, BootMemory, Files};
use crate::habits::{
    FioHabits, Habits, HelperHabits, OwnFiles, ProcessHabits, ShellHabits, SysbenchHabits,
};
use params::{Document, Error, Format, Parameter, Section, Table};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The profiles that are built in.
const BUILT_IN: [(&str, &str); 4] = [
    (NEUTRAL, include_str!("../../../guests/neutral.toml")),
    ("uml-6.1", include_str!("../../../guests/uml-6.1.toml")),
    (UML, include_str!("../../../guests/uml-6.12.toml")),
    ("uml-7.3", include_str!("../../../guests/uml-7.3.toml")),
];
const NEUTRAL: &str = "neutral";
const UML: &str = "uml-6.12";

/// `like` names the built-in profile that holds where a file says nothing; `kernel` the series of
/// kernels with which it stands for that one.
const FORMAT: Format = Format {
    what: "guest",
    heads: &[("title", true), ("like", false), ("kernel", false)],
    is_dated: true,
};
const SCHEMA: [&Section; 9] = [
    &Boot::SECTION,
    &BootMemory::SECTION,
    &Files::SECTION,
    &FioHabits::SECTION,
    &HelperHabits::SECTION,
    &ProcessHabits::SECTION,
    &ShellHabits::SECTION,
    &OwnFiles::SECTION,
    &SysbenchHabits::SECTION,
];

/// Facts of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name, or the path of its file.
    pub name: String,
    /// What it is, in one line.
    pub title: String,
    /// The profile of which it states the differences; empty: none.
    like: String,
    /// The series of kernels with which it stands for that one.
    kernel: String,
    /// How it is booted.
    pub boot: Boot,
    /// What boot and programs leave in memory.
    pub memory: BootMemory,
    /// What its file systems do beside their rules.
    pub files: Files,
    /// What programs do beside their system calls.
    pub habits: Habits,
    parameters: Vec<Parameter>,
}

impl Profile {
    /// The names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The profile of a machine of which nothing is known.
    pub fn neutral() -> &'static Arc<Profile> {
        built_in(NEUTRAL).expect("it is built in")
    }

    /// The guest of the world `linux`.
    pub fn uml() -> &'static Arc<Profile> {
        built_in(UML).expect("it is built in")
    }

    /// A built-in profile by its name, or the one in the file if it looks like a path. A path is
    /// one from `directory` on.
    ///
    /// # Errors
    ///
    /// There is none of this name, or the file is not as it must be.
    pub fn find(name_or_path: &str, directory: &Path) -> Result<Arc<Profile>, Error> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            let path = directory.join(name_or_path);
            let text = params::read(&path)?;
            return Profile::parse(&path.display().to_string(), &text).map(Arc::new);
        }
        let unknown = || Error::unknown("guest", name_or_path, Profile::names());
        built_in(name_or_path).cloned().ok_or_else(unknown)
    }

    /// The profile of the same guest with another kernel, named by its series.
    pub fn with_kernel(self: &Arc<Profile>, series: &str) -> Arc<Profile> {
        let mut others = built_ins().iter();
        let found = others.find(|it| it.like == self.name && it.kernel == series);
        found.unwrap_or(self).clone()
    }

    /// A profile from the text of a file; `name` stands for it in messages.
    ///
    /// # Errors
    ///
    /// The first thing in the file that is not as it must be.
    pub fn parse(name: &str, text: &str) -> Result<Profile, Error> {
        let document = Document::parse(&FORMAT, name, text)?;
        let (table, parameters) = checked(&document)?;
        Files::check(&table)?;
        Ok(Profile {
            name: name.to_string(),
            title: document.head("title").to_string(),
            like: document.head("like").to_string(),
            kernel: document.head("kernel").to_string(),
            boot: Boot::read(&table),
            memory: BootMemory::read(&table),
            files: Files::read(&table),
            habits: Habits::read(&table),
            parameters,
        })
    }

    /// Everything the file states, in its order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
}

/// What a file states, and what the one states that it is like.
fn checked(document: &Document<'_>) -> Result<(Table, Vec<Parameter>), Error> {
    let like = document.head("like");
    if like.is_empty() {
        return document.check(&SCHEMA, "a guest");
    }
    let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == like) else {
        let hint = base::nearest(like, Profile::names());
        let accepted = format!("one of {}", Profile::names().collect::<Vec<_>>().join(", "));
        return Err(document.refuse_head(
            "like",
            format!("unknown guest \"{like}\"{hint}"),
            accepted,
        ));
    };
    let other = Document::parse(&FORMAT, name, text)?;
    document.check_over(other.check(&SCHEMA, "a guest")?, &SCHEMA, "a guest")
}

fn built_in(name: &str) -> Option<&'static Arc<Profile>> {
    built_ins().iter().find(|it| it.name == name)
}

fn built_ins() -> &'static [Arc<Profile>] {
    static PROFILES: LazyLock<Vec<Arc<Profile>>> = LazyLock::new(|| {
        let parse = |(name, text): (&str, &str)| Profile::parse(name, text);
        let parsed = BUILT_IN.map(|it| parse(it).expect("the built-in profiles are well formed"));
        parsed.into_iter().map(Arc::new).collect()
    });
    &PROFILES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_loads_and_says_when_each_fact_was_seen() {
        for name in Profile::names() {
            let profile = Profile::find(name, Path::new("")).unwrap();
            assert!(profile.parameters().iter().all(|it| !it.date.is_empty()), "{name}");
        }
    }

    #[test]
    fn nothing_of_one_guest_is_measured_in_the_neutral_profile() {
        let neutral = Profile::neutral();
        let sources = neutral.parameters().iter().map(|it| it.source.as_str());
        assert!(sources.clone().all(|it| matches!(it, "assumed" | "derived")), "{neutral:?}");
        assert_eq!(neutral.parameters().len(), Profile::uml().parameters().len());
    }

    #[test]
    fn a_profile_may_state_what_differs_with_another_kernel() {
        let uml = Profile::uml();
        let newer = uml.with_kernel("7.3");
        assert_eq!(newer.name, "uml-7.3");
        assert_eq!(newer.parameters().len(), uml.parameters().len());
        assert_eq!(newer.habits.fio.helper, uml.habits.fio.helper);
        assert_ne!(newer.memory, uml.memory);
        assert_eq!(uml.with_kernel("6.12").name, "uml-6.12");
        let older = uml.with_kernel("6.1");
        assert!(older.habits.fio.process.is_disturbed && !uml.habits.fio.process.is_disturbed);
        assert_eq!(Profile::neutral().with_kernel("7.3").name, "neutral");
        let text = "title = \"x\"\nlike = \"uml-7\"\n";
        let error = Profile::parse("x.toml", text).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:2: unknown guest \"uml-7\"; nearest: "), "{error}");
    }

    #[test]
    fn rooms_that_no_piece_has_are_refused() {
        let (_, text) = BUILT_IN[0];
        for bad in ["[[40, 15, 0, 0]]", "[[40, 0.5, 0, 0]]", "[[-1, 0, 0, 0]]"] {
            let text = text.replacen("[[0, 0, 0, 0]]", bad, 1);
            let error = Profile::parse("x.toml", &text).unwrap_err().to_string();
            assert!(error.contains("14 nodes at most"), "{error}");
        }
    }

    #[test]
    fn a_fact_without_a_date_is_refused_with_its_place() {
        let (_, text) = BUILT_IN[0];
        let without = text.replacen(", date = ", ", day = ", 1);
        let error = Profile::parse("x.toml", &without).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:"), "{error}");
        assert!(error.contains("unknown field \"day\""), "{error}");
        let error = Profile::find("uml-6.13", Path::new("")).unwrap_err().to_string();
        let known = "built-in guests: neutral, uml-6.1, uml-6.12, uml-7.3";
        let nearest = "nearest: \"uml-6.1\", \"uml-6.12\", \"uml-7.3\"";
        assert_eq!(error, format!("unknown guest \"uml-6.13\"; {nearest}; {known}"));
    }
}
