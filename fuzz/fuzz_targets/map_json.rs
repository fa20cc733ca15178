//! Contents of maps and variables as JSON, set in an object.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use paceline::contents::MapContents;
use paceline::{LoadOptions, Object};

static OBJECT: LazyLock<Object> = LazyLock::new(|| {
    Object::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/firewall.o")).expect("an example")
});

fuzz_target!(|text: &str| {
    for map in OBJECT.maps() {
        let Ok(contents) = MapContents::parse(&map.name, "fuzz.json", text) else { return };
        let collection = OBJECT.load(&LoadOptions::default()).expect("an example");
        let _ = collection.set_elements([&contents], true);
        let _ = OBJECT.clone().set_variables([&contents]);
    }
});
