//! Packets on lines of their own, as tcpdump prints them, with what became of them.

use std::fmt;

use super::console::shown;

/// The line of a packet: its number, time, verdict and headers, and what there is more to tell.
pub(crate) struct PacketLine<'a> {
    /// Number in the capture, from 1, where it is known.
    pub(crate) number: Option<u64>,
    /// Nanoseconds since the epoch.
    pub(crate) time_ns: u64,
    /// Such as `drop`; `None` without a program.
    pub(crate) verdict: Option<&'a str>,
    /// Its headers as it came in, as [`to_line`](paceline::packet::to_line) has them.
    pub(crate) headers: &'a str,
    /// Such as the reason; empty if there is nothing.
    pub(crate) more: &'a str,
}

impl fmt::Display for PacketLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(number) = self.number {
            write!(f, "{number:>6}  ")?;
        }
        write!(f, "{}", TimeOfDay(self.time_ns))?;
        if let Some(verdict) = self.verdict {
            write!(f, " {verdict:<8}")?;
        }
        write!(f, " {}", self.headers)?;
        if self.more.is_empty() { Ok(()) } else { write!(f, "  [{}]", shown(self.more)) }
    }
}

/// Hours, minutes, seconds and microseconds of the day in UTC, which time stamps of captures count in.
struct TimeOfDay(u64);

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1000);
        let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
        write!(f, "{hours:02}:{minutes:02}:{:02}.{micros:06}", seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known() {
        let arp = paceline::packet::to_line(&paceline::packet::build("eth / arp").unwrap());
        let mut line = PacketLine {
            number: Some(7),
            time_ns: 86_399_999_999_999,
            verdict: None,
            headers: &arp,
            more: "",
        };
        assert_eq!(line.to_string(), format!("     7  23:59:59.999999 {arp}"));
        line = PacketLine {
            number: None,
            time_ns: 86_400_000_001_000,
            verdict: Some("drop"),
            more: "x\u{1b}",
            ..line
        };
        assert_eq!(line.to_string(), format!("00:00:00.000001 drop     {arp}  [x\\x1b]"));
    }
}
