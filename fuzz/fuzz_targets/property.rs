//! Properties, as `paceline prove` takes them: what is parsed is printed as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::prove::Property;

fuzz_target!(|text: &str| {
    if let Ok(property) = text.parse::<Property>() {
        assert_eq!(property.to_string(), text);
    }
});
