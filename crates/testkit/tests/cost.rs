//! Verification and compilation take time and memory in proportion to what they count, on programs made to take much.

use std::process::Command;

#[test]
fn nothing_takes_more_than_what_is_counted_explains() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline-testkit"));
    // Large enough for what grows as a power of the size, small enough for a debug build.
    command.args(["cost", "--divide", "2", "--budget", "200000"]);
    let output = command.output().unwrap();
    let (table, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}{errors}");
    assert!(table.contains("call_layers"), "{table}");
}
