//! What a bio, and then its request, carries for the policies (rules wbt).

/// What a bio, and then its request, is to the throttling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing.
    #[default]
    Nothing,
    /// A read, whose latency counts.
    Read,
    /// It has a slot of this class.
    Slot(Class),
}

/// Who wait for each other, and are counted together.
// Divergence: swapping, which has a class of its own, is not modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Writes.
    Write,
    /// Discards.
    Discard,
}
