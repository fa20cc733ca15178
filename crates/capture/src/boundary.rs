//! Boundaries that are certain: found from the middle of a capture, and the same that a reader comes to which starts at its beginning.
//!
//! From each place of a capture the reader has one next place: the end of the record there, or, if none can be there, the begin of the
//! first record after the damage. No record is longer than [`Framing::longest`], so that a reader from the beginning is at one of so
//! many places in a row, whatever the bytes before them are. All of these are followed at the same time, the first one first; where they
//! have come together the reader comes by too. Bytes of packets that look like records delay that and cannot make it wrong.

use std::collections::BTreeSet;

use crate::framing::{Found, Framing, Rest, Step};

/// A search did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfound {
    /// It needs so many bytes.
    More(usize),
    /// A section begins, whose byte order may be another.
    Section,
}

/// Follows places in rising order.
struct Follower<'a> {
    framing: Framing,
    rest: Rest<'a>,
    /// The first record after damage from a place on: that place, and the record's.
    found: Option<(usize, Option<usize>)>,
}

impl Follower<'_> {
    /// The first record after damage, from a place on; the end of the capture if there is none.
    fn find(&mut self, from: usize) -> Result<usize, Unfound> {
        let end = self.rest.data.len();
        match self.found {
            Some((since, Some(at))) if since <= from && from <= at => return Ok(at),
            Some((since, None)) if since <= from => return Ok(end),
            _ => {}
        }
        let found = match self.framing.find(self.rest, from) {
            Found::At(at) => Some(at),
            Found::Nowhere => None,
            Found::More { needed, .. } => return Err(Unfound::More(needed)),
        };
        self.found = Some((from, found));
        Ok(found.unwrap_or(end))
    }

    /// The place after a place.
    #[inline]
    fn next(&mut self, at: usize) -> Result<usize, Unfound> {
        let data = self.rest.data.get(at..).unwrap_or_default();
        match self.framing.step(data) {
            Step::Record(len) if len <= data.len() => {
                if self.framing.starts_section(data) {
                    Err(Unfound::Section)
                } else {
                    Ok(at + len)
                }
            }
            // The length of a pcap record is all that tells its end.
            Step::Record(len) if !self.rest.is_all => Ok(at + len),
            Step::More(needed) if !self.rest.is_all => Err(Unfound::More(at + needed)),
            Step::Record(_) | Step::More(_) | Step::Bad => self.find(at + 1),
        }
    }
}

/// A certain boundary in `rest`, which may be its end; the first one found.
pub(crate) fn boundary(framing: Framing, rest: Rest<'_>) -> Result<usize, Unfound> {
    let end = rest.data.len();
    if end < framing.longest() && !rest.is_all {
        return Err(Unfound::More(framing.longest()));
    }
    let window = framing.longest().min(end);
    let mut follower = Follower { framing, rest, found: None };
    // A reader that jumps over damage from before is there.
    let mut ahead = BTreeSet::from([follower.find(0)?]);
    for at in 0..window {
        let next = follower.next(at)?;
        if next >= window {
            ahead.insert(next);
        }
    }
    ahead.retain(|at| *at >= window);
    while ahead.len() > 1
        && let Some(at) = ahead.pop_first()
    {
        ahead.insert(follower.next(at)?);
    }
    Ok(ahead.pop_first().unwrap_or(end))
}
