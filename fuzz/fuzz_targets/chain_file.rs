//! Chain files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::chain::ChainSource;

fuzz_target!(|text: &str| {
    let _ = ChainSource::parse("chain.toml", text);
});
