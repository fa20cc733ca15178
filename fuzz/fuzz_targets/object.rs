//! Objects: parsed, then their programs verified.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::Object;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(object) = Object::parse(bytes) {
        for program in object.programs() {
            let _ = object.verify(program);
        }
    }
});
