//! The words behind small programs, and their own refusals.

use super::Deed;

/// The words of a command.
pub(super) struct Words<'w> {
    pub words: &'w [String],
}

/// Options without and with a value, and what is left.
struct Sorted {
    flags: Vec<char>,
    values: Vec<(char, String)>,
    paths: Vec<String>,
}

type Parsed = Result<(Deed, Vec<String>), String>;

impl Words<'_> {
    pub fn touch(self) -> Parsed {
        let sorted = self.sort("", "", &[])?;
        Ok((Deed::Touch, sorted.paths("missing file operand")?))
    }

    pub fn mkdir(self) -> Parsed {
        let sorted = self.sort("pv", "", &[("parents", 'p')])?;
        let parents = sorted.flags.contains(&'p');
        Ok((Deed::Mkdir { parents }, sorted.paths("missing operand")?))
    }

    pub fn mv(self) -> Parsed {
        let sorted = self.sort("fv", "", &[("force", 'f')])?;
        match sorted.paths("missing file operand")?.as_slice() {
            [only] => Err(format!("missing destination file operand after '{only}'")),
            paths => Ok((Deed::Move, paths.to_vec())),
        }
    }

    pub fn rm(self) -> Parsed {
        let sorted = self.sort("rRfv", "", &[("recursive", 'r'), ("force", 'f')])?;
        let recursive = sorted.flags.iter().any(|it| matches!(it, 'r' | 'R'));
        let force = sorted.flags.contains(&'f');
        Ok((Deed::Remove { recursive, force }, sorted.paths("missing operand")?))
    }

    pub fn rmdir(self) -> Parsed {
        Ok((Deed::RemoveDirectory, self.sort("v", "", &[])?.paths("missing operand")?))
    }

    pub fn ls(self) -> Parsed {
        let sorted = self.sort("lai1A", "", &[("all", 'a')])?;
        let accepted =
            "no path; accepted: ls [-l] /mnt, for programs run in a directory of their own";
        Ok((Deed::List, sorted.paths(accepted)?))
    }

    pub fn stat(self) -> Parsed {
        Ok((Deed::Stat, self.sort("", "", &[])?.paths("missing operand")?))
    }

    pub fn truncate(self) -> Parsed {
        let sorted = self.sort("", "s", &[("size", 's')])?;
        let Some((_, size)) = sorted.values.last().cloned() else {
            return Err("you must specify either '--size' or '--reference'".to_string());
        };
        let paths = sorted.paths("missing file operand")?;
        let refuse = || format!("Invalid number: '{size}'; accepted: 4096, 4K, 1M, 1G, 4KB");
        Ok((Deed::Truncate { size: bytes(&size).ok_or_else(refuse)? }, paths))
    }

    pub fn fallocate(self) -> Parsed {
        let sorted = self.sort("n", "l", &[("length", 'l'), ("keep-size", 'n')])?;
        let Some((_, length)) = sorted.values.last().cloned() else {
            return Err("no length argument specified".to_string());
        };
        let keeps_size = sorted.flags.contains(&'n');
        let length = bytes(&length).filter(|it| *it > 0);
        let length = length.ok_or("invalid length value specified")?;
        Ok((Deed::Fallocate { length, keeps_size }, sorted.paths("no filename specified")?))
    }

    /// Tells options from paths: flags, options with a value, and long names of both.
    fn sort(&self, flags: &str, valued: &str, long: &[(&str, char)]) -> Result<Sorted, String> {
        let mut sorted = Sorted { flags: Vec::new(), values: Vec::new(), paths: Vec::new() };
        let mut words = self.words.iter();
        let mut only_paths = false;
        while let Some(word) = words.next() {
            if only_paths || !word.starts_with('-') || word == "-" {
                sorted.paths.push(word.clone());
            } else if word == "--" {
                only_paths = true;
            } else if let Some(rest) = word.strip_prefix("--") {
                let (name, value) =
                    rest.split_once('=').map_or((rest, None), |it| (it.0, Some(it.1)));
                let known = long.iter().find(|(known, _)| *known == name);
                let Some((_, letter)) = known else {
                    return Err(format!("unrecognized option '--{name}'"));
                };
                match valued.contains(*letter) {
                    false => sorted.flags.push(*letter),
                    true => {
                        let value = value.map(str::to_string).or_else(|| words.next().cloned());
                        let missing = || format!("option '--{name}' requires an argument");
                        sorted.values.push((*letter, value.ok_or_else(missing)?));
                    }
                }
            } else {
                sorted.letters(&word[1..], flags, valued, &mut words)?;
            }
        }
        Ok(sorted)
    }
}

impl Sorted {
    fn letters<'w>(
        &mut self,
        letters: &str,
        flags: &str,
        valued: &str,
        words: &mut impl Iterator<Item = &'w String>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            if valued.contains(letter) {
                let rest = &letters[at + letter.len_utf8()..];
                let value = if rest.is_empty() { words.next().cloned() } else { Some(rest.into()) };
                let missing = || format!("option requires an argument -- '{letter}'");
                self.values.push((letter, value.ok_or_else(missing)?));
                return Ok(());
            }
            if !flags.contains(letter) {
                return Err(format!("invalid option -- '{letter}'"));
            }
            self.flags.push(letter);
        }
        Ok(())
    }

    fn paths(self, missing: &str) -> Result<Vec<String>, String> {
        if self.paths.is_empty() { Err(missing.to_string()) } else { Ok(self.paths) }
    }
}

/// `4096`, `4K` and `4KiB` (1024), `4KB` (1000).
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = &text[digits..];
    let Some(letter) = unit.chars().next() else { return Some(number) };
    let power = 1 + "KMGTPE".find(letter.to_ascii_uppercase())? as u32;
    let base: u64 = match &unit[letter.len_utf8()..] {
        "" | "iB" => 1024,
        "B" => 1000,
        _ => return None,
    };
    number.checked_mul(base.checked_pow(power)?).filter(|it| *it <= i64::MAX as u64)
}
