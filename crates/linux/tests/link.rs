//! What kernels are linked with does what the host alone would refuse.

use std::path::Path;
use std::process::Command;

use testing::needs::CC;

fn a_part_of_the_registers_is_set_whatever_the_host_has_beside() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("part_of_registers");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-O2", "-Wl,--wrap=ptrace", "-o"]).arg(&made);
    compiler.arg(here.join("ptrace.c")).arg(here.join("tests/part_of_registers.c"));
    assert!(compiler.status().unwrap().success());
    let output = Command::new(&made).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn main() -> std::process::ExitCode {
    testing::run(testing::tests![
        [CC] => a_part_of_the_registers_is_set_whatever_the_host_has_beside,
    ])
}
