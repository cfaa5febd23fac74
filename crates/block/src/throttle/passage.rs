//! What a bio carries for the limits of its control group (rules throttle).

/// How far a bio has come with the limits of its control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Nobody has looked at it.
    #[default]
    New,
    /// It is the rest of one that was split: its bytes do not count again.
    Paid,
    /// It has waited, and goes on.
    Through,
}
