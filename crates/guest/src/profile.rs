//! A profile: everything that was seen of one guest, or is assumed where nothing was.

use crate::boot::{Boot, BootMemory, Files};
use crate::habits::{
    FioHabits, Habits, HelperHabits, OwnFiles, ProcessHabits, ShellHabits, SysbenchHabits,
};
use params::{Document, Error, Format, Parameter, Section};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The profiles that are built in.
const BUILT_IN: [(&str, &str); 2] = [
    (NEUTRAL, include_str!("../../../guests/neutral.toml")),
    (UML, include_str!("../../../guests/uml-6.12.toml")),
];
const NEUTRAL: &str = "neutral";
const UML: &str = "uml-6.12";

const FORMAT: Format = Format { what: "guest", heads: &[("title", true)], is_dated: true };
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
        static PROFILE: LazyLock<Arc<Profile>> = LazyLock::new(|| built_in(NEUTRAL));
        &PROFILE
    }

    /// The guest of the world `linux`.
    pub fn uml() -> &'static Arc<Profile> {
        static PROFILE: LazyLock<Arc<Profile>> = LazyLock::new(|| built_in(UML));
        &PROFILE
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
        match name_or_path {
            NEUTRAL => Ok(Profile::neutral().clone()),
            UML => Ok(Profile::uml().clone()),
            _ => Err(Error::unknown("guest", name_or_path, Profile::names())),
        }
    }

    /// A profile from the text of a file; `name` stands for it in messages.
    ///
    /// # Errors
    ///
    /// The first thing in the file that is not as it must be.
    pub fn parse(name: &str, text: &str) -> Result<Profile, Error> {
        let document = Document::parse(&FORMAT, name, text)?;
        let (table, parameters) = document.check(&SCHEMA, "a guest")?;
        Ok(Profile {
            name: name.to_string(),
            title: document.head("title").to_string(),
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

fn built_in(name: &str) -> Arc<Profile> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name).expect("it is built in");
    Arc::new(Profile::parse(name, text).expect("the built-in profiles are well formed"))
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
    fn a_fact_without_a_date_is_refused_with_its_place() {
        let (_, text) = BUILT_IN[0];
        let without = text.replacen(", date = ", ", day = ", 1);
        let error = Profile::parse("x.toml", &without).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:"), "{error}");
        assert!(error.contains("unknown field \"day\""), "{error}");
        let error = Profile::find("uml-6.13", Path::new("")).unwrap_err().to_string();
        let known = "built-in guests: neutral, uml-6.12";
        assert_eq!(error, format!("unknown guest \"uml-6.13\"; nearest: \"uml-6.12\"; {known}"));
    }
}
