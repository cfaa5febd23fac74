//! The program from the outside: what it prints, writes and refuses.

mod bad_input;
mod compare;
mod directory;
mod documents;
mod explain;
mod linux;

fn main() -> std::process::ExitCode {
    let parts = [
        bad_input::tests(),
        compare::tests(),
        documents::tests(),
        explain::tests(),
        linux::tests(),
    ];
    testing::run(parts.concat())
}
