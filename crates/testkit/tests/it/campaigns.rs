//! Every campaign runs for each commit and is described.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Subcommands that are no campaigns: they print or write something, or compare what is given on the command line.
const OTHERS: [&str; 5] = ["cases", "help", "list", "traffic", "verify"];

/// The subcommands, as the help lists them.
fn subcommands() -> Vec<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_paceline-testkit")).arg("help").output().expect("it starts");
    let help = String::from_utf8(help.stdout).expect("text");
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.map_while(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect("a file")
}

#[test]
fn campaigns_run_for_each_commit_and_are_described() {
    let subcommands = subcommands();
    assert!(OTHERS.iter().all(|name| subcommands.iter().any(|known| known == name)), "{subcommands:?}");
    let (checks, internals) = (read(".ci/run"), read("docs/INTERNALS.md"));
    let runs: Vec<_> = checks.lines().filter_map(|line| line.strip_prefix("campaign ")).collect();
    let section = internals.split("## Campaigns\n").nth(1).expect("a section about campaigns");
    let rows: Vec<_> = section.split("\n## ").next().into_iter().flat_map(str::lines).collect();
    for name in subcommands.iter().filter(|name| !OTHERS.contains(&name.as_str())) {
        assert!(runs.iter().any(|run| run.split(' ').next() == Some(name)), ".ci/run does not run {name}");
        let described =
            |row: &&str| row.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{name}`")));
        assert!(rows.iter().any(described), "docs/INTERNALS.md does not describe {name}");
    }
}
