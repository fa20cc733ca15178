//! `test = false` and `doctest = false` in a manifest save the build of test targets; a crate with such a line has no unit test, or no
//! example, that would never run.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources of a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("a folder of sources").map(|entry| entry.expect("an entry").path());
    let found = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// The line begins an example of a documentation comment, which rustdoc would run.
fn begins_example(line: &str) -> bool {
    let comment = line.trim_start();
    let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
    text.and_then(|text| text.trim_start().strip_prefix("```")).is_some_and(|kind| {
        kind.is_empty()
            || kind.starts_with("rust")
            || kind.starts_with("no_run")
            || kind.starts_with("should_panic")
    })
}

#[test]
fn crates_that_are_not_tested_have_nothing_to_test() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let crates = fs::read_dir(workspace.join("crates"))
        .expect("the crates")
        .map(|entry| entry.expect("an entry").path());
    let (mut without_tests, mut without_examples) = (0, 0);
    for folder in crates.chain([workspace.join("bindings/c")]) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let says = |text: &str| manifest.lines().any(|line| line == text);
        let (tests, examples) = (!says("test = false"), !says("doctest = false"));
        without_tests += usize::from(!tests);
        without_examples += usize::from(!examples);
        for path in sources(&folder.join("src")) {
            let text = fs::read_to_string(&path).expect("a source");
            let mut is_in_example = false;
            for line in text.lines() {
                assert!(
                    tests || !line.trim_start().starts_with("#[test]"),
                    "{path:?} has a test that does not run"
                );
                // The end of a block of another kind looks like the begin of one of Rust.
                let fence = line.contains("```");
                assert!(
                    examples || is_in_example || !begins_example(line),
                    "{path:?} has an example that does not run: {line}"
                );
                is_in_example ^= fence;
            }
        }
    }
    assert!(
        without_tests > 0 && without_examples > 9,
        "manifests are read: {without_tests}, {without_examples}"
    );
}
