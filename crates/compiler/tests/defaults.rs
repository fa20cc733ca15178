//! No default takes the place of what the compiler rules out: that would be wrong code without a sound.
//!
//! `unwrap_or` and its like, and results that are dropped, each need a reason in a comment on their line, or above it: `// default: why`.

use std::path::Path;

const PATTERNS: [&str; 4] = [".unwrap_or(", ".unwrap_or_default(", ".unwrap_or_else(", "let _ ="];
const REASON: &str = "// default: ";

#[test]
fn each_default_has_a_reason() {
    let mut found = Vec::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert!(found.is_empty(), "no `{REASON}`:\n{}", found.join("\n"));
}

fn read(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        // Random functions are for campaigns; in text, words and characters that are not there are empty.
        match path.is_dir() {
            true if path.ends_with("random") || path.ends_with("ir/text") => {}
            true => read(&path, found),
            false if path.ends_with("tests.rs") => {}
            false => check(&path, &std::fs::read_to_string(&path).expect("a source"), found),
        }
    }
}

fn check(path: &Path, text: &str, found: &mut Vec<String>) {
    let code = text.split("#[cfg(test)]\nmod ").next().expect("code");
    let mut reason = false;
    for (number, line) in (1..).zip(code.lines()) {
        reason |= line.contains(REASON);
        let is_comment = line.trim_start().starts_with("//");
        if !is_comment && !reason && PATTERNS.iter().any(|pattern| line.contains(pattern)) {
            found.push(format!("{}:{number}: {}", path.display(), line.trim()));
        }
        // A reason holds up to the end of the statement.
        reason &= is_comment || !line.trim_end().ends_with([';', '{', '}', ',']);
    }
}
