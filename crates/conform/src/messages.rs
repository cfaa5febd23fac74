//! The scheduler's messages: those of the kernel beside those of ours.
//!
//! Messages are compared between one dispatch and the next, in kind and order: a kind is the text
//! without its numbers, but with the name of the queue. Those of Kyber are compared as they are.
//! What both have is their longest common subsequence.

use base::Instant;
use std::collections::BTreeMap;

/// An address that the kernel does not yet know how to hash.
const HIDDEN: &str = "(____ptrval____)";

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// When.
    pub at: Instant,
    /// How many requests had been issued before it.
    pub issues: u32,
    /// What was said.
    pub text: String,
}

/// How far messages agree.
#[derive(Clone, Debug, Default)]
pub struct MessageAgreement {
    /// What the kernel said.
    pub kernel: u64,
    /// What ours said.
    pub ours: u64,
    /// What both said, in the same order.
    pub both: u64,
    /// Kinds of which one of both said more, by how many.
    pub more: BTreeMap<String, i64>,
    /// Where both first differ: what the kernel said and what ours said between two dispatches.
    pub first: Option<(u32, Vec<String>, Vec<String>)>,
}

impl MessageAgreement {
    /// Agreement in percent of what either said.
    pub fn percent(&self) -> Option<f64> {
        let most = self.kernel.max(self.ours);
        (most > 0).then(|| self.both as f64 * 100.0 / most as f64)
    }
}

/// Compares what was said from a moment on, if the kernel said anything; both in the order of
/// dispatches. What belongs to the same dispatch as something before it is left out.
pub fn compare_since(since: Instant, kernel: &[Said], ours: &[Said]) -> Option<MessageAgreement> {
    let before = kernel.iter().take_while(|said| said.at < since).last();
    let after = |list: &[Said]| {
        before.map_or(0, |before| list.partition_point(|said| said.issues <= before.issues))
    };
    let (kernel, ours) = (&kernel[after(kernel)..], &ours[after(ours)..]);
    (!kernel.is_empty()).then(|| compare(kernel, ours))
}

/// Compares messages, both in the order of dispatches.
fn compare(kernel: &[Said], ours: &[Said]) -> MessageAgreement {
    let mut result = MessageAgreement {
        kernel: kernel.len() as u64,
        ours: ours.len() as u64,
        ..MessageAgreement::default()
    };
    let (mut from, mut other) = (0, 0);
    while from < kernel.len() || other < ours.len() {
        let heads = kernel.get(from).into_iter().chain(ours.get(other));
        let segment = heads.map(|said| said.issues).min().expect("one of both goes on");
        let length = |list: &[Said]| list.iter().take_while(|said| said.issues == segment).count();
        let theirs = &kernel[from..from + length(&kernel[from..])];
        let own = &ours[other..other + length(&ours[other..])];
        from += theirs.len();
        other += own.len();
        take_segment(&mut result, theirs, own);
    }
    result.more.retain(|_, count| *count != 0);
    result
}

fn take_segment(result: &mut MessageAgreement, kernel: &[Said], ours: &[Said]) {
    // Mostly they agree, and nobody needs to know in what.
    let mut pairs = kernel.iter().zip(ours);
    if kernel.len() == ours.len() && pairs.all(|(one, other)| say_same(one, other)) {
        result.both += kernel.len() as u64;
        return;
    }
    let kinds = |list: &[Said]| -> Vec<String> { list.iter().map(|it| kind(&it.text)).collect() };
    let (theirs, own) = (kinds(kernel), kinds(ours));
    if theirs == own {
        result.both += theirs.len() as u64;
        return;
    }
    theirs.iter().for_each(|kind| *result.more.entry(without_queue(kind)).or_insert(0) += 1);
    own.iter().for_each(|kind| *result.more.entry(without_queue(kind)).or_insert(0) -= 1);
    result.both += longest_common(&theirs, &own);
    result.first.get_or_insert_with(|| {
        let texts = |list: &[Said]| list.iter().map(|it| it.text.clone()).collect();
        (kernel.first().or(ours.first()).map_or(0, |it| it.issues), texts(kernel), texts(ours))
    });
}

