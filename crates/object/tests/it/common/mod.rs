//! Shared code of the integration tests.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::{Path, PathBuf};

/// The committed objects, by name.
pub(crate) fn fixtures() -> Vec<PathBuf> {
    let paths = objects_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    assert!(!paths.is_empty(), "there are fixtures");
    paths
}

/// The committed objects of the examples.
pub(crate) fn examples() -> Vec<PathBuf> {
    objects_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"))
}

/// The objects of a directory, sorted by name; none if it does not exist.
pub(crate) fn objects_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "o"));
    paths.sort();
    paths
}

/// The bytes of a fixture.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Whether the test runs as root.
pub(crate) fn root() -> bool {
    std::process::Command::new("id").arg("-u").output().is_ok_and(|out| out.stdout == b"0\n")
}

/// Reports a missing requirement of a test; fails if everything is required.
pub(crate) fn skip(what: &str) {
    assert!(
        std::env::var_os("PACELINE_REQUIRE_ALL").is_none_or(|v| v != "1"),
        "{what} is required and missing"
    );
    eprintln!("SKIP: {what} is missing");
}

/// The contents of a section.
pub(crate) fn section(object: &[u8], name: &str) -> Option<Vec<u8>> {
    let file = elf::ElfBytes::<elf::endian::AnyEndian>::minimal_parse(object).expect("an ELF file");
    let header = file.section_header_by_name(name).expect("a section table")?;
    Some(file.section_data(&header).expect("its bytes").0.to_vec())
}
