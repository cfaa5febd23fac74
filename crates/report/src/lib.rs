//! Results as text, as a page, as JSON and in fio's schema.
//!
//! This crate lays out what [`lab`] has computed. It computes no number of its own beyond units
//! and rounding.

pub mod conform;
pub mod csv;
pub mod explain;
pub mod fio_json;
pub mod grid;
pub mod html;
pub mod json;
pub mod perfetto;
pub mod style;
pub mod text;

pub use grid::Grid;
pub use style::Style;
