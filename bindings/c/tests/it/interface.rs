//! The sources, the header, the list of symbols and the dynamic library agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::library::{LIBRARY, c};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Rust files of the library, by their names.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = fs::read_dir(folder).expect("the sources are there");
    let name = |file: fs::DirEntry| file.file_name().to_string_lossy().into_owned();
    let names = files.map(|file| name(file.expect("the folder can be read")));
    names.map(|name| (name.clone(), read(&format!("src/{name}")))).collect()
}

/// The words that stand before `(` after a marker.
fn functions<'a>(text: &'a str, marker: &str) -> BTreeSet<&'a str> {
    let name = |rest: &'a str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
    text.split(marker).skip(1).filter_map(name).collect()
}

/// `bindings/c/header.sh` makes both files anew.
#[test]
fn header_and_symbols_have_every_function() {
    let sources = sources();
    let all: String = sources.iter().map(|(_, text)| text.as_str()).collect();
    let exported = functions(&all, "pub extern \"C\" fn ");
    assert!(exported.len() > 80, "{exported:?}");
    let symbols = read("symbols.txt");
    let symbols: BTreeSet<&str> = symbols.lines().collect();
    assert_eq!(symbols, exported, "symbols.txt and the sources differ");
    let header = read("include/paceline.h");
    let declared = |name: &str| header.contains(&format!("{name}("));
    let missing: Vec<_> = exported.iter().filter(|name| !declared(name)).collect();
    assert!(missing.is_empty(), "include/paceline.h lacks {missing:?}");
    for name in exported {
        // SAFETY: the symbol is looked up, not used.
        let found = unsafe { LIBRARY.get::<extern "C" fn()>(name.as_bytes()) };
        assert!(found.is_ok(), "the library lacks {name}");
    }
}

#[test]
fn pointers_are_used_in_two_files() {
    for (name, text) in sources() {
        let is_allowed = matches!(name.as_str(), "raw.rs" | "pool.rs");
        // Attributes, and types of functions that C passes.
        let text = text.replace("#[unsafe(no_mangle)]", "").replace("unsafe extern \"C\" fn(", "");
        let code: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let uses = code.iter().filter(|line| line.contains("unsafe")).count();
        assert!(is_allowed || uses == 0, "{name} has unsafe code");
    }
}

#[test]
fn versions_agree() {
    let version = c::paceline_abi_version();
    assert!(read("Makefile").contains(&format!("ABI = {version}\n")), "the Makefile has another version");
    assert!(read("include/paceline.h").contains(&format!("#define PACELINE_ABI_VERSION {version}\n")));
}
