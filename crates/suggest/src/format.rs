//! Formats of files, by their first bytes: a message tells what was given in the place of something else.

/// First bytes of formats, and their names in messages.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF file"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\xde\xc0\x17\x0b", "LLVM bitcode"),
    (b"\xa1\xb2\xc3\xd4", "a pcap capture"),
    (b"\xd4\xc3\xb2\xa1", "a pcap capture"),
    (b"\xa1\xb2\x3c\x4d", "a pcap capture"),
    (b"\x4d\x3c\xb2\xa1", "a pcap capture"),
    (b"\xa1\xb2\xcd\x34", "a pcap capture"),
    (b"\x34\xcd\xb2\xa1", "a pcap capture"),
    (b"\x0a\x0d\x0d\x0a", "a pcapng capture"),
    (b"snoop\0\0\0", "a snoop capture"),
    (b"GMBU", "a Network Monitor capture"),
    (b"RTSS", "a Network Monitor capture"),
    (b"TRSNIFF", "a Sniffer capture"),
    (b"\x1f\x8b", "data compressed with gzip"),
    (b"\x28\xb5\x2f\xfd", "data compressed with zstd"),
    (b"\xfd7zXZ\0", "data compressed with xz"),
    (b"BZh", "data compressed with bzip2"),
    (b"\x04\x22\x4d\x18", "data compressed with lz4"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet file"),
    (b"\x9f\xeb\x01\0", "BTF"),
    (b"\xeb\x9f\0\x01", "BTF"),
];

/// Bytes that tell whether a file is text: at most, and at least, since the first bytes of a pcapng capture are line breaks.
const LOOKED_AT: usize = 512;
const LEAST: usize = 4;

/// The format of a file that begins with these bytes, with its article: `a pcap capture`, `text`. `None` for unknown ones.
#[must_use]
pub fn format_of(start: &[u8]) -> Option<&'static str> {
    let magic = MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, name)| *name);
    magic.or_else(|| is_text(start).then_some("text"))
}

fn is_text(start: &[u8]) -> bool {
    let start = start.get(..LOOKED_AT).unwrap_or(start);
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A character may be cut in two at the end.
        Err(error) if start.len() == LOOKED_AT && error.error_len().is_none() => {
            std::str::from_utf8(start.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(_) => return false,
    };
    text.len() >= LEAST && !text.contains(|c: char| c.is_control() && !c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::format_of;

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        for (start, name) in [
            (&b"\x7fELF\x02\x01\x01\0"[..], Some("an ELF file")),
            (b"BC\xc0\xde\x35\x14", Some("LLVM bitcode")),
            (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", Some("a pcap capture")),
            (b"\x0a\x0d\x0d\x0a\x1c\0\0\0", Some("a pcapng capture")),
            (b"#include <linux/bpf.h>\n", Some("text")),
            ("\u{e4}".repeat(512).as_bytes(), Some("text")),
            (b"", None),
            (b"\0\0\0\0", None),
            (b"\x06\0\0\0\xff\xff\xff\xff", None),
            (b"text\xff", None),
            (b"\n\r\r", None),
        ] {
            assert_eq!(format_of(start), name, "{start:?}");
        }
        let mut cut = "x".repeat(511).into_bytes();
        cut.extend("\u{e4}\u{e4}".bytes());
        assert_eq!(format_of(&cut), Some("text"));
    }
}
