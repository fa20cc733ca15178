//! Program arrays of objects: who fills them, and when.

use paceline::{
    Burst, Collection, Engine, EntryError, Errno, FrameMeta, Host, InstallError, LoadOptions, Object,
    Program, ProgramError, ProgramKind, Verdict,
};

fn object() -> Object {
    Object::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/protocols.o")).expect("an example")
}

fn load(engine: Engine) -> Collection {
    object().load(&LoadOptions::default().engine(engine)).expect("its maps can be made")
}

/// Verdict of a UDP datagram to port 0, which only `udp` drops.
fn verdict(program: &Program) -> Verdict {
    let mut packet = [0; 60];
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14] = 0x45;
    packet[23] = 17;
    let mut burst = Burst::new(1);
    burst.push(&packet, FrameMeta::default()).expect("room for one");
    program.run_burst(&mut burst, &mut Host::default()).expect("a verified program");
    burst.frame(0).verdict()
}

#[test]
fn the_object_s_programs_are_there_on_every_engine() {
    for engine in Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let collection = load(engine);
        assert_eq!(collection.installed("networks", 0), None, "nobody has asked for a program");
        let dispatch = collection.program(Some("dispatch")).expect("a safe program");
        assert_eq!(verdict(dispatch.program()), Verdict::Drop, "{engine}");
        assert_eq!(collection.installed("networks", 0).as_deref(), Some("ipv4"));
        assert_eq!(collection.installed("protocols", 17).as_deref(), Some("udp"));
        assert_eq!(collection.installed("protocols", 18), None);
    }
}

#[test]
fn entries_that_were_changed_stay_so() {
    let collection = load(Engine::best());
    assert!(collection.uninstall("protocols", 17).expect("an entry"), "it was to come");
    let tcp = collection.program(Some("tcp")).expect("a safe program");
    collection.install("protocols", 1, tcp.program()).expect("an entry");
    let dispatch = collection.program(Some("dispatch")).expect("a safe program");
    assert_eq!(verdict(dispatch.program()), Verdict::Pass);
    assert_eq!(collection.installed("protocols", 17), None);
    assert_eq!(collection.installed("protocols", 1).as_deref(), Some("tcp"));
    assert!(!collection.uninstall("protocols", 17).expect("an entry"), "it is empty already");
    // A program of another collection, on another engine.
    let drop = load(Engine::Plain).program_unverified(Some("drop")).expect("a program");
    collection.clone().install("protocols", 17, &drop).expect("an entry");
    assert_eq!(verdict(dispatch.program()), Verdict::Drop);
}

#[test]
fn entries_stay_as_long_as_the_collection() {
    let collection = load(Engine::best());
    drop(collection.program(Some("dispatch")).expect("a safe program"));
    assert_eq!(collection.installed("protocols", 17).as_deref(), Some("udp"));
    let array = collection.map("protocols").expect("a map").clone();
    drop(collection);
    assert_eq!(
        array.for_programs().prog_array().and_then(|array| array.program(17)),
        None,
        "programs hold their maps"
    );
}

#[test]
fn what_is_wrong_with_an_entry_is_told_with_its_place() {
    let collection = load(Engine::best());
    let drop = collection.program(Some("drop")).expect("a safe program");
    let error = |result: Result<(), EntryError>| result.expect_err("no such entry").to_string();
    assert_eq!(
        error(collection.install("protocol", 0, drop.program())),
        "no map protocol (available: networks, protocols, cursors, seen)"
    );
    assert_eq!(error(collection.install("seen", 0, drop.program())), "the map is no program array");
    assert_eq!(
        error(collection.install("networks", 2, drop.program())),
        "index 2 is not below the map's 2 entries"
    );
    collection.uninstall("networks", 2).expect_err("no such entry");

    let mut object = object();
    object.specs_mut().programs.retain(|program| program.name != "icmp");
    let collection = object.load(&LoadOptions::default()).expect("its maps can be made");
    let error = collection.program(Some("dispatch")).map(|_| ()).expect_err("a program is missing");
    assert_eq!(
        paceline::with_causes(&error),
        "map protocols, index 1: no program icmp (available: ipv4, ipv6, tcp, udp, dispatch, drop)"
    );
    assert!(matches!(error, ProgramError::Entry { index: 1, .. }));
    // It is no matter of programs that do not use the array.
    collection.program(Some("tcp")).expect("a safe program");
}

#[test]
fn programs_of_one_type_use_an_array() {
    let mut object = object();
    for program in &mut object.specs_mut().programs {
        if program.name == "drop" {
            program.kind = ProgramKind::SocketFilter;
        }
    }
    let collection = object.load(&LoadOptions::default()).expect("its maps can be made");
    collection.program(Some("dispatch")).expect("a safe program");
    // It uses none of the object's arrays, and is in none.
    let filter = collection.program(Some("drop")).expect("a safe filter");
    let error = collection.install("protocols", 17, filter.program()).expect_err("another type");
    assert!(matches!(error, EntryError::Install(InstallError::Kind)), "{error}");
}

#[test]
fn entries_of_a_frozen_array_stay() {
    let collection = load(Engine::best());
    let dispatch = collection.program(Some("dispatch")).expect("a safe program");
    collection.map("protocols").expect("a map").freeze().expect("nobody writes");
    let tcp = collection.program(Some("tcp")).expect("a safe program");
    let error = collection.install("protocols", 17, tcp.program()).expect_err("it is frozen");
    assert!(matches!(error, EntryError::Install(InstallError::Refused(Errno::EPERM))), "{error}");
    let error = collection.uninstall("protocols", 17).expect_err("it is frozen");
    assert!(matches!(error, EntryError::Remove(Errno::EPERM)), "{error}");
    assert_eq!(verdict(dispatch.program()), Verdict::Drop, "by udp, as before");
}
