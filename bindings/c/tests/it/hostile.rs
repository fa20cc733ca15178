//! Mistakes of a C program are errors wherever the library can see them.

use std::ptr;

use paceline_c::*;

use crate::door::*;
use crate::library::c;

/// A handle of another kind, as a cast in C makes it.
fn cast<A, B>(handle: *mut A) -> *mut B {
    handle.cast()
}

fn is<T: std::fmt::Debug>(result: Result<T, Told>, wanted: paceline_status, message: &str) {
    let told = result.expect_err("it is wrong");
    let wanted = if told.message.is_empty() { told.status } else { wanted };
    assert_eq!(told.status, wanted, "{}", told.message);
    assert!(told.message.contains(message), "{}", told.message);
}

#[test]
fn handles_that_are_none_are_errors() {
    let program = example("counter.o", "counter");
    let host = handle(|error| c::paceline_host_new(0, error)).unwrap();
    let run = |program, host| {
        let packet = packet(&[0; 60]);
        status(|error| c::paceline_program_run(program, host, given(&packet), filled(&mut zeroed()), error))
    };
    run(program, host).unwrap();
    let handle_status = paceline_status::Handle;
    is(run(ptr::null_mut(), host), handle_status, "null is given for a program");
    is(run(cast(host), host), handle_status, "a handle of a host is given for a program");
    is(run(program, cast(program)), handle_status, "a handle of a program is given for a host");
    is(run(ptr::without_provenance_mut(0xdead_beef), host), handle_status, "no handle");
    // A later generation of the cell: the number after this one may be another test's program.
    is(
        run(ptr::without_provenance_mut(program.addr() + (1 << 40)), host),
        handle_status,
        "was freed, or is none",
    );

    assert_eq!(c::paceline_program_free(program), paceline_status::Ok);
    assert_eq!(c::paceline_program_free(program), handle_status);
    is(run(program, host), handle_status, "a program was freed");
    assert_eq!(c::paceline_program_free(ptr::null_mut()), paceline_status::Ok);
    // The slot is used again, by another number.
    let again = example("counter.o", "counter");
    assert_ne!(again, program);
    is(run(program, host), handle_status, "a program was freed");
    run(again, host).unwrap();
    assert_eq!(c::paceline_program_free(again), paceline_status::Ok);
    assert_eq!(c::paceline_host_free(host), paceline_status::Ok);
    assert_eq!(c::paceline_host_free(host), handle_status);
}

#[test]
fn arguments_that_mean_nothing_are_errors() {
    let argument = paceline_status::Argument;
    let path = c_string("/nowhere.o");
    let opened = handle(|error| c::paceline_object_open(text(&path), nothing(), error));
    is(opened, paceline_status::Io, "/nowhere.o: No such file");
    is(handle(|error| c::paceline_object_open(no_text(), nothing(), error)), argument, "the path is null");

    let collection = collection("counter.o");
    let name = c_string("by_ethertype");
    let map = handle(|error| c::paceline_collection_map(collection, text(&name), error)).unwrap();
    let other = c_string("nothing");
    let none = handle(|error| c::paceline_collection_map(collection, text(&other), error));
    is(none, paceline_status::Map, "no map nothing (available: by_ethertype");
    let none = handle(|error| c::paceline_collection_program(collection, text(&other), error));
    is(none, paceline_status::NoProgram, "no program nothing (available: counter)");

    let mut value = [0; 64];
    let capacity = value.len();
    let mut look_up = |key: &[u8], capacity| {
        status(|error| c::paceline_map_lookup(map, bytes(key), key.len(), room(&mut value), capacity, error))
    };
    is(look_up(&[0; 3], capacity), paceline_status::Map, "by_ethertype");
    assert_eq!(look_up(&[0; 2], capacity).unwrap_err().status, paceline_status::NotFound);
    let update = |value: &[u8]| {
        status(|error| c::paceline_map_update(map, bytes(&[0; 2]), 2, bytes(value), value.len(), 0, error))
    };
    update(&[1; 16]).unwrap();
    is(update(&[1; 15]), paceline_status::Map, "EINVAL");
    is(look_up(&[0; 2], 15), paceline_status::NoRoom, "16 bytes at offset 0 do not fit into 15");
    let null = status(|error| c::paceline_map_lookup(map, no_bytes(), 2, room(&mut value), 64, error));
    is(null, argument, "null");

    is(handle(|error| c::paceline_burst_new(0, error)), argument, "1 to 64");
    is(handle(|error| c::paceline_burst_new(65, error)), argument, "1 to 64");
    assert_eq!(c::paceline_map_free(map), paceline_status::Ok);
    assert_eq!(c::paceline_collection_free(collection), paceline_status::Ok);
}

