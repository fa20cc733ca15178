//! The value of `suite_result_map`: messages in Protocol Buffers' encoding, which check programs write byte by byte. The messages are
//! `SuiteResult`, `TestResult` and `Log` of Cilium's `bpf/tests/bpftest/trf.proto`.

use crate::common::failure::CommandError;

/// The map that check programs write their results to.
pub(super) const RESULTS: &str = "suite_result_map";

/// Results of the tests of one check program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SuiteResult {
    /// Parts of the test, which have names of their own.
    pub(super) parts: Vec<PartResult>,
    /// Lines outside of any part.
    pub(super) log: Vec<LogLine>,
}

/// Result of one part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PartResult {
    pub(super) name: String,
    /// 0 if there is none.
    pub(super) status: u64,
    pub(super) log: Vec<LogLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogLine {
    pub(super) format: String,
    pub(super) args: Vec<u64>,
    /// Offset in the value at which the line starts: its tag in the message that it belongs to, which the program writes itself,
    /// where a function may copy the format.
    pub(super) at: usize,
}

/// A message is cut off, or has a field of an unknown form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the messages in {} are malformed at byte {at}", RESULTS)]
pub(super) struct Malformed {
    pub(super) at: usize,
}

impl CommandError for Malformed {
    fn hint(&self) -> Option<String> {
        Some("a line of the log may have at most 125 bytes of format and arguments".to_owned())
    }
}

/// Reads the messages. What follows them is zero.
pub(super) fn parse(value: &[u8]) -> Result<SuiteResult, Malformed> {
    let mut result = SuiteResult::default();
    let mut fields = Fields { bytes: value, at: 0 };
    // No field has the number 0.
    while value.get(fields.at).is_some_and(|byte| *byte != 0) {
        let at = fields.at;
        match fields.field()? {
            (1, Content::Bytes(message)) => result.parts.push(part(message)?),
            (2, Content::Bytes(message)) => result.log.push(log(message, at)?),
            _ => {}
        }
    }
    Ok(result)
}

fn part(mut fields: Fields<'_>) -> Result<PartResult, Malformed> {
    let mut part = PartResult::default();
    while !fields.bytes.is_empty() {
        let at = fields.at;
        match fields.field()? {
            (1, Content::Bytes(name)) => part.name = name.text(),
            (2, Content::Number(status)) => part.status = status,
            (3, Content::Bytes(message)) => part.log.push(log(message, at)?),
            _ => {}
        }
    }
    Ok(part)
}

fn log(mut fields: Fields<'_>, at: usize) -> Result<LogLine, Malformed> {
    let mut line = LogLine { at, ..LogLine::default() };
    while !fields.bytes.is_empty() {
        match fields.field()? {
            (1, Content::Bytes(format)) => line.format = format.text(),
            (2, Content::Number(arg)) => line.args.push(arg),
            // Packed: one field with all numbers.
            (2, Content::Bytes(args)) => {
                line.args.extend(args.bytes.as_chunks().0.iter().map(|arg| u64::from_le_bytes(*arg)));
            }
            _ => {}
        }
    }
    Ok(line)
}

/// Content of a field.
enum Content<'a> {
    Number(u64),
    Bytes(Fields<'a>),
}

/// The fields of a message.
#[derive(Clone, Copy)]
struct Fields<'a> {
    /// Bytes that are left.
    bytes: &'a [u8],
    /// Offset in the value of what is left.
    at: usize,
}

impl<'a> Fields<'a> {
    /// Takes the next field: its number and its content.
    fn field(&mut self) -> Result<(u64, Content<'a>), Malformed> {
        let malformed = Malformed { at: self.at };
        let tag = self.varint()?;
        let content = match tag & 7 {
            0 => Content::Number(self.varint()?),
            1 => Content::Number(u64::from_le_bytes(self.array().ok_or(malformed)?)),
            5 => Content::Number(u32::from_le_bytes(self.array().ok_or(malformed)?).into()),
            2 => {
                let len = usize::try_from(self.varint()?).map_err(|_| malformed)?;
                let at = self.at;
                Content::Bytes(Fields { bytes: self.take(len).ok_or(malformed)?, at })
            }
            _ => return Err(malformed),
        };
        Ok((tag >> 3, content))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        self.at += len;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Seven bits in each byte, the lowest first; the last byte is below 128. A length may have more bytes than it needs.
    fn varint(&mut self) -> Result<u64, Malformed> {
        let malformed = Malformed { at: self.at };
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array().ok_or(malformed)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(malformed)
    }

    /// The bytes up to the zero that ends a string in C.
    fn text(&self) -> String {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(self.bytes.get(..end).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    #[test]
    fn messages_are_read_with_the_places_of_their_lines() {
        let line = [field(1, b"got %d\0"), vec![2 << 3 | 1, 5, 0, 0, 0, 0, 0, 0, 0]].concat();
        // The length of a part takes two bytes, however short.
        let part = [field(1, b"a part\0"), vec![2 << 3, 102], field(3, &line)].concat();
        let part = [vec![1 << 3 | 2, part.len() as u8 | 0x80, 0], part].concat();
        let mut value = [part, field(2, &field(1, b"outside\0"))].concat();
        value.resize(200, 0);
        let result = parse(&value).unwrap();
        assert_eq!(result.parts.len(), 1);
        let part = &result.parts[0];
        assert_eq!((part.name.as_str(), part.status), ("a part", 102));
        assert_eq!((part.log[0].format.as_str(), part.log[0].args.as_slice()), ("got %d", &[5][..]));
        assert_eq!((value[part.log[0].at], value[part.log[0].at + 2]), (3 << 3 | 2, 1 << 3 | 2));
        assert_eq!(result.log[0].format, "outside");
        assert_eq!(parse(&[0; 100]), Ok(SuiteResult::default()));
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut rng = fastrand::Rng::with_seed(1);
        let good = [field(1, &[field(1, b"p"), field(3, &field(1, b"%d"))].concat()), field(2, b"")].concat();
        for _ in 0..100_000 {
            let mut value = good.clone();
            let at = rng.usize(..value.len());
            value[at] = rng.u8(..);
            value.resize(rng.usize(..40), 0);
            let _ = parse(&value);
        }
        assert_eq!(parse(&[1 << 3 | 2, 200, 1]), Err(Malformed { at: 0 }));
        assert!(parse(&[0xff; 20]).is_err());
    }
}
