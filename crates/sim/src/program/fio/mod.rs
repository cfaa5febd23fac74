//! fio.
mod context;
mod error;
mod expression;
pub mod options;
pub mod source;
pub mod value;
pub use context::Context;
pub use error::{ParseError, Place};
