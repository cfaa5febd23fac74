//! Bytes as letters (RFC 4648).

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Adds bytes, three of them as four letters.
pub(super) fn push(bytes: &[u8], out: &mut String) {
    out.reserve(bytes.len() / 3 * 4 + 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            out.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        for (bytes, letters) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            let mut out = String::new();
            push(bytes.as_bytes(), &mut out);
            assert_eq!(out, letters);
        }
    }
}
