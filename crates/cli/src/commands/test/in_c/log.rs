//! Lines of a test's log: a format as `bpf_trace_printk` has them, and its arguments as 64-bit numbers.

use std::fmt::Write;

/// The text of a line. Numbers have the size that C gives them: 32 bits, 64 with `l` or `ll`.
pub(super) fn text(format: &str, args: &[u64]) -> String {
    let (mut text, mut rest, mut args) = (String::new(), format.trim_end_matches('\0'), args.iter());
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let spec_end = after.find(|c: char| !matches!(c, 'l' | '0'..='9' | '#')).unwrap_or(after.len());
        let (size, conversion) = after.split_at(spec_end);
        let mut chars = conversion.chars();
        let conversion = chars.next();
        rest = chars.as_str();
        match conversion.filter(|c| matches!(c, 'd' | 'i' | 'u' | 'x' | 'p' | 's' | 'c')) {
            Some(conversion) => match args.next() {
                Some(arg) => push(&mut text, conversion, size.contains('l'), *arg),
                None => text.push_str("(no argument)"),
            },
            None if conversion == Some('%') => text.push('%'),
            None => {
                text.push('%');
                text.push_str(size);
                text.extend(conversion);
            }
        }
    }
    text.push_str(rest);
    text.trim_end_matches('\n').to_owned()
}

/// Appends a number. No memory of the program is kept: strings are the numbers of their addresses.
fn push(text: &mut String, conversion: char, is_long: bool, arg: u64) {
    let narrow = arg as u32;
    // Writing to text does not fail.
    let _ = match (conversion, is_long) {
        ('d' | 'i', true) => write!(text, "{}", arg.cast_signed()),
        ('d' | 'i', false) => write!(text, "{}", narrow.cast_signed()),
        ('u', true) => write!(text, "{arg}"),
        ('u', false) => write!(text, "{narrow}"),
        ('x', false) => write!(text, "{narrow:x}"),
        ('c', _) => write!(text, "{}", char::from(arg as u8)),
        _ => write!(text, "{arg:x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn numbers_have_the_size_of_their_conversion() {
        let minus = (-3_i64).cast_unsigned();
        assert_eq!(text("expected %d, got %u\0", &[minus, 7]), "expected -3, got 7");
        assert_eq!(
            text("%lld %llu %lx %x", &[minus, minus, 255, minus]),
            "-3 18446744073709551613 ff fffffffd"
        );
        assert_eq!(text("100%% of %i\n", &[1]), "100% of 1");
    }

    #[test]
    fn nothing_is_lost_of_wrong_formats() {
        assert_eq!(text("%d and %d", &[1]), "1 and (no argument)");
        assert_eq!(text("at the end %", &[]), "at the end %");
        assert_eq!(text("%ll", &[1]), "%ll");
        assert_eq!(text("%q left", &[1]), "%q left");
        assert_eq!(text("", &[1]), "");
    }
}
