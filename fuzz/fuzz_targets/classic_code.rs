//! Classic instructions: those that the check takes are converted to programs, which the verifier accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::Object;
use paceline::filter::SockFilter;

fuzz_target!(|bytes: &[u8]| {
    let insns = bytes.chunks_exact(8).map(|insn| SockFilter {
        code: u16::from_le_bytes([insn[0], 0]),
        jt: insn[1],
        jf: insn[2],
        k: u32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]),
    });
    if let Ok(object) = Object::of_classic("filter", insns.collect()) {
        object.verify(&object.programs()[0]).expect("a filter that was checked is safe");
    }
});
