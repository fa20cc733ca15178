//! Code of arm64 runs as it was installed, also where other code was before.
#![cfg(target_arch = "aarch64")]

use std::mem::transmute;

use paceline_engine::exec::{Arena, Code, CodeBlock, Domain};

/// movz w0, #value; ret
fn returns(value: u16) -> [u8; 8] {
    let words = [0x5280_0000 | u32::from(value) << 5, 0xd65f_03c0];
    let mut bytes = [0; 8];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    bytes
}

fn call(block: &CodeBlock) -> u32 {
    // SAFETY: all blocks of this test contain such a function, and this one is alive during the call.
    let function = unsafe { transmute::<*const u8, extern "C" fn() -> u32>(block.as_ptr()) };
    function()
}

#[test]
fn what_is_installed_runs() {
    let arena = Arena::new(1 << 20, Domain::new()).expect("there is executable memory");
    let mut again = 0;
    let mut last = None;
    for value in 0..2000 {
        let block = arena.install(&Code::new(&returns(value))).expect("there is room");
        again += usize::from(last == Some(block.address()));
        last = Some(block.address());
        assert_eq!(call(&block), value.into());
        drop(block);
        arena.domain().collect();
    }
    assert!(again > 1000, "memory is reused: {again}");
}
