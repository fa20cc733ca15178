//! Classic filters in their forms as text, converted to programs, which the verifier accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::Object;

fuzz_target!(|text: &str| {
    if let Ok(object) = Object::of_filter("filter", text) {
        object.verify(&object.programs()[0]).expect("a filter that was checked is safe");
    }
});
