//! Arenas: never writable and executable, guards around code, reuse of memory, errors.
#![cfg(target_arch = "x86_64")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every block here calls or reads code installed just before"
)]

use std::mem::transmute;
use std::ops::Range;
use std::slice;

use paceline_engine::exec::{Arena, Code, CodeBlock, Domain, ExecError, GUARD_BYTE, Relocation};

const MIB: usize = 1 << 20;

fn arena() -> Arena {
    Arena::new(MIB, Domain::new()).unwrap()
}

/// mov eax, value; ret
fn returns(value: u32) -> [u8; 6] {
    let [a, b, c, d] = value.to_le_bytes();
    [0xb8, a, b, c, d, 0xc3]
}

fn call(block: &CodeBlock) -> u32 {
    // SAFETY: all blocks of these tests contain such a function, and this one is alive during the call.
    let function = unsafe { transmute::<*const u8, extern "sysv64" fn() -> u32>(block.as_ptr()) };
    function()
}

/// Memory of the arena, including guards.
fn bytes(range: Range<usize>) -> Vec<u8> {
    let start = std::ptr::with_exposed_provenance::<u8>(range.start);
    // SAFETY: the tests read committed memory of a live arena, and write to it on this thread only.
    unsafe { slice::from_raw_parts(start, range.len()) }.to_vec()
}

#[test]
fn runs_what_is_installed() {
    let arena = arena();
    let blocks: Vec<_> = (0..1000).map(|i| arena.install(&Code::new(&returns(i))).unwrap()).collect();
    for (i, block) in (0..).zip(&blocks) {
        assert_eq!(call(block), i);
        assert_eq!(block.address() % 64, 0);
        assert_eq!(block.len(), 6);
        assert!(block.contains(block.address()) && block.contains(block.address() + 5));
        assert!(!block.contains(block.address() + 6) && !block.contains(block.address() - 1));
        assert!(arena.range().contains(&block.address()));
    }
}

/// Lines of /proc/self/maps: address range, permissions, rest.
fn mappings() -> Vec<(Range<usize>, String, String)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let range = usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        Some((range, words.next()?.to_owned(), words.skip(3).collect::<Vec<_>>().join(" ")))
    };
    maps.lines().map(|line| parse(line).unwrap()).collect()
}

#[test]
fn no_mapping_is_writable_and_executable() {
    let arena = arena();
    let block = arena.install(&Code::new(&returns(7))).unwrap();
    let maps = mappings();
    for (range, permissions, name) in &maps {
        assert!(!(permissions.contains('w') && permissions.contains('x')), "{range:x?} {permissions} {name}");
    }
    let own = maps.iter().find(|(range, ..)| range.contains(&block.address())).unwrap();
    assert_eq!(own.1, "r-xs");
    let writable =
        maps.iter().find(|(_, rights, name)| rights.contains('w') && name.contains("paceline-code"));
    assert_eq!(writable, None, "the same memory is not writable elsewhere either");
}

#[test]
fn guard_bytes_lie_around_code_and_where_code_was() {
    let arena = arena();
    let first = arena.install(&Code::new(&[0x90; 64])).unwrap();
    let second = arena.install(&Code::new(&[0x90; 49])).unwrap();
    assert!(second.address() >= first.address() + 64 + 16);
    assert_eq!(GUARD_BYTE, 0xcc);
    let guarded = [
        arena.range().start..first.address(),
        first.address() + 64..second.address(),
        second.address() + 49..arena.range().start + arena.committed(),
    ];
    for range in guarded {
        assert!(!range.is_empty());
        assert!(bytes(range.clone()).iter().all(|&byte| byte == GUARD_BYTE), "{range:x?}");
    }
    let was = first.address()..first.address() + 64;
    drop(first);
    assert_eq!(arena.domain().collect(), 1);
    assert!(bytes(was).iter().all(|&byte| byte == GUARD_BYTE));
}

#[test]
fn near_the_text_of_the_process() {
    let arena = Arena::global().unwrap();
    let ours = near_the_text_of_the_process as fn() as usize;
    assert!(arena.is_near(ours), "{:x?} {ours:x}", arena.range());
    assert!(!arena.is_near(arena.range().end + (1 << 31)));
    assert!(!arena.is_near(arena.range().start.wrapping_sub(1 << 31)));
}

#[test]
fn relocations_lead_to_their_targets() {
    extern "sysv64" fn helper() -> u32 {
        4711
    }
    let arena = arena();
    let target = helper as extern "sysv64" fn() -> u32 as usize;
    assert!(arena.is_near(target));
    let jump = [0x90, 0xe9, 0, 0, 0, 0]; // nop; jmp helper
    let relocations = [Relocation { offset: 2, target }];
    let block = arena.install(&Code::new(&jump).relocations(&relocations)).unwrap();
    assert_eq!(call(&block), 4711);
}

#[test]
fn a_target_out_of_reach_is_an_error() {
    let arena = arena();
    let jump = [0xe9, 0, 0, 0, 0];
    let install = |target| arena.install(&Code::new(&jump).relocations(&[Relocation { offset: 1, target }]));
    let first = arena.range().start;
    let error = install(first + 5 * (1 << 30)).unwrap_err();
    assert!(matches!(error, ExecError::OutOfReach { offset: 1, .. }), "{error}");
    let here = install(first).unwrap().address();
    arena.domain().collect();
    // The same address again, so that the limits of the reach are known.
    let end = here + 5;
    let install = |target| {
        arena.domain().collect();
        install(target).map(|block| assert_eq!(block.address(), here))
    };
    install(end + 0x7fff_ffff).unwrap();
    install(end - 0x8000_0000).unwrap();
    install(end + 0x8000_0000).unwrap_err();
    install(end - 0x8000_0001).unwrap_err();
    install(0).unwrap_err();
}

