//! What Kyber tells of itself, as messages.
//!
//! The kernel's Kyber writes no messages into a recording; it has events of its own. Recordings of
//! the linux world have two of them as messages, and Kyber of the simulator says the same.
//!
//! Left out is kyber_throttled, which comes in the midst of a choice: the clock is read for it, and
//! there an interrupt may end a request before the next choice (observed on 7.3.4).

/// The events of tracefs with the message of each. Where their fields lie was observed on 6.1.192,
/// 6.12.117 and 7.3.4, in the file `format` of each: the domain at byte 12.
pub const EVENTS: [(&str, &str); 2] = [
    ("kyber/kyber_latency", "kyber_latency: {s12} {s28} p{b36} {b37}/{b38} samples={w40}"),
    ("kyber/kyber_adjust", "kyber_adjust: {s12} {w28}"),
];
