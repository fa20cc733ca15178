//! Programs on the packet path take no memory of the heap, whatever they call.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use paceline::{Burst, Engine, FrameMeta, LoadOptions, Object, Verdict};

/// A program for each helper and each operation on maps.
const OBJECT: &[u8] = include_bytes!("../../../bench/workloads/helpers.o");

/// The system's allocator, which counts what each thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: the system's allocator does all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: guaranteed by the caller.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bursts before the count: lists of slots grow to what they need.
const WARM_UP: usize = 256;
/// Bursts of the count.
const BURSTS: usize = 64;

#[test]
fn helpers_and_maps_do_not_allocate() {
    let object = Object::parse(OBJECT).unwrap();
    let mut wrong = Vec::new();
    for engine in [Engine::Threaded, Engine::Jit] {
        let collection = object.load(&LoadOptions::default().engine(engine)).unwrap();
        collection.map("cpus").unwrap().insert(&[0; 4], &[1, 0, 0, 0]).unwrap();
        collection.map("hash").unwrap().insert(&[1, 0, 0, 0], &[1; 8]).unwrap();
        for spec in object.programs() {
            let program = match collection.program(Some(&spec.name)) {
                Ok(program) => program,
                // This machine has no native code.
                Err(paceline::ProgramError::Engine { .. }) if engine == Engine::Jit => continue,
                Err(error) => panic!("{}: {error}", spec.name),
            };
            let mut host = collection.host().unwrap();
            let mut burst = Burst::new(16);
            while !burst.is_full() {
                burst.push(&[0x45; 98], FrameMeta::default()).unwrap();
            }
            let mut run = || program.run_burst(&mut burst, &mut host).unwrap();
            (0..WARM_UP).for_each(|_| run());
            let before = ALLOCATIONS.get();
            (0..BURSTS).for_each(|_| run());
            let allocations = ALLOCATIONS.get() - before;
            // A helper that fails at once would prove nothing: the programs pass or abort then.
            let verdict = burst.frame(0).verdict();
            let expected = [Verdict::Drop, Verdict::Redirect].contains(&verdict) || spec.name == "tc_parse";
            assert!(expected, "{} on {engine}: {verdict:?}", spec.name);
            // The routes of a trie are kept in trees.
            if allocations > 0 && !spec.name.starts_with("lpm") {
                wrong.push(format!("{} on {engine}: {allocations}", spec.name));
            }
        }
    }
    assert!(wrong.is_empty(), "allocations in {} packets: {wrong:?}", BURSTS * 16);
}

#[test]
fn the_allocator_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![0_u8; 100]));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}