/// Whether two messages are surely of one kind; addresses are not looked for.
fn say_same(one: &Said, other: &Said) -> bool {
    if counts_the_same(&one.text) {
        return one.text == other.text;
    }
    let ((name, text), (other_name, other_text)) = (parts(&one.text), parts(&other.text));
    name == other_name && without_numbers(text).eq(without_numbers(other_text))
}

/// How many elements a longest common subsequence has.
fn longest_common(one: &[String], other: &[String]) -> u64 {
    let mut row = vec![0u64; other.len() + 1];
    for left in one {
        let mut diagonal = 0;
        for (place, right) in other.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if left == right { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// A text with a `#` for every number, but for the queue's.
pub fn kind(text: &str) -> String {
    if counts_the_same(text) {
        return text.to_string();
    }
    let (name, rest) = parts(text);
    let mut kind = String::from(name);
    if !name.is_empty() {
        kind.push(' ');
    }
    kind.extend(without_numbers(rest));
    // What follows is an address, which means nothing.
    match kind.find("merging with queue") {
        Some(at) => kind[..at + "merging with queue".len()].to_string(),
        None => kind,
    }
}

/// The name of the queue that a message is about, if it is about one, and what it says.
fn parts(text: &str) -> (&str, &str) {
    let rest = text.strip_prefix("cfq").or_else(|| text.strip_prefix("bfq"));
    let (name, rest) = match rest.and_then(|rest| rest.split_once(' ')) {
        Some((name, rest)) if !name.is_empty() => (name, rest),
        _ => ("", text),
    };
    (name, rest.trim_start())
}

/// Whether a message has nothing in it that is another number with us.
fn counts_the_same(text: &str) -> bool {
    text.starts_with("kyber_")
}

/// The letters of a text, with a `#` for every number and address.
fn without_numbers(text: &str) -> impl Iterator<Item = char> + '_ {
    text.split(' ').enumerate().flat_map(|(number, word)| {
        let before = (number > 0).then_some(' ');
        let hashed = word.get(..16).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let hidden = word.get(..HIDDEN.len()).filter(|it| *it == HIDDEN);
        let address = hashed.or(hidden);
        let rest = &word[address.map_or(0, str::len)..];
        before.into_iter().chain(address.map(|_| '#')).chain(without_digits(rest))
    })
}

fn without_digits(word: &str) -> impl Iterator<Item = char> + '_ {
    let mut in_number = false;
    word.chars().filter_map(move |letter| {
        let was_in = in_number;
        in_number = letter.is_ascii_digit() || (letter == '-' && !was_in);
        match (in_number, was_in) {
            (true, true) => None,
            (true, false) => Some('#'),
            _ => Some(letter),
        }
    })
}

/// A kind without the name of the queue.
fn without_queue(kind: &str) -> String {
    let is_name = kind.starts_with(|letter: char| letter.is_ascii_digit());
    let rest = kind.split_once(' ').filter(|_| is_name).map(|(_, rest)| rest);
    rest.unwrap_or(kind).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_keeps_the_queue_and_drops_the_numbers() {
        assert_eq!(kind("cfq166SN set_slice=99975585"), "166SN set_slice=#");
        assert_eq!(kind("cfq workload slice:300000000"), "cfq workload slice:#");
        assert_eq!(kind("cfq9S  resid=-12"), "9S resid=#");
        assert_eq!(kind("cfq9S  merging with queue (____ptrval____)"), "9S merging with queue");
        assert_eq!(without_queue("166SN set_slice=#"), "set_slice=#");
    }

    #[test]
    fn messages_are_compared_between_dispatches() {
        let said = |list: &[(u32, &str)]| -> Vec<Said> {
            list.iter()
                .map(|(issues, text)| Said {
                    at: Instant::ZERO,
                    issues: *issues,
                    text: text.to_string(),
                })
                .collect()
        };
        let kernel = said(&[(0, "a"), (0, "b"), (1, "c"), (2, "a")]);
        let ours = said(&[(0, "a"), (0, "b"), (2, "c"), (2, "a")]);
        let result = compare(&kernel, &ours);
        assert_eq!((result.kernel, result.ours, result.both), (4, 4, 3));
        assert_eq!(result.first, Some((1, vec!["c".to_string()], vec![])));
        assert!(result.more.is_empty(), "c is only late: {:?}", result.more);
    }
}
