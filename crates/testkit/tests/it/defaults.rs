//! No value that is missing becomes a default without a reason.
//!
//! Where a missing value is impossible, a default hides the bug: a program computes something else, a packet is lost. Sources of the
//! engine therefore return errors, or say why a default is right: `// default: REASON` in the line, or a few lines before it.

use std::path::{Path, PathBuf};

/// Crates whose sources are read.
const CRATES: [&str; 2] = ["engine", "runtime"];

/// What gives a default, or drops a result.
const WITHOUT_A_SOUND: [&str; 3] = ["unwrap_or_default(", "unwrap_or(", "let _ ="];

/// Lines before one in which its reason may be.
const BEFORE: usize = 4;

#[test]
fn defaults_have_a_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files: Vec<PathBuf> =
        CRATES.iter().flat_map(|name| files_below(&crates.join(name).join("src"))).collect();
    assert!(files.len() > 100, "{} files", files.len());
    let without: Vec<String> = files.iter().flat_map(|file| without_reason(file)).collect();
    assert!(without.is_empty(), "no `// default: REASON`:\n{}", without.join("\n"));
}

/// The sources in a folder; files of tests are left out.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_source =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs");
    folders.iter().flat_map(|folder| files_below(folder)).chain(files.into_iter().filter(is_source)).collect()
}

/// The lines of a file that give a default without a reason. The tests of a file are its end.
fn without_reason(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("a source");
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().expect("a first part");
    let lines: Vec<&str> = code.lines().collect();
    let is_silent = |line: &str| {
        let code = line.split("//").next().expect("a first part");
        WITHOUT_A_SOUND.iter().any(|silent| code.contains(silent))
    };
    let has_reason =
        |at: usize| lines[at.saturating_sub(BEFORE)..=at].iter().any(|line| line.contains("// default: "));
    let found = (0..lines.len()).filter(|&at| is_silent(lines[at]) && !has_reason(at));
    found.map(|at| format!("{}:{}: {}", file.display(), at + 1, lines[at].trim())).collect()
}
