//! BTF, as the kernel's and an object's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::btf::Btf;

fuzz_target!(|bytes: &[u8]| {
    let _ = Btf::parse(bytes);
});
