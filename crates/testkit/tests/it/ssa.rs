//! How many programs become native code by their form, and why others do not.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use paceline::LoadOptions;
use paceline_maps::Map;
use paceline_testkit::case::{CaseKind, find_files, read_file};
use paceline_testkit::engine::{load_chain_ssa, load_ssa};
use paceline_verifier::{Options, Verified, verify};
use paceline_vm::{Architecture, CodeSource, CompileError, Lack, LoadError, LookAhead, compile_for};

/// Programs by what their code was generated from: an operation without code from the form, or none.
#[derive(Debug, Default)]
struct Counts {
    native: usize,
    lacks: BTreeMap<String, Vec<String>>,
}

impl Counts {
    /// The programs of all cases, each compiled; the inner result is what it lacks.
    fn of_cases(compile: impl Fn(&Verified, Vec<Arc<Map>>) -> Result<Option<Lack>, LoadError>) -> Self {
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
                        Err(LoadError::Program(_)) => {}
                        Err(error) => panic!("{}: {error}", case.name),
                    }
                }
            }
        }
        counts
    }
}

/// The programs of cases become native code, but for those with packet loads that are not in the main program, of which one becomes a part
/// of that.
fn check_programs(compile: impl Fn(CodeSource, &Verified, Vec<Arc<Map>>) -> Result<Option<Lack>, LoadError>) {
    for (source, loads) in [(CodeSource::Form, 1), (CodeSource::RawForm, 2)] {
        let lacks = BTreeMap::from([("packet loads in subprograms".to_owned(), loads)]);
        let counts = Counts::of_cases(|verified, maps| compile(source, verified, maps));
        let found: BTreeMap<String, usize> =
            counts.lacks.iter().map(|(lack, cases)| (lack.clone(), cases.len())).collect();
        assert_eq!(found, lacks, "{source:?}: {:?}", counts.lacks);
        assert!(counts.native > 1000 * found.len(), "{source:?}: {}", counts.native);
        eprintln!("{source:?}: {} programs are native code", counts.native);
    }
}

#[test]
fn programs_of_cases_are_compiled_by_their_form() {
    check_programs(|source, verified, maps| {
        let program = load_ssa(verified, maps, source)?;
        Ok(program.native_source().expect("it is native code").lack)
    });
}

#[test]
fn programs_of_cases_are_compiled_for_arm64() {
    check_programs(|source, verified, maps| {
        match compile_for(Architecture::Arm64, source, &[(verified, maps)], None) {
            Ok(code) => {
                assert!(code.relocations.is_empty() && code.bytes.len() % 4 == 0);
                Ok(None)
            }
            Err(LoadError::Compile(CompileError::Lack(lack))) => Ok(Some(lack)),
            Err(error) => Err(error),
        }
    });
}

#[test]
fn chains_of_cases_are_compiled_by_their_form() {
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
        for source in [CodeSource::Form, CodeSource::RawForm] {
            let loaded = load_chain_ssa(&parts, plan.graph.clone(), LookAhead::Never, source);
            let chain = loaded.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            let from = chain.native_source().expect("it is native code");
            assert_eq!((from.source, from.lack), (source, None), "{}", case.name);
            let compiled = compile_for(Architecture::Arm64, source, &parts, Some(&plan.graph));
            assert!(compiled.is_ok(), "{} for arm64: {compiled:?}", case.name);
        }
        chains += 1;
    }
    assert!(chains > 25, "{chains}");
}

/// Programs of the examples, and of objects in Debian's packages where they are installed.
#[test]
fn programs_of_objects_are_compiled_by_their_form() {
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
                let program = load_ssa(program.verified(), maps, CodeSource::Form);
                let program = program.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let source = program.native_source().expect("it is native code");
                assert_eq!(source.lack, None, "{}: {}", path.display(), spec.name);
                native += 1;
            }
        }
    }
    assert!(native > files, "{native} programs of {files} objects");
}
