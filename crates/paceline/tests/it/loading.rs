//! Objects of which not everything can be had, and kernels that they are loaded for.

use paceline::kernel::{self, KernelVersion};
use paceline::{
    Burst, FrameMeta, Host, LoadOptions, Object, ObjectOptions, ProgramError, SetupError, Verdict,
};

fn fixture(name: &str) -> String {
    format!("{}/../cli/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_missing_map_is_that_of_the_programs_that_name_it() {
    let object = Object::open(fixture("loader.o")).unwrap();
    let collection = object.load(&LoadOptions::default()).unwrap();
    let missing =
        collection.missing().iter().map(|missing| (missing.name.as_str(), missing.programs.join(" ")));
    let missing: Vec<_> = missing.collect();
    assert_eq!(missing, [("sized", "last".to_owned()), ("groups", "grouped".to_owned())]);
    let unsupported = |name| match collection.program(Some(name)) {
        Err(error @ ProgramError::Maps { .. }) => error.is_unsupported(),
        Err(error) => panic!("{name}: {error}"),
        Ok(_) => panic!("{name} is loaded"),
    };
    assert!(unsupported("grouped") && !unsupported("last"));
    assert!(collection.map("groups").is_none());
    // The program's other maps have other numbers than in the object, and are the right ones.
    let program = collection.program(Some("plain")).unwrap();
    let mut burst = Burst::default();
    burst.push(&[0; 60], FrameMeta::default()).unwrap();
    program.run_burst(&mut burst, &mut Host::default()).unwrap();
    assert_eq!(burst.frame(0).verdict(), Verdict::Pass);
    let runs = collection.map("runs").unwrap();
    assert_eq!(runs.lookup(&0u32.to_ne_bytes()).unwrap(), 1u64.to_ne_bytes());

    let mut alone = object.clone();
    alone.specs_mut().programs.retain(|program| program.name == "plain");
    alone.specs_mut().skipped.clear();
    let error = alone.load(&LoadOptions::default()).expect_err("nobody else can want it");
    assert!(matches!(error, SetupError::Unnamed(_)), "{error}");
    assert_eq!(error.to_string(), "map \"sized\": max_entries is zero (EINVAL)");
}

#[test]
fn objects_say_what_they_ask_of_a_kernel() {
    let bytes = std::fs::read(fixture("kernel.o")).unwrap();
    let needs = Object::needs(&bytes).unwrap();
    assert_eq!(
        (needs.relocations, needs.config.as_slice()),
        (2, &["CONFIG_HZ", "LINUX_KERNEL_VERSION"].map(str::to_owned)[..])
    );
    let types = kernel::types(fixture("kernel_types.o").as_ref()).unwrap();
    let verdicts = |target_btf, kernel_version| {
        let options = ObjectOptions::default().target_btf(target_btf).kernel_version(kernel_version);
        let object = Object::parse_with(&bytes, &options).unwrap();
        let collection = object.load(&LoadOptions::default()).unwrap();
        ["asks", "version"].map(|name| {
            let program = collection.program(Some(name)).ok()?;
            let mut burst = Burst::default();
            burst.push(&[0; 60], FrameMeta::default()).unwrap();
            program.run_burst(&mut burst, &mut Host::default()).unwrap();
            Some(burst.frame(0).verdict())
        })
    };
    assert_eq!(verdicts(Some(&types), KernelVersion::DEFAULT), [Some(Verdict::Drop), Some(Verdict::Pass)]);
    assert_eq!(verdicts(None, KernelVersion::new(5, 15, 0)), [None, Some(Verdict::Drop)]);
}

/// Programs are counted by their numbers: two that were compiled have two.
#[test]
fn a_prepared_program_is_made_once() {
    let counter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    let collection = Object::open(counter).unwrap().load(&LoadOptions::default()).unwrap();
    let first = std::thread::scope(|scope| {
        let prepare = || collection.prepare(None).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(prepare)).collect();
        let programs: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(programs.iter().all(|program| std::sync::Arc::ptr_eq(program, &programs[0])));
        programs[0].clone()
    });
    let named = collection.clone().prepare(Some(&first.spec().name)).unwrap();
    assert_eq!(named.program().id(), first.program().id());
    assert_ne!(collection.program(None).unwrap().program().id(), first.program().id());
    assert!(matches!(collection.prepare(Some("no")), Err(ProgramError::Unknown { .. })));
}
