//! dbench's load file: a line for each operation of a client.
//!
//! ```text
//! NTCreateX "\clients\client1\mixfile" 0x40 0x1 9935 NT_STATUS_OBJECT_NAME_NOT_FOUND
//! WriteX 9938 65534 1 1 NT_STATUS_OK
//! ```
//!
//! A word that names the operation, what it is done to, and the status that it had when it was
//! recorded. Names are those of Windows; `client1` in them stands for the directory of each client.
//! Empty lines, and those that begin with `#`, say nothing.

use base::nearest;
use std::collections::BTreeMap;

/// What a client does, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    pub(super) lines: Vec<Line>,
    /// Every name once, as a path below the directory of all clients.
    pub(super) names: Vec<Name>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Which line of the file it is, from 1 on.
    pub number: u32,
    pub what: Operation,
    /// Whether it went well when it was recorded.
    pub succeeds: bool,
}

/// The number of a name.
pub(super) type NameId = u32;

/// What is done to names, or to handles that `Create` has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create { name: NameId, is_directory: bool, disposition: Disposition, handle: u32 },
    Close { handle: u32 },
    Rename { from: NameId, to: NameId },
    Unlink { name: NameId },
    Rmdir { name: NameId },
    Deltree { name: NameId },
    Mkdir { name: NameId },
    QueryPath { name: NameId },
    QueryFile { handle: u32 },
    QueryFileSystem,
    SetFile { handle: u32 },
    Find { name: NameId },
    Write { handle: u32, offset: u64, length: u64 },
    Read { handle: u32, offset: u64, length: u64 },
    Lock { handle: u32 },
    Unlock { handle: u32 },
    Flush { handle: u32 },
}

/// What becomes of a file that is there, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    Open,
    Create,
    Truncate,
}

/// A path, in two parts where the number of the client stands between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    before: String,
    after: Option<String>,
}

/// The word that stands for the directory of each client.
const CLIENT: &str = "client1";

/// The operations with what stands behind them: `n` a name, `d` a number.
const OPERATIONS: [(&str, &str); 17] = [
    ("NTCreateX", "nddd"),
    ("Close", "d"),
    ("Rename", "nn"),
    ("Unlink", "nd"),
    ("Rmdir", "n"),
    ("Deltree", "n"),
    ("Mkdir", "n"),
    ("QUERY_PATH_INFORMATION", "nd"),
    ("QUERY_FILE_INFORMATION", "dd"),
    ("QUERY_FS_INFORMATION", "d"),
    ("SET_FILE_INFORMATION", "dd"),
    ("FIND_FIRST", "nddd"),
    ("WriteX", "dddd"),
    ("ReadX", "dddd"),
    ("LockX", "ddd"),
    ("UnlockX", "ddd"),
    ("Flush", "d"),
];

/// The bit of the options of `NTCreateX` that asks for a directory.
const DIRECTORY: u64 = 0x1;
/// The largest offset and length.
const MOST: u64 = 1 << 40;

impl Load {
    /// Understands a load file; what is wrong is said with the file's name and the line.
    pub fn parse(file: &str, text: &str) -> Result<Load, String> {
        let mut reader = Reader::default();
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let read = reader.line(line).map_err(|problem| format!("{file}:{number}: {problem}"));
            let (what, succeeds) = read?;
            lines.push(Line { number, what, succeeds });
        }
        match lines.is_empty() {
            true => Err(format!("{file}: no operation; accepted: lines such as {EXAMPLE}")),
            false => Ok(Load { lines, names: reader.names }),
        }
    }
}

const EXAMPLE: &str = "WriteX 9938 0 65536 65536 NT_STATUS_OK";

impl Name {
    fn new(text: &str) -> Name {
        let path = text.replace('\\', "/");
        match path.split_once(CLIENT) {
            Some((before, after)) => {
                Name { before: before.to_string(), after: Some(after.to_string()) }
            }
            None => Name { before: path, after: None },
        }
    }

