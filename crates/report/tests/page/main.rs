//! The page: what is in it, that it asks for nothing, and what a browser makes of it.

mod browser;
mod driven;
mod structure;
mod synthetic;

fn main() -> std::process::ExitCode {
    testing::run([structure::tests(), driven::tests()].concat())
}
