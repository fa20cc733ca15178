//! Compilation under a profiler (`compile`): every example program, and nothing else that takes time.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use paceline::{Engine, LoadOptions, Object, Program};

/// The object files of `examples`, by name.
pub(crate) fn examples() -> Result<Vec<PathBuf>, std::io::Error> {
    let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut files: Vec<PathBuf> =
        fs::read_dir(examples)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "o"));
    files.sort();
    Ok(files)
}

/// Verifies and compiles each program so many times. Returns the number of instructions that were compiled.
pub(crate) fn run(rounds: usize) -> Result<usize, Box<dyn Error>> {
    let (mut instructions, mut kept) = (0, Vec::new());
    for file in examples()? {
        let object = Object::open(&file)?;
        let collection = object.load(&LoadOptions::default())?;
        let maps = collection.maps();
        for spec in object.programs() {
            for _ in 0..rounds {
                let verified = object.verify(spec)?;
                Program::load(&verified, maps.to_vec(), Engine::Jit)?;
                instructions += verified.code().iter().count();
            }
        }
        kept.push(collection);
    }
    // Valgrind's auxiliary vector is one that rustix cannot read, as it does when memory of maps is freed.
    std::mem::forget(kept);
    Ok(instructions)
}