    /// The path that it is for a client, below a directory.
    pub fn of(&self, directory: &str, client: u64) -> String {
        let Name { before, after } = self;
        match after {
            Some(after) => format!("{directory}{before}client{client}{after}"),
            None => format!("{directory}{before}"),
        }
    }
}

/// Reads lines, and knows the names that it has read.
#[derive(Default)]
struct Reader {
    names: Vec<Name>,
    known: BTreeMap<String, NameId>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(Operation, bool), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let known = OPERATIONS.iter().find(|(name, _)| *name == word);
        let Some((_, shape)) = known else {
            let words = OPERATIONS.map(|(name, _)| name);
            let hint = nearest(word, words);
            return Err(format!("no operation \"{word}\"{hint}; accepted: {}", words.join(", ")));
        };
        let refused = || format!("{word} \"{rest}\"; accepted: {}", synopsis(word, shape));
        let (mut names, mut numbers) = (Vec::new(), Vec::new());
        let mut left = rest.trim_start();
        for kind in shape.chars() {
            let (token, after) = token(left).ok_or_else(refused)?;
            match kind {
                'n' => names.push(self.name(token.strip_prefix('"').ok_or_else(refused)?)),
                _ => numbers.push(number(token).ok_or_else(refused)?),
            }
            left = after;
        }
        let succeeds = status(left.trim_end()).ok_or_else(refused)?;
        let what = operation(word, &names, &numbers).ok_or_else(refused)?;
        Ok((what, succeeds))
    }

    fn name(&mut self, text: &str) -> NameId {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let id = self.names.len() as NameId;
        self.names.push(Name::new(text));
        self.known.insert(text.to_string(), id);
        id
    }
}

/// The first word, that of a name with the quote that it begins with, and what is behind it.
fn token(text: &str) -> Option<(&str, &str)> {
    let (token, rest) = match text.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find('"')?;
            (&text[..=end], &quoted[end + 1..])
        }
        None => text.split_once(char::is_whitespace).unwrap_or((text, "")),
    };
    (!token.is_empty()).then(|| (token, rest.trim_start()))
}

fn number(text: &str) -> Option<u64> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.ok().filter(|it| *it <= MOST)
}

/// Whether a recorded status means that all went well.
fn status(text: &str) -> Option<bool> {
    match text.strip_prefix("NT_STATUS_") {
        Some(name) => Some(name == "OK"),
        None => number(text).filter(|_| text.starts_with("0x")).map(|code| code == 0),
    }
}

fn operation(word: &str, names: &[NameId], numbers: &[u64]) -> Option<Operation> {
    let handle = |at: usize| u32::try_from(numbers[at]).ok();
    let whole = || Some((handle(0)?, numbers[1], numbers[2]));
    Some(match word {
        "NTCreateX" => Operation::Create {
            name: names[0],
            is_directory: numbers[0] & DIRECTORY != 0,
            disposition: match numbers[1] {
                1 => Disposition::Open,
                2 | 3 => Disposition::Create,
                0 | 4 | 5 => Disposition::Truncate,
                _ => return None,
            },
            handle: handle(2)?,
        },
        "Close" => Operation::Close { handle: handle(0)? },
        "Rename" => Operation::Rename { from: names[0], to: names[1] },
        "Unlink" => Operation::Unlink { name: names[0] },
        "Rmdir" => Operation::Rmdir { name: names[0] },
        "Deltree" => Operation::Deltree { name: names[0] },
        "Mkdir" => Operation::Mkdir { name: names[0] },
        "QUERY_PATH_INFORMATION" => Operation::QueryPath { name: names[0] },
        "QUERY_FILE_INFORMATION" => Operation::QueryFile { handle: handle(0)? },
        "QUERY_FS_INFORMATION" => Operation::QueryFileSystem,
        "SET_FILE_INFORMATION" => Operation::SetFile { handle: handle(0)? },
        "FIND_FIRST" => Operation::Find { name: names[0] },
        "WriteX" => {
            whole().map(|(handle, offset, length)| Operation::Write { handle, offset, length })?
        }
        "ReadX" => {
            whole().map(|(handle, offset, length)| Operation::Read { handle, offset, length })?
        }
        "LockX" => Operation::Lock { handle: handle(0)? },
        "UnlockX" => Operation::Unlock { handle: handle(0)? },
        _ => Operation::Flush { handle: handle(0)? },
    })
}

