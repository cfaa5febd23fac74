//! From the text of a job file to sections of settings: lines, comments, includes, environment
//! variables and keywords. What a setting means is not known here.
//!
//! The quirks are fio's own: a comment cuts an option line wherever `;` or `#` stands, quotes or
//! not; a section's name reaches to the last character of its line, whatever that is; every name
//! that begins with `global`, in any case, is a global section. Divergences: an include that
//! cannot be opened is an error (fio complains, stops reading the section and reports success),
//! and includes nest at most 16 deep.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{ParseError, Place};
use super::expression::evaluate;
use crate::Surroundings;

/// One option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name as written, without blanks.
    pub name: String,
    /// What stands behind `=`, with variables and keywords replaced; `None` without a `=`.
    pub value: Option<String>,
    /// Where it was written.
    pub place: Place,
}

/// A section and its settings in the order in which they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name between the brackets.
    pub name: String,
    /// Where the section begins.
    pub place: Place,
    /// Its settings, included ones in place.
    pub settings: Vec<Setting>,
    /// Where the name ends is odd, so that the user may not get the name they wanted.
    pub odd_name: bool,
}

impl Section {
    /// An empty section called `name`.
    pub fn new(name: &str, place: Place) -> Self {
        Section { name: name.to_owned(), place, settings: Vec::new(), odd_name: false }
    }

    /// Whether the section sets defaults for those below it.
    pub fn is_global(&self) -> bool {
        self.name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("global"))
    }
}

/// Includes nest at most this deep; fio stops when it runs out of file descriptors.
const DEEPEST_INCLUDE: u32 = 16;

/// Splits the text of a job file into its sections.
pub fn sections(
    path: &str,
    text: &str,
    context: &Surroundings<'_>,
) -> Result<Vec<Section>, ParseError> {
    let file: Arc<str> = path.into();
    let mut sections: Vec<Section> = Vec::new();
    for (place, line) in lines(&file, text) {
        if let Some(inner) = line.strip_prefix('[').filter(|inner| !inner.is_empty()) {
            sections.push(section(inner, place));
            continue;
        }
        let Some(current) = sections.last_mut() else {
            return Err(ParseError::new(
                &place,
                format!("'{line}' stands before the first [section]"),
            ));
        };
        let mut reader = Reader { context, settings: &mut current.settings };
        reader.line(Path::new(path), &place, line, 0)?;
    }
    Ok(sections)
}

/// The lines of `text` that say something, without comments and surrounding blanks.
fn lines<'t>(file: &Arc<str>, text: &'t str) -> impl Iterator<Item = (Place, &'t str)> {
    let file = Arc::clone(file);
    text.lines().zip(1..).filter_map(move |(line, number)| {
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| (Place::new(&file, number), line))
    })
}

/// The section that a header line opens; `inner` is the line without its first bracket.
fn section(inner: &str, place: Place) -> Section {
    let mut name = inner.to_owned();
    let last = name.pop();
    let odd_name = last != Some(']') || name.contains([']', '[']);
    Section { name, place, settings: Vec::new(), odd_name }
}

struct Reader<'a, 'c> {
    context: &'a Surroundings<'c>,
    settings: &'a mut Vec<Setting>,
}

impl Reader<'_, '_> {
    fn line(
        &mut self,
        path: &Path,
        place: &Place,
        line: &str,
        depth: u32,
    ) -> Result<(), ParseError> {
        let line = variables(line, self.context);
        let included = line
            .strip_prefix("include")
            .and_then(|rest| rest.strip_prefix([' ', '\t', '=']).or(rest.is_empty().then_some("")));
        if let Some(included) = included {
            return self.include(path, place, included.trim(), depth);
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value)),
            None => (line.trim(), None),
        };
        let value = match value {
            Some(value) => Some(keywords(value, self.context).map_err(|message| {
                ParseError::new(place, message).option(name).accepts("numbers, + - * / ( )")
            })?),
            None => None,
        };
        self.settings.push(Setting { name: name.to_owned(), value, place: place.clone() });
        Ok(())
    }

    fn include(
        &mut self,
        path: &Path,
        place: &Place,
        name: &str,
        depth: u32,
    ) -> Result<(), ParseError> {
        if depth == DEEPEST_INCLUDE {
            let message = format!("includes nest more than {DEEPEST_INCLUDE} deep");
            return Err(ParseError::new(place, message).option("include"));
        }
        let beside = path.parent().map(|directory| directory.join(name));
        let candidates = [Some(PathBuf::from(name)), beside];
        let mut failure = None;
        for candidate in candidates.into_iter().flatten() {
            match (self.context.read_file)(&candidate) {
                Ok(text) => return self.included(&candidate, &text, depth),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let reason = failure.map_or_else(String::new, |error| format!(": {error}"));
        Err(ParseError::new(place, format!("cannot open the included file '{name}'{reason}"))
            .option("include")
            .accepts("a path from the current directory or from the including file's directory"))
    }

    fn included(&mut self, path: &Path, text: &str, depth: u32) -> Result<(), ParseError> {
        let file: Arc<str> = path.to_string_lossy().into();
        for (place, line) in lines(&file, text) {
            if line.len() > 1 && line.starts_with('[') {
                return Err(ParseError::new(&place, "an included file cannot open a section"));
            }
            self.line(path, &place, line, depth + 1)?;
        }
        Ok(())
    }
}

/// `text` with every `${NAME}` replaced by the environment, by nothing where it has no such name.
/// What comes from the environment is not looked through again.
fn variables(text: &str, context: &Surroundings<'_>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((name, behind)) = behind.split_once('}') else { break };
        expanded.push_str(before);
        expanded.push_str(&(context.environment)(name).unwrap_or_default());
        rest = behind;
    }
    expanded.push_str(rest);
    expanded
}

