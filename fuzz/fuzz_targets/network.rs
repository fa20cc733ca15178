//! Networks, as `ip -j`, `ss`, `conntrack` and `sysctl` print them.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = paceline::network::parse(text);
});