#[test]
fn structures_of_other_headers_are_taken_or_refused() {
    #[repr(C)]
    struct Newer {
        known: paceline_packet,
        added: u64,
    }
    let burst = handle(|error| c::paceline_burst_new(2, error)).unwrap();
    let push = |packet: &paceline_packet| {
        status(|error| c::paceline_burst_push(burst, given(packet), 1, unwanted(), error))
    };
    let data = [0; 60];
    is(push(&paceline_packet { size: 0, ..packet(&data) }), paceline_status::Argument, "size 0; set it");
    is(push(&paceline_packet { size: 12345, ..packet(&data) }), paceline_status::Argument, "size 12345");
    // Data and length alone, as in a header without the rest.
    push(&paceline_packet { size: 24, metadata_length: 5, ..packet(&data) }).unwrap();
    let mut newer = Newer { known: packet(&data), added: 0 };
    newer.known.size = size_of::<Newer>();
    // SAFETY: the structure is as long as its size says.
    let new = |newer: &Newer| unsafe { Given::new((&raw const *newer).cast()) };
    status(|error| c::paceline_burst_push(burst, new(&newer), 1, unwanted(), error)).unwrap();
    newer.added = 1;
    let refused = status(|error| c::paceline_burst_push(burst, new(&newer), 1, unwanted(), error));
    is(refused, paceline_status::Argument, "does not know");
    is(push(&packet(&data)), paceline_status::NoRoom, "burst is full");
    assert_eq!(c::paceline_burst_free(burst), paceline_status::Ok);
}

/// Frames of the caller and their buffers.
const STRIDE: usize = 2048;

#[test]
fn frames_of_the_caller_are_in_one_burst_at_most_and_keep_their_room() {
    let mut memory = vec![0_u8; 4 * STRIDE];
    let options = paceline_pool_options {
        // SAFETY: the memory lives longer than the pool.
        memory: unsafe { Memory::new(memory.as_mut_ptr().cast()) },
        stride: STRIDE,
        count: 4,
        buffer_length: STRIDE as u32,
        ..zeroed()
    };
    let wrong = |options| handle(|error| c::paceline_pool_new(given(&options), error));
    is(
        wrong(paceline_pool_options { stride: 2047, ..options }),
        paceline_status::Argument,
        "exceed the stride",
    );
    is(wrong(paceline_pool_options { buffer_length: 575, ..options }), paceline_status::Argument, "room for");
    is(wrong(paceline_pool_options { count: 0, ..options }), paceline_status::Argument, "at least one");
    is(
        wrong(paceline_pool_options { stride: usize::MAX / 2, ..options }),
        paceline_status::Argument,
        "memory",
    );
    let pool = handle(|error| c::paceline_pool_new(given(&options), error)).unwrap();
    let bursts = [0, 1].map(|_| handle(|error| c::paceline_burst_new(64, error)).unwrap());
    let start = memory.as_ptr();
    let at = |frame: usize, offset: usize, length: usize| {
        // SAFETY: an address in the memory, or outside of it, where it is not read.
        let data = unsafe { Bytes::new(start.wrapping_add(frame * STRIDE + offset)) };
        paceline_packet { data, length, ..zeroed() }
    };
    let place = |burst: usize, packet: paceline_packet| {
        status(|error| c::paceline_burst_place(bursts[burst], pool, given(&packet), 1, unwanted(), error))
    };
    place(0, at(0, 256, 60)).unwrap();
    is(place(0, at(0, 256, 60)), paceline_status::Busy, "in a burst");
    is(place(1, at(0, 300, 60)), paceline_status::Busy, "in a burst");
    is(place(0, at(1, 39, 60)), paceline_status::NoRoom, "too little room");
    is(place(0, at(1, 256, STRIDE - 256 - 319)), paceline_status::NoRoom, "too little room");
    place(0, at(1, 40, STRIDE - 40 - 320)).unwrap();
    is(place(0, at(4, 256, 60)), paceline_status::Argument, "does not lie in a frame");
    let metadata = paceline_packet { metadata_length: 4, metadata: bytes(&[0; 4]), ..at(2, 256, 60) };
    is(place(0, metadata), paceline_status::Argument, "right before");
    assert_eq!(c::paceline_pool_free(pool), paceline_status::Busy);
    status(|error| c::paceline_burst_clear(bursts[0], error)).unwrap();
    place(1, at(0, 256, 60)).unwrap();
    assert_eq!(c::paceline_pool_free(pool), paceline_status::Busy);
    assert_eq!(c::paceline_burst_free(bursts[1]), paceline_status::Ok);
    assert_eq!(c::paceline_pool_free(pool), paceline_status::Ok);
    is(place(0, at(0, 256, 60)), paceline_status::Handle, "a pool was freed");
    assert_eq!(c::paceline_burst_free(bursts[0]), paceline_status::Ok);
}

