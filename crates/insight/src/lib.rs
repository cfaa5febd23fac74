//! Where the time went: what the events of a run say of each request and of each system call.
//!
//! Everything here reads the one stream of events, whichever world it comes from. What is known of
//! an interval is a list of *layers* that add up to it, to the nanosecond.

pub mod calls;
pub mod histogram;
pub mod intervals;
pub mod layer;
pub mod life;
pub mod phases;
pub mod recorded;
pub mod requests;
pub mod spread;
pub mod timeline;

pub use calls::{Call, Calls, Segment};
pub use layer::Layer;
pub use life::{Confidence, Life};
pub use timeline::Timeline;
