//! What Kyber tells of itself, as messages.
//!
//! The kernel's Kyber writes no messages into a recording; it has three events of its own.
//! Recordings of the linux world have them as messages, and Kyber of the simulator says the same.

/// The events of tracefs with the message of each. Where their fields lie was observed on 6.1.192,
/// 6.12.117 and 7.3.4, in the file `format` of each: the domain at byte 12.
pub const EVENTS: [(&str, &str); 3] = [
    ("kyber/kyber_latency", "kyber_latency: {s12} {s28} p{b36} {b37}/{b38} samples={w40}"),
    ("kyber/kyber_adjust", "kyber_adjust: {s12} {w28}"),
    ("kyber/kyber_throttled", "kyber_throttled: {s12}"),
];
