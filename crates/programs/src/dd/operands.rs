//! What was typed behind `dd`, and what dd says when it does not like it.

use machine::task::OpenFlags;

const HINT: &str = "Try 'dd --help' for more information.";
const TOO_LARGE: &str = ": Value too large for defined data type";

/// A command line of dd, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dd {
    /// `if=`.
    pub input: String,
    /// `of=`.
    pub output: String,
    pub(super) input_flags: OpenFlags,
    pub(super) output_flags: OpenFlags,
    pub(super) input_block: u64,
    pub(super) output_block: u64,
    /// `bs=` was given: what one read delivers is written by one write.
    pub(super) keeps_blocks: bool,
    pub(super) count: Option<Amount>,
    /// Bytes skipped at the start of the input.
    pub(super) skip: u64,
    /// Bytes skipped at the start of the output.
    pub(super) seek: u64,
    /// `conv=sync`: short input is padded.
    pub(super) pads: bool,
    /// What `conv=fsync` or `conv=fdatasync` makes durable in the end.
    pub(super) syncs: Syncs,
    /// The output is cut off at the place where writing begins.
    pub(super) truncates: bool,
    /// The output is made if it is not there.
    pub(super) creates: bool,
    pub(super) status: Status,
}

/// What is made durable in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syncs {
    Nothing,
    Data,
    Everything,
}

/// A number of blocks, or of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub number: u64,
    pub in_bytes: bool,
}

/// How much dd says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Full,
    None,
    NoTransfer,
    Progress,
}

/// Operands as they are met, later ones over earlier ones.
#[derive(Default)]
struct Typed {
    input: Option<String>,
    output: Option<String>,
    block: Option<u64>,
    input_block: Option<u64>,
    output_block: Option<u64>,
    count: Option<Amount>,
    skip: Option<Amount>,
    seek: Option<Amount>,
    input_flags: Vec<String>,
    output_flags: Vec<String>,
    conversions: Vec<String>,
    status: Option<Status>,
}

const INPUT_FLAGS: [&str; 14] = [
    "append",
    "count_bytes",
    "direct",
    "directory",
    "dsync",
    "fullblock",
    "noatime",
    "nocache",
    "noctty",
    "nofollow",
    "nonblock",
    "seek_bytes",
    "skip_bytes",
    "sync",
];
/// Conversions that leave the amount of data alone.
const CONVERSIONS: [&str; 13] = [
    "ascii",
    "ebcdic",
    "ibm",
    "lcase",
    "ucase",
    "swab",
    "noerror",
    "nocreat",
    "excl",
    "notrunc",
    "sync",
    "fdatasync",
    "fsync",
];
const OTHER_CONVERSIONS: [&str; 3] = ["block", "unblock", "sparse"];

impl Dd {
    /// Whether it waits until each block that it writes is durable.
    pub fn waits_for_durability(&self) -> bool {
        self.output_flags.dsync || self.output_flags.sync
    }

    /// Understands what was typed, or says what dd would say.
    pub fn parse(words: &[String]) -> Result<Dd, String> {
        let mut typed = Typed::default();
        let words = words.strip_prefix(&["--".to_string()]).unwrap_or(words);
        for word in words {
            typed.operand(word)?;
        }
        typed.check()?;
        typed.finish()
    }
}

