//! Checks that the output in the README and in the verifier's page is the command's output.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, has_libpcap};

const README: &str = include_str!("../../../../README.md");
const VERIFIER: &str = include_str!("../../../../docs/VERIFIER.md");

/// The commands of the console blocks, with what they print.
fn transcripts() -> Vec<(&'static str, Vec<&'static str>)> {
    let pages = [README, VERIFIER].into_iter();
    let blocks =
        pages.flat_map(|page| page.split("```console\n").skip(1)).filter_map(|rest| rest.split("```").next());
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some((_, output))) => output.push(line),
            (None, None) => panic!("output without a command: {line}"),
        }
    }
    found
}

/// A line without the time that a run took.
fn timeless(line: &str) -> &str {
    [", in ", " failed in "].iter().find_map(|start| line.find(start)).map_or(line, |at| &line[..at])
}

#[test]
fn the_transcripts_are_true() {
    let transcripts = transcripts();
    assert!(!transcripts.is_empty());
    let folder = Folder::new();
    for part in ["examples", "crates"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        symlink(root.join(part), folder.path(part)).unwrap();
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_paceline")).parent().unwrap().display();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let (of_filter, others): (Vec<_>, Vec<_>) =
        transcripts.into_iter().partition(|(command, _)| command.starts_with("paceline filter"));
    let of_filter = if has_libpcap("the_transcripts_are_true") { of_filter } else { Vec::new() };
    for (command, expected) in others.into_iter().chain(of_filter) {
        let script = format!("exec 2>&1; {command}");
        let output =
            Command::new("sh").args(["-c", &script]).env("PATH", &path).current_dir(folder.path("")).output();
        let printed = String::from_utf8(output.unwrap().stdout).unwrap();
        let printed: Vec<_> = printed.lines().map(timeless).collect();
        let expected: Vec<_> = expected.into_iter().map(timeless).collect();
        assert_eq!(printed, expected, "{command}");
    }
}