#[test]
fn a_refusal_names_the_instruction() {
    // r0 = 0; exit in one program, r0 = *(u64 *)(r2 + 0) in the other.
    let exit = paceline_instruction { code: 0x95, registers: 0, offset: 0, immediate: 0 };
    let load = paceline_instruction { code: 0x79, registers: 0x20, offset: 0, immediate: 0 };
    let builder = handle(|error| c::paceline_builder_new(no_bytes(), 0, error)).unwrap();
    let name = c_string("wrong");
    let code = [load, exit];
    let program = paceline_program_spec {
        name: text(&name),
        instructions: list(&code),
        instruction_count: code.len(),
        ..zeroed()
    };
    status(|error| c::paceline_builder_add_program(builder, given(&program), error)).unwrap();
    let object = handle(|error| c::paceline_builder_object(builder, error)).unwrap();
    let collection = handle(|error| c::paceline_object_load(object, nothing(), error)).unwrap();
    let told = handle(|error| c::paceline_collection_program(collection, no_text(), error)).unwrap_err();
    assert_eq!((told.status, told.slot, told.index), (paceline_status::Refused, 0, PACELINE_UNKNOWN));
    assert_eq!(told.program.as_deref(), Some("wrong"));
    let message = "program wrong is not safe: instruction 0: r2 is read but not set";
    assert!(told.message.starts_with(message), "{}", told.message);

    // Without a proof it is a fault of the packet that meets it.
    let program =
        handle(|error| c::paceline_collection_program_unverified(collection, no_text(), error)).unwrap();
    let host = handle(|error| c::paceline_host_new(0, error)).unwrap();
    let burst = handle(|error| c::paceline_burst_new(2, error)).unwrap();
    let data = [0; 60];
    let packets = [packet(&data), packet(&data)];
    status(|error| c::paceline_burst_push(burst, all(&packets), 2, unwanted(), error)).unwrap();
    let told = status(|error| c::paceline_program_run_burst(program, burst, host, error)).unwrap_err();
    assert_eq!((told.status, told.slot, told.index), (paceline_status::Fault, 0, 0));
    let statuses = [
        c::paceline_builder_free(builder),
        c::paceline_object_free(object),
        c::paceline_collection_free(collection),
        c::paceline_program_free(program),
        c::paceline_host_free(host),
        c::paceline_burst_free(burst),
    ];
    assert_eq!(statuses, [paceline_status::Ok; 6]);
}