impl Typed {
    fn operand(&mut self, word: &str) -> Result<(), String> {
        if let Some(option) = word.strip_prefix("--") {
            return Err(format!("dd: unrecognized option '--{option}'\n{HINT}"));
        }
        if let Some(option) = word.strip_prefix('-').and_then(|rest| rest.chars().next()) {
            return Err(format!("dd: invalid option -- '{option}'\n{HINT}"));
        }
        let unknown = || format!("dd: unrecognized operand {}\n{HINT}", quote(word));
        let (name, value) = word.split_once('=').ok_or_else(unknown)?;
        let list = || value.split(',').map(str::to_string).collect();
        match name {
            "if" => self.input = Some(value.to_string()),
            "of" => self.output = Some(value.to_string()),
            "bs" => self.block = Some(block(value)?),
            "ibs" => self.input_block = Some(block(value)?),
            "obs" => self.output_block = Some(block(value)?),
            "cbs" => drop(block(value)?),
            "count" => self.count = Some(amount(value)?),
            "skip" | "iseek" => self.skip = Some(amount(value)?),
            "seek" | "oseek" => self.seek = Some(amount(value)?),
            "iflag" => {
                check_list(value, &INPUT_FLAGS, "input flag")?;
                self.input_flags = list();
            }
            "oflag" => {
                let flags: Vec<&str> =
                    INPUT_FLAGS.into_iter().filter(|flag| *flag != "fullblock").collect();
                check_list(value, &flags, "output flag")?;
                self.output_flags = list();
            }
            "conv" => {
                let all: Vec<&str> = CONVERSIONS.into_iter().chain(OTHER_CONVERSIONS).collect();
                check_list(value, &all, "conversion")?;
                self.conversions = list();
            }
            "status" => {
                self.status = Some(match value {
                    "none" => Status::None,
                    "noxfer" => Status::NoTransfer,
                    "progress" => Status::Progress,
                    _ => return Err(format!("dd: invalid status level: {}\n{HINT}", quote(value))),
                });
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// What dd refuses to combine.
    fn check(&self) -> Result<(), String> {
        let has = |name: &str| self.conversions.iter().any(|conversion| conversion == name);
        let several = |names: &[&str]| names.iter().filter(|name| has(name)).count() > 1;
        let refused = |what: &str| Err(format!("dd: cannot combine {what}"));
        if several(&["ascii", "ebcdic", "ibm"]) {
            return refused("any two of {ascii,ebcdic,ibm}");
        }
        for pair in [["lcase", "ucase"], ["excl", "nocreat"]] {
            if several(&pair) {
                return refused(&pair.join(" and "));
            }
        }
        for flags in [&self.input_flags, &self.output_flags] {
            let has = |name: &str| flags.iter().any(|flag| flag == name);
            if has("direct") && has("nocache") {
                return refused("direct and nocache");
            }
        }
        for conversion in OTHER_CONVERSIONS {
            if has(conversion) {
                return Err(format!(
                    "dd: conv={conversion} is not modelled: it depends on the data; accepted: {}",
                    CONVERSIONS.join(", ")
                ));
            }
        }
        if has("excl") {
            let output = quote(self.output.as_deref().unwrap_or_default());
            return Err(format!("dd: failed to open {output}: File exists"));
        }
        Ok(())
    }

    fn finish(self) -> Result<Dd, String> {
        let input = path("if", self.input)?;
        let output = path("of", self.output)?;
        let has = |list: &[String], name: &str| list.iter().any(|item| item == name);
        let open = |flags: &[String]| OpenFlags {
            direct: has(flags, "direct"),
            dsync: has(flags, "dsync"),
            sync: has(flags, "sync"),
            append: has(flags, "append"),
        };
        let input_block = self.block.or(self.input_block).unwrap_or(512);
        let output_block = self.block.or(self.output_block).unwrap_or(512);
        let bytes = |amount: Option<Amount>, block: u64, flag: bool| match amount {
            None => 0,
            Some(amount) if amount.in_bytes || flag => amount.number,
            Some(amount) => amount.number.saturating_mul(block),
        };
        let count_bytes = has(&self.input_flags, "count_bytes");
        let syncs = match (has(&self.conversions, "fsync"), has(&self.conversions, "fdatasync")) {
            (true, _) => Syncs::Everything,
            (false, true) => Syncs::Data,
            (false, false) => Syncs::Nothing,
        };
        Ok(Dd {
            input_flags: open(&self.input_flags),
            output_flags: open(&self.output_flags),
            input_block,
            output_block,
            keeps_blocks: self.block.is_some(),
            count: self
                .count
                .map(|amount| Amount { in_bytes: amount.in_bytes || count_bytes, ..amount }),
            skip: bytes(self.skip, input_block, has(&self.input_flags, "skip_bytes")),
            seek: bytes(self.seek, output_block, has(&self.output_flags, "seek_bytes")),
            pads: has(&self.conversions, "sync"),
            syncs,
            truncates: !has(&self.conversions, "notrunc"),
            creates: !has(&self.conversions, "nocreat"),
            status: self.status.unwrap_or(Status::Full),
            input,
            output,
        })
    }
}

/// A file that can be read or written here.
fn path(operand: &str, path: Option<String>) -> Result<String, String> {
    match path {
        Some(path) => Ok(path),
        None => Err(format!(
            "dd: no {operand}=: standard input and output are not modelled; accepted: \
             {operand}=/dev/zero, /dev/null, any other path below /dev for the disk, or a file \
             below the mount point"
        )),
    }
}

fn check_list(value: &str, known: &[&str], what: &str) -> Result<(), String> {
    match value.split(',').find(|item| item.is_empty() || !known.contains(item)) {
        None => Ok(()),
        Some(item) => Err(format!("dd: invalid {what}: {}\n{HINT}", quote(item))),
    }
}

/// A name in quotes, as the C locale has them.
pub(super) fn quote(name: &str) -> String {
    format!("'{name}'")
}

fn block(text: &str) -> Result<u64, String> {
    match number(text)? {
        0 => Err(format!("dd: invalid number: {}", quote(text))),
        block if block >= i64::MAX as u64 => {
            Err(format!("dd: invalid number: {}{TOO_LARGE}", quote(text)))
        }
        block => Ok(block),
    }
}

fn amount(text: &str) -> Result<Amount, String> {
    Ok(Amount { number: number(text)?, in_bytes: text.contains('B') })
}

/// A number with suffixes, perhaps a product of two.
fn number(text: &str) -> Result<u64, String> {
    let invalid = || format!("dd: invalid number: {}", quote(text));
    let large = || format!("dd: invalid number: {}{TOO_LARGE}", quote(text));
    let (first, second) = match text.split_once('x') {
        None => (text, None),
        Some((first, second)) => (first, Some(second)),
    };
    let first = factor(first, true).ok_or_else(invalid)?;
    let second = match second {
        None => 1,
        Some(second) => factor(second, false).ok_or_else(invalid)?,
    };
    let product = first.checked_mul(second).filter(|product| *product <= i64::MAX as u128);
    product.map(|product| product as u64).ok_or_else(large)
}

/// Digits and a suffix. A B that says "bytes" may stand behind the first of two factors, or behind
/// the only one. Saturates instead of overflowing.
fn factor(text: &str, may_end_in_b: bool) -> Option<u128> {
    let text = text.trim_start_matches([' ', '\t']);
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let number = match digits {
        "" if suffix.is_empty() => return None,
        "" => 1,
        digits => digits.parse().unwrap_or(u128::from(u64::MAX) + 1),
    };
    let scale = match suffix {
        "" => 1,
        "B" if may_end_in_b && !digits.is_empty() => 1,
        "c" => 1,
        "w" => 2,
        "b" => 512,
        "cB" if may_end_in_b => 1,
        "wB" if may_end_in_b => 2,
        "bB" if may_end_in_b => 512,
        suffix => power(suffix)?,
    };
    Some(number.saturating_mul(scale))
}

/// `K`, `kB`, `MiB` and so on.
fn power(suffix: &str) -> Option<u128> {
    let mut letters = suffix.chars();
    let exponent = match letters.next()? {
        'k' | 'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        'P' => 5,
        'E' => 6,
        'Z' => 7,
        'Y' => 8,
        _ => return None,
    };
    match letters.as_str() {
        "" | "iB" => Some(1024u128.pow(exponent)),
        "B" => Some(1000u128.pow(exponent)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Dd, String> {
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        Dd::parse(&words)
    }

    fn dd(line: &str) -> Dd {
        parse(&format!("if=/dev/zero of=/dev/sda {line}")).unwrap()
    }

    #[test]
    fn numbers_are_read_as_dd_reads_them() {
        let read = |text| number(text).ok();
        let accepted = [
            ("1K", 1024),
            ("1k", 1024),
            ("1kB", 1000),
            ("1KB", 1000),
            ("1KiB", 1024),
            ("1M", 1 << 20),
            ("1b", 512),
            ("1w", 2),
            ("1bB", 512),
            ("2x3", 6),
            ("1Kx2", 2048),
            ("2xK", 2048),
            ("010", 10),
            ("+5", 5),
            (" 5", 5),
            ("5B", 5),
            ("1kBx2", 2000),
            ("2x0", 0),
            ("5Bx2", 10),
            ("K", 1024),
            ("2x1KB", 2000),
            ("9223372036854775807", i64::MAX as u64),
        ];
        for (text, value) in accepted {
            assert_eq!(read(text), Some(value), "{text}");
        }
        let refused = [
            "", "1z", "-1", "1KiBB", "1Ki", "2x3x4", "x5", "2x", "5 ", "1KB2", "1e3", "1K1K",
            "1kBB", "2x3B", "B", "xM", "1.5k", "1D", "1Q",
        ];
        for text in refused {
            assert_eq!(
                number(text).unwrap_err(),
                format!("dd: invalid number: '{text}'"),
                "{text}"
            );
        }
        for text in ["1Z", "17E", "18446744073709551616", "9223372036854775808"] {
            assert_eq!(
                number(text).unwrap_err(),
                format!("dd: invalid number: '{text}': Value too large for defined data type")
            );
        }
    }

    #[test]
    fn bad_operands_are_answered_in_the_words_of_dd() {
        let said = |line: &str| parse(line).unwrap_err();
        assert_eq!(
            said("if=/dev/zero of=/dev/sda oflags=dsync"),
            "dd: unrecognized operand 'oflags=dsync'\nTry 'dd --help' for more information."
        );
        let hinted = [
            ("foo", "dd: unrecognized operand 'foo'"),
            ("conv=foo", "dd: invalid conversion: 'foo'"),
            ("conv=sync,", "dd: invalid conversion: ''"),
            ("iflag=foo", "dd: invalid input flag: 'foo'"),
            ("oflag=direct,foo", "dd: invalid output flag: 'foo'"),
            ("oflag=fullblock", "dd: invalid output flag: 'fullblock'"),
            ("status=x", "dd: invalid status level: 'x'"),
            ("--foo", "dd: unrecognized option '--foo'"),
            ("-x", "dd: invalid option -- 'x'"),
        ];
        for (line, message) in hinted {
            assert_eq!(said(line), format!("{message}\n{HINT}"));
        }
        let plain = [
            ("bs=0", "dd: invalid number: '0'"),
            ("conv=excl,nocreat", "dd: cannot combine excl and nocreat"),
            ("conv=lcase,ucase", "dd: cannot combine lcase and ucase"),
            ("conv=ascii,ebcdic", "dd: cannot combine any two of {ascii,ebcdic,ibm}"),
            ("iflag=direct,nocache", "dd: cannot combine direct and nocache"),
            ("of=/dev/sda conv=excl", "dd: failed to open '/dev/sda': File exists"),
            (
                "bs=9223372036854775807",
                "dd: invalid number: '9223372036854775807': Value too large for defined data type",
            ),
        ];
        for (line, message) in plain {
            assert_eq!(said(line), message);
        }
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        assert!(parse("if=/dev/zero").unwrap_err().starts_with("dd: no of=: standard input"));
        assert!(parse("conv=sparse").unwrap_err().starts_with("dd: conv=sparse is not modelled"));
    }

    #[test]
    fn block_sizes_and_amounts_depend_on_each_other_as_in_dd() {
        let it = dd("bs=4k count=10 skip=2 seek=3");
        assert_eq!((it.input_block, it.output_block, it.keeps_blocks), (4096, 4096, true));
        assert_eq!((it.skip, it.seek), (8192, 12288));
        let it = dd("ibs=1k obs=2k skip=2 seek=3B count=1000B");
        assert_eq!((it.skip, it.seek, it.keeps_blocks), (2048, 3, false));
        assert_eq!(it.count, Some(Amount { number: 1000, in_bytes: true }));
        let it = dd("oflag=seek_bytes,dsync,direct seek=5 iflag=count_bytes count=7");
        assert_eq!(it.seek, 5);
        assert!(it.output_flags.direct && it.output_flags.dsync && !it.input_flags.direct);
        assert_eq!(it.count, Some(Amount { number: 7, in_bytes: true }));
    }
}
