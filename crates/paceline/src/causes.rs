//! Errors with their causes, in a line.

use std::error::Error;

/// An error and its causes, joined by `: `. `Display` of an error of Paceline says what happened at its own level, and
/// [`source`](Error::source) why.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        // Errors of other crates may repeat their cause.
        let is_told =
            text.strip_suffix(&told).is_some_and(|before| before.is_empty() || before.ends_with(": "));
        if !is_told {
            text.push_str(": ");
            text.push_str(&told);
        }
        next = cause.source();
    }
    text
}
