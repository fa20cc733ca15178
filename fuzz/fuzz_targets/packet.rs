//! Packets from text, and text from packets: the text of a packet makes the same packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::packet::{build, to_text};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = build(text);
    }
    let text = to_text(bytes);
    assert_eq!(build(&text).expect("a text that was printed"), bytes, "{text}");
});
