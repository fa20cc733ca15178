//! Time and memory of verification and compilation are proportional to the counted units, on expensive programs.

use std::process::Command;

#[test]
fn nothing_takes_more_than_what_is_counted_explains() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paceline-testkit"));
    // Large enough to show superlinear growth, small enough for a debug build.
    command.args(["cost", "--divide", "4", "--budget", "200000"]);
    let output = command.output().unwrap();
    let (table, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{table}{errors}");
    assert!(table.contains("call_layers"), "{table}");
}