#[test]
fn a_relocation_outside_the_code_is_an_error() {
    let arena = arena();
    for offset in [2, 5, usize::MAX] {
        let relocations = [Relocation { offset, target: arena.range().start }];
        let error = arena.install(&Code::new(&[0xe9, 0, 0, 0, 0]).relocations(&relocations)).unwrap_err();
        assert!(matches!(error, ExecError::RelocationOffset { len: 5, .. }), "{error}");
    }
}

#[test]
fn alignment() {
    let arena = arena();
    for alignment in [1, 64, 128, 4096] {
        let block = arena.install(&Code::new(&returns(1)).alignment(alignment)).unwrap();
        assert_eq!(block.address() % alignment.max(64), 0);
    }
    for alignment in [0, 3, 8192] {
        let error = arena.install(&Code::new(&returns(1)).alignment(alignment)).unwrap_err();
        assert!(matches!(error, ExecError::Alignment { .. }), "{error}");
    }
}

#[test]
fn a_full_arena_is_an_error_and_takes_code_again_once_there_is_room() {
    let arena = Arena::new(1, Domain::new()).unwrap();
    assert_eq!(arena.range().len(), 64 << 10, "rounded up");
    let large = vec![0x90; 20 << 10];
    let mut blocks = Vec::new();
    let error = loop {
        match arena.install(&Code::new(&large)) {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ExecError::Exhausted { capacity: 65536, largest: 1..20480, .. }), "{error}");
    assert_eq!(blocks.len(), 3);
    let address = blocks.pop().unwrap().address();
    // Without an explicit collection: the arena collects when it is full.
    assert_eq!(arena.install(&Code::new(&large)).unwrap().address(), address);
    let error = arena.install(&Code::new(&vec![0x90; 65 << 10])).unwrap_err();
    assert!(matches!(error, ExecError::Exhausted { .. }), "{error}");
    assert!(matches!(Arena::new(usize::MAX, Domain::new()), Err(ExecError::Capacity { bytes: usize::MAX })));
}

#[test]
fn room_is_reused_after_the_grace_period_and_not_before() {
    let arena = arena();
    let mut reader = arena.domain().reader();
    let block = arena.install(&Code::new(&returns(1))).unwrap();
    let (address, code) = (block.address(), block.as_ptr());
    let pin = reader.pin();
    drop(block);
    assert_eq!(arena.domain().collect(), 0);
    let other = arena.install(&Code::new(&returns(2))).unwrap();
    assert_ne!(other.address(), address);
    // SAFETY: the pinned reader keeps the code alive, which is such a function.
    let function = unsafe { transmute::<*const u8, extern "sysv64" fn() -> u32>(code) };
    assert_eq!(function(), 1, "still there for the pinned worker");
    drop(pin);
    assert_eq!(arena.domain().collect(), 1);
    let third = arena.install(&Code::new(&returns(3))).unwrap();
    assert_eq!(third.address(), address);
    assert_eq!((call(&other), call(&third)), (2, 3));
}

#[test]
fn memory_of_the_arena_goes_with_the_last_block() {
    let arena = arena();
    let block = arena.install(&Code::new(&returns(5))).unwrap();
    let (range, domain) = (arena.range(), arena.domain().clone());
    drop(arena);
    assert_eq!(call(&block), 5);
    drop(block);
    domain.collect();
    let mapped = mappings().into_iter().find(|(other, ..)| other.start == range.start);
    assert!(mapped.is_none_or(|(.., name)| !name.contains("paceline-code")));
}

#[test]
fn an_empty_block_is_a_block() {
    let block = arena().install(&Code::new(&[])).unwrap();
    assert!(block.is_empty() && !block.contains(block.address()));
}

#[test]
fn many_threads_install_run_and_drop() {
    // Large enough for everything: a worker that is preempted within a burst holds back all blocks dropped meanwhile.
    let arena = Arena::new(16 * MIB, Domain::new()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let arena = &arena;
            scope.spawn(move || {
                let mut reader = arena.domain().reader();
                let mut held = Vec::new();
                for i in 0..2000_u32 {
                    let value = thread << 16 | i;
                    let mut code = returns(value).to_vec();
                    code.resize(6 + (i as usize * 37) % 900, 0x90);
                    held.push((value, arena.install(&Code::new(&code)).unwrap()));
                    let _burst = reader.pin();
                    for (value, block) in &held {
                        assert_eq!(call(block), *value);
                    }
                    if held.len() == 8 {
                        held.swap_remove(i as usize % 8);
                    }
                }
            });
        }
    });
    arena.domain().collect();
    assert_eq!(arena.domain().pending(), 0);
    let committed = arena.committed();
    let block = arena.install(&Code::new(&vec![0x90; committed - 4096])).unwrap();
    assert_eq!((block.len(), arena.committed()), (committed - 4096, committed), "all came back in one piece");
}
