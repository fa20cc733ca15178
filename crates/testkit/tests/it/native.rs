//! How many programs become native code, and why others do not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use paceline::LoadOptions;
use paceline_engine::{
    Architecture, CompileError, EngineError, LookAhead, OptLevel, Unsupported, compile_for,
};
use paceline_maps::Map;
use paceline_testkit::case::{CaseKind, find_files, read_file};
use paceline_testkit::engine::{load_native, load_native_chain};
use paceline_verifier::{Options, Verified, verify};

/// Programs by what they lack.
#[derive(Debug, Default)]
struct Counts {
    native: usize,
    lacks: BTreeMap<String, Vec<String>>,
}

impl Counts {
    /// The programs of all cases, each compiled; the inner result is what it lacks.
    fn of_cases(
        compile: impl Fn(&Verified, Vec<Arc<Map>>) -> Result<Option<Unsupported>, EngineError>,
    ) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
        let mut counts = Self::default();
        for file in find_files(&root).expect("the cases are there") {
            for case in read_file(&file).expect("valid") {
                let Ok(Ok(maps)) = paceline_testkit::engine::create_maps(&case.maps, 0) else { continue };
                for program in case.programs.iter().filter(|_| case.kind != CaseKind::Raw) {
                    let verified = verify(program, &case.maps, Some(&case.btf), &Options::default());
                    let Ok(verified) = verified else { continue };
                    match compile(&verified, maps.clone()) {
                        Ok(None) => counts.native += 1,
                        Ok(Some(lack)) => {
                            counts.lacks.entry(lack.to_string()).or_default().push(case.name.clone());
                        }
                        // No engine has the function that it calls.
                        Err(EngineError::Program(_)) => {}
                        Err(error) => panic!("{}: {error}", case.name),
                    }
                }
            }
        }
        counts
    }
}

/// All programs of cases become native code.
fn check_programs(compile: impl Fn(OptLevel, &Verified, Vec<Arc<Map>>) -> Result<(), EngineError>) {
    for level in [OptLevel::Full, OptLevel::None] {
        let counts = Counts::of_cases(|verified, maps| match compile(level, verified, maps) {
            Err(EngineError::Compile(CompileError::Unsupported(lack))) => Ok(Some(lack)),
            compiled => compiled.map(|()| None),
        });
        assert!(counts.lacks.is_empty(), "{level:?}: {:?}", counts.lacks);
        assert!(counts.native > 2500, "{level:?}: {}", counts.native);
    }
}

#[test]
fn programs_of_cases_are_compiled() {
    check_programs(|level, verified, maps| load_native(verified, maps, level).map(drop));
}

#[test]
fn programs_of_cases_are_compiled_for_arm64() {
    check_programs(|level, verified, maps| {
        let code = compile_for(Architecture::Arm64, level, &[(verified, maps)], None)?;
        assert!(code.relocations.is_empty() && code.bytes.len() % 4 == 0);
        Ok(())
    });
}

#[test]
fn chains_of_cases_are_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut chains = 0;
    for case in
        find_files(&root).expect("there are some").iter().flat_map(|file| read_file(file).expect("valid"))
    {
        let Some(Ok((plan, nodes))) = case.chain.as_ref().map(|chain| chain.plan(&case.programs)) else {
            continue;
        };
        let Ok(Ok(maps)) = paceline_testkit::engine::create_maps(&case.maps, 0) else { continue };
        let verify = |program| verify(program, &case.maps, Some(&case.btf), &Options::default());
        let verified: Result<Vec<_>, _> = nodes.iter().map(|node| verify(&case.programs[*node])).collect();
        let Ok(verified) = verified else { continue };
        let parts: Vec<_> = verified.iter().map(|verified| (verified, maps.clone())).collect();
        for level in [OptLevel::Full, OptLevel::None] {
            let loaded = load_native_chain(&parts, plan.graph.clone(), LookAhead::Never, level);
            assert!(loaded.is_ok(), "{}: {:?}", case.name, loaded.err());
            let compiled = compile_for(Architecture::Arm64, level, &parts, Some(&plan.graph));
            assert!(compiled.is_ok(), "{} for arm64: {compiled:?}", case.name);
        }
        chains += 1;
    }
    assert!(chains > 25, "{chains}");
}

/// Programs of the examples, and of objects in Debian's packages where they are installed.
#[test]
fn programs_of_objects_are_compiled() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut native, mut files) = (0, 0);
    for folder in [&*examples, Path::new("/usr/lib/x86_64-linux-gnu/bpf")] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let paths = entries.map(|entry| entry.expect("readable").path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "o")) {
            files += 1;
            // Objects that need another kernel's types, or maps of no kind of ours, are not for this test.
            let Ok(object) = paceline_testkit::adapted::open(&path) else { continue };
            let Ok(collection) = object.load(&LoadOptions::default()) else { continue };
            for spec in object.programs() {
                let Ok(program) = collection.program(Some(&spec.name)) else { continue };
                let maps = collection.maps().to_vec();
                let program = load_native(program.verified(), maps, OptLevel::Full);
                program.unwrap_or_else(|error| panic!("{}: {}: {error}", path.display(), spec.name));
                native += 1;
            }
        }
    }
    assert!(native > files, "{native} programs of {files} objects");
}
