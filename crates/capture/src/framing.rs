//! Boundaries of records: where the next record begins, after any byte of a capture.

use crate::byte_order::ByteOrder;
use crate::pcap;
use crate::pcapng;
use crate::sink::Step;

/// Records in a row that make a place the begin of a record, for recovery from damage.
const ROW: usize = 4;
/// Records in a row before one that the end of the capture cuts.
const ROW_BEFORE_CUT: usize = 2;
/// Most seconds between two records in a row: a month.
const MOST_BETWEEN: u32 = 30 * 24 * 3600;

/// Most seconds between the first record of a capture and another one: twenty years. Fractions of a second, which are at the place of seconds
/// four bytes after the begin of a record, are more than that from most times.
const MOST_OF_CAPTURE: u32 = 20 * 366 * 24 * 3600;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A record begins there.
    At(usize),
    /// None begins up to the end of the capture.
    Nowhere,
    /// None begins before `from`; for what follows there must be `needed` bytes.
    More { from: usize, needed: usize },
}

/// Whether records begin at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Yes,
    No,
    More(usize),
}

/// The bytes from a place of a capture on, as far as they are in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    pub(crate) data: &'a [u8],
    /// Whether the capture ends with them.
    pub(crate) is_all: bool,
}

impl<'a> Rest<'a> {
    fn from(self, at: usize) -> Self {
        Self { data: self.data.get(at..).unwrap_or_default(), ..self }
    }
}

/// The records of a format, as far as their boundaries depend on them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Framing {
    Pcap(pcap::Shape),
    Pcapng(ByteOrder),
}

impl Framing {
    /// The length of the record at the start of `data`, by the rules of the reader.
    #[inline]
    pub(crate) fn step(self, data: &[u8]) -> Step {
        match self {
            Self::Pcap(shape) => shape.step(data),
            Self::Pcapng(order) => pcapng::step(data, order),
        }
    }

    /// The first record from `from` on, in damaged bytes: a place that looks like a packet's record and has others behind it.
    pub(crate) fn find(self, rest: Rest<'_>, from: usize) -> Found {
        self.find_since(rest, from, None)
    }

    /// As [`find`](Self::find), for a capture whose first record has this second, if it is known.
    pub(crate) fn find_since(self, rest: Rest<'_>, from: usize, first: Option<u32>) -> Found {
        for at in from..rest.data.len() {
            if first.is_some_and(|first| !self.is_of_time(rest.from(at).data, first)) {
                continue;
            }
            match self.begins(rest.from(at)) {
                Begin::Yes => return Found::At(at),
                Begin::No => {}
                Begin::More(needed) => return Found::More { from: at, needed: at + needed },
            }
        }
        if rest.is_all {
            Found::Nowhere
        } else {
            Found::More { from: from.max(rest.data.len()), needed: from.max(rest.data.len()) + 1 }
        }
    }

    /// The second of a record, if it looks like a packet's.
    pub(crate) fn second(self, data: &[u8]) -> Option<u32> {
        match self {
            Self::Pcap(shape) => shape.likely(data).ok(),
            Self::Pcapng(_) => None,
        }
    }

    /// Whether a record may be of a capture that begins at this second; also if it is no record at all.
    fn is_of_time(self, data: &[u8], first: u32) -> bool {
        self.second(data).is_none_or(|second| second.abs_diff(first) <= MOST_OF_CAPTURE)
    }

    fn begins(self, rest: Rest<'_>) -> Begin {
        let (mut at, mut seconds) = (0, None);
        for row in 0..ROW {
            let left = rest.from(at);
            if row > 0 && rest.is_all && left.data.is_empty() {
                return Begin::Yes;
            }
            let cut = if row >= ROW_BEFORE_CUT { Begin::Yes } else { Begin::No };
            let len = match self.likely(left.data, &mut seconds) {
                Step::Record(len) => len,
                Step::Bad => return Begin::No,
                Step::More(_) if rest.is_all => return cut,
                Step::More(needed) => return Begin::More(at + needed),
            };
            match left.data.len() < len {
                true if rest.is_all => return cut,
                true => return Begin::More(at + len),
                false => at += len,
            }
        }
        Begin::Yes
    }

    /// As [`step`](Self::step), by rules that bytes which are no record rarely keep.
    fn likely(self, data: &[u8], seconds: &mut Option<u32>) -> Step {
        match self {
            Self::Pcap(shape) => match shape.likely(data) {
                Ok(now) if seconds.replace(now).is_some_and(|then| then.abs_diff(now) > MOST_BETWEEN) => {
                    Step::Bad
                }
                Ok(_) => shape.step(data),
                Err(step) => step,
            },
            Self::Pcapng(order) if pcapng::is_likely(data, order) => pcapng::step(data, order),
            Self::Pcapng(_) if data.len() < 4 => Step::More(4),
            Self::Pcapng(_) => Step::Bad,
        }
    }
}
