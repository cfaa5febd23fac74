//! Operation and flags in the letters of `blkparse`: `WS`, `RA`, `FWFSM`.

use crate::arrival::{Flags, Op};

/// What an error says it wants.
pub(crate) const ACCEPTED: &str = "[F]R|W|D|N[F][A][S][M], as R, RA, WS or FWS";

/// What `text` says: an operation (`None` for `N`, nothing) and its flags.
pub(crate) fn parse(text: &str) -> Option<(Option<Op>, Flags)> {
    let mut letters = text.chars().peekable();
    let preflush = letters.next_if_eq(&'F').is_some();
    let op = match letters.next()? {
        'R' => Some(Op::Read),
        'W' => Some(Op::Write),
        'D' => Some(Op::Discard),
        'N' => None,
        _ => return None,
    };
    let flags = Flags {
        preflush,
        fua: letters.next_if_eq(&'F').is_some(),
        readahead: letters.next_if_eq(&'A').is_some(),
        sync: letters.next_if_eq(&'S').is_some(),
        metadata: letters.next_if_eq(&'M').is_some(),
    };
    letters.next().is_none().then_some((op, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_f_before_the_direction_is_a_flush_and_behind_it_fua() {
        let none = Flags::default();
        assert_eq!(parse("R"), Some((Some(Op::Read), none)));
        let ahead = Flags { readahead: true, ..none };
        assert_eq!(parse("RA"), Some((Some(Op::Read), ahead)));
        let both = Flags { preflush: true, fua: true, sync: true, ..none };
        assert_eq!(parse("FWFS"), Some((Some(Op::Write), both)));
        assert_eq!(parse("FN"), Some((None, Flags { preflush: true, ..none })));
        for wrong in ["", "F", "S", "r", "RW", "WMS", "R "] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
