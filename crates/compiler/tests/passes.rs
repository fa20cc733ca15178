//! Passes on text: each file of `passes/NAME` has a module, and after the line `; expect:` what pass NAME makes of it; those of
//! `passes/all` what all passes do. `PACELINE_REGENERATE=1` writes what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use paceline_compiler::ir::random::run;
use paceline_compiler::ir::{Pass, Passes, optimize, parse};

const MARK: &str = "; expect:\n";

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn check(file: &Path, passes: &Passes) -> Result<(), String> {
    let text = fs::read_to_string(file).expect("text");
    let (before, expected) = text.split_once(MARK).unwrap_or((&text, ""));
    let original = parse(before).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut module = original.clone();
    optimize(&mut module, passes).map_err(|error| format!("{}: {error}\n{module}", file.display()))?;
    for seed in 0..16 {
        if run(&original, seed) != run(&module, seed) {
            return Err(format!("{}: a run leaves something else:\n{module}", file.display()));
        }
    }
    let after = module.to_string();
    if std::env::var_os("PACELINE_REGENERATE").is_some() {
        fs::write(file, format!("{before}{MARK}{after}")).expect("writable");
    } else if after != expected {
        return Err(format!("{}: expected\n{expected}\nfound\n{after}", file.display()));
    }
    Ok(())
}

#[test]
fn passes_make_of_text_what_its_files_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let mut wrong = Vec::new();
    let mut folders = 0;
    for folder in files(&root) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let passes = match name.as_str() {
            "all" => Passes::default(),
            name => Passes::none().with(name.parse().expect("the name of a pass"), true),
        };
        wrong.extend(files(&folder).iter().filter_map(|file| check(file, &passes.checked(true)).err()));
        folders += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(folders, Pass::ALL.len() + 1, "each pass has a folder, and all have one");
}
