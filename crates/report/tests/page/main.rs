//! The page: what is in it, that it asks for nothing, and what a browser makes of it.

mod browser;
mod driven;
mod structure;
mod synthetic;
mod whole;

fn main() -> std::process::ExitCode {
    testing::run([structure::tests(), whole::tests(), driven::tests()].concat())
}
