//! Text from objects that anybody may have made.

/// Text from an object, with control characters shown instead of sent to the terminal.
#[must_use]
pub fn shown(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        match c {
            '\t' => shown.push(c),
            c if c.is_control() => shown.push_str(&format!("\\x{:02x}", c as u32)),
            c => shown.push(c),
        }
    }
    shown
}