/// How an operation is written.
fn synopsis(word: &str, shape: &str) -> String {
    let part = |kind| if kind == 'n' { "\"NAME\"" } else { "NUMBER" };
    let parts: Vec<&str> = shape.chars().map(part).collect();
    format!("{word} {} NT_STATUS_…", parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_operations_on_names_of_each_client() {
        let text = "# made up\n\nDeltree \"\\clients\\client1\" NT_STATUS_OK\n\
                    NTCreateX \"\\clients\\client1\\a b\" 0x40 0x2 9938 NT_STATUS_OK\n\
                    WriteX 9938 65534 1 1 NT_STATUS_OK\n\
                    NTCreateX \"\\clients\\client1\\a b\" 0x1 0x1 7 NT_STATUS_NO_SUCH_FILE\n";
        let Load { lines, names } = Load::parse("x", text).unwrap();
        assert_eq!(lines.iter().map(|it| it.number).collect::<Vec<_>>(), [3, 4, 5, 6]);
        let paths: Vec<String> = names.iter().map(|it| it.of("/mnt", 4)).collect();
        assert_eq!(paths, ["/mnt/clients/client4", "/mnt/clients/client4/a b"]);
        let create = |is_directory, disposition, handle| Operation::Create {
            name: 1,
            is_directory,
            disposition,
            handle,
        };
        assert_eq!(lines[1].what, create(false, Disposition::Create, 9938));
        assert_eq!(lines[2].what, Operation::Write { handle: 9938, offset: 65534, length: 1 });
        assert_eq!(lines[3].what, create(true, Disposition::Open, 7));
        assert_eq!(lines.iter().map(|it| it.succeeds).collect::<Vec<_>>()[2..], [true, false]);
    }

    #[test]
    fn what_is_wrong_is_said_with_file_and_line() {
        let refusal = |line: &str| Load::parse("load", &format!("\n{line}\n")).unwrap_err();
        let said = refusal("WriteY 1 2 3 3 NT_STATUS_OK");
        assert!(said.starts_with("load:2: no operation \"WriteY\"; nearest: \"WriteX\""), "{said}");
        for line in [
            "WriteX 1 2",
            "WriteX 1 2 x 3 NT_STATUS_OK",
            "WriteX 1 2 3 3",
            "WriteX 99999999999 2 3 3 NT_STATUS_OK",
            "Unlink clients 0x6 NT_STATUS_OK",
            "Unlink \"clients 0x6 NT_STATUS_OK",
            "NTCreateX \"x\" 0x1 0x9 4 NT_STATUS_OK",
            "Flush 1 OK",
        ] {
            let said = refusal(line);
            assert!(said.starts_with("load:2: ") && said.contains("accepted: "), "{said}");
        }
        assert!(Load::parse("load", "# nothing\n").unwrap_err().starts_with("load: no operation"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_panic(
            line in "[A-Za-z_]{0,12}( (\"[a-z\\\\é]{0,6}\"?|0x[0-9a-f]{0,20}|[0-9]{0,22})){0,6}",
        ) {
            let _ = Load::parse("x", &line);
        }

        #[test]
        fn no_operation_makes_it_panic(
            which in 0..OPERATIONS.len(),
            words in proptest::collection::vec(
                proptest::sample::select(vec!["\"\\a\"", "\"", "0x1", "7", "-1", "NT_STATUS_OK"]),
                0..7,
            ),
        ) {
            let _ = Load::parse("x", &format!("{} {}", OPERATIONS[which].0, words.join(" ")));
        }
    }
}
