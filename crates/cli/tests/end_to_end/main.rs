//! The program from the outside: what it prints, writes and refuses.

mod bad_input;
mod compare;
mod directory;
mod documents;
mod linux;