/// `text` with its keywords replaced and, where that leaves an operator, calculated.
fn keywords(text: &str, context: &Surroundings<'_>) -> Result<String, String> {
    let mut replaced = text.to_owned();
    for name in Surroundings::KEYWORDS {
        if let Some(value) = context.keyword(name) {
            replaced = replaced.replace(&format!("${name}"), &value.to_string());
        }
    }
    if replaced == text || !replaced.contains(['+', '-', '*', '/']) {
        return Ok(replaced);
    }
    evaluate(&replaced, None)
        .map(|value| value.to_string())
        .map_err(|message| format!("a keyword makes the whole value a calculation: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn parse(text: &str) -> Result<Vec<Section>, ParseError> {
        let environment = |name: &str| match name {
            "HOME" => Some("/root".to_owned()),
            "SETTING" => Some("bs=16k".to_owned()),
            "TWICE" => Some("${HOME}".to_owned()),
            _ => None,
        };
        let read_file = |path: &Path| match path.to_str() {
            Some("d/outer.inc") => Ok("bs=64k ; a comment\ninclude inner.inc\n".to_owned()),
            Some("d/inner.inc") => Ok("rw=write\n".to_owned()),
            Some("section.inc") => Ok("[no]\n".to_owned()),
            Some("loop.inc") => Ok("include loop.inc".to_owned()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let context = Surroundings {
            page_size: 4096,
            ncpus: 2,
            mb_memory: 24_105,
            habits: &guest::Profile::uml().habits,
            mount: None,
            environment: &environment,
            read_file: &read_file,
        };
        sections("job.fio", text, &context)
    }

    /// The settings of the first section as `name=value` lines.
    fn settings(text: &str) -> String {
        let sections = parse(text).unwrap();
        let lines = sections[0].settings.iter().map(|setting| match &setting.value {
            Some(value) => format!("{}={value}", setting.name),
            None => setting.name.clone(),
        });
        lines.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_comment_cuts_a_line_wherever_it_stands() {
        let text = "# x\n[a] ; c\n ; c\n  size=1m # c\nfilename=\"a;b\"\n\n bs = 4k \n";
        assert_eq!(settings(text), "size=1m|filename=\"a|bs= 4k");
        assert_eq!(parse(text).unwrap()[0].name, "a");
    }

    #[test]
    fn a_section_name_reaches_to_the_last_character_of_its_line() {
        for (line, name, odd) in [
            ("[a]", "a", false),
            ("[ a b ]x", " a b ]", true),
            ("[a", "", true),
            ("[]", "", false),
            ("[a]]", "a]", true),
            ("[a] bs=4k", "a] bs=4", true),
        ] {
            let section = &parse(line).unwrap()[0];
            assert_eq!((section.name.as_str(), section.odd_name), (name, odd), "{line}");
        }
    }

    #[test]
    fn every_name_that_begins_with_global_is_global() {
        let sections = parse("[global]\n[globalx]\n[Global 2]\n[glob]\n").unwrap();
        let global: Vec<bool> = sections.iter().map(Section::is_global).collect();
        assert_eq!(global, [true, true, true, false]);
    }

    #[test]
    fn the_environment_is_expanded_in_the_whole_line_and_only_once() {
        assert_eq!(settings("[a]\nfilename=x${HOME}y${NONE}\n"), "filename=x/rooty");
        assert_eq!(settings("[a]\n${SETTING}\nfilename=${TWICE}\n"), "bs=16k|filename=${HOME}");
        assert_eq!(settings("[a]\nfilename=${HOME\n"), "filename=${HOME");
    }

    #[test]
    fn keywords_turn_a_value_into_a_calculation() {
        assert_eq!(settings("[a]\nsize=8*$mb_memory\nbs=$pagesize\n"), "size=192840|bs=4096");
        assert_eq!(settings("[a]\nbs=4k,$pagesize\nfilename=a$ncpus"), "bs=4k,4096|filename=a2");
        assert_eq!(settings("[a]\nsize=$ncpus^10\n"), "size=2^10");
        let error = parse("[a]\nfilename=a-$ncpus\n").unwrap_err();
        assert_eq!((error.place.line, error.option.as_deref()), (2, Some("filename")));
    }

    #[test]
    fn an_include_is_looked_for_beside_the_including_file() {
        assert_eq!(settings("[a]\ninclude d/outer.inc\nsize=1m"), "bs=64k|rw=write|size=1m");
        let sections = parse("[a]\ninclude d/outer.inc\n").unwrap();
        assert_eq!(sections[0].settings[1].place.to_string(), "d/inner.inc:1");
    }

    #[test]
    fn bad_includes_are_refused() {
        for text in ["include nope", "include", "include section.inc", "include loop.inc"] {
            assert!(parse(&format!("[a]\n{text}\n")).is_err(), "{text}");
        }
        assert_eq!(settings("[a]\nincludefoo\n"), "includefoo");
    }

    #[test]
    fn a_setting_needs_a_section() {
        let error = parse("\nbs=4k\n[a]\n").unwrap_err();
        assert_eq!(error.place.line, 2);
        assert!(parse("[\n").is_err());
        assert_eq!(parse("").unwrap(), []);
    }
}
