//! Edges of a chain: which program runs after which, by verdict.

use paceline::{Link, LinkTarget, Verdict};

use crate::raw::{Given, Text, given};
use crate::status::Failure;

/// All verdicts that have no edge of their own, and return values that are no verdicts.
pub const PACELINE_ANY_VERDICT: u32 = u32::MAX;

/// An edge of a chain: what comes after a program and a verdict. Several are an array of these; the first has the size of each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_edge {
    /// sizeof(struct paceline_edge)
    pub size: usize,
    /// The member that it leads from; null in a change of a member, where it is that one.
    pub from: Text,
    /// The member that it leads to; null for the end of the chain.
    pub to: Text,
    /// The verdict after which it is taken, one of enum paceline_verdict, or PACELINE_ANY_VERDICT.
    pub after: u32,
    /// The verdict with which the chain ends, one of enum paceline_verdict, if `to` is null; 0 otherwise.
    pub end: u32,
}

given!(paceline_edge);

/// Edges, each with the member that it leads from, if it says that.
pub(crate) fn edges(
    edges: Given<paceline_edge>,
    count: usize,
) -> Result<Vec<(Option<String>, Link)>, Failure> {
    let mut list = Vec::new();
    edges.each(count, |index, given| {
        list.push(edge(&given).map_err(|failure| failure.at(index))?);
        Ok(())
    })?;
    Ok(list)
}

fn edge(given: &paceline_edge) -> Result<(Option<String>, Link), Failure> {
    let after = match given.after {
        PACELINE_ANY_VERDICT => None,
        number => Some(verdict(number)?),
    };
    let target = match given.to.optional()? {
        Some(_) if given.end != 0 => {
            return Err(Failure::argument("an edge leads to a member or to the end, not both"));
        }
        Some(name) => LinkTarget::Program(name.to_owned()),
        None => LinkTarget::End(verdict(given.end)?),
    };
    Ok((given.from.optional()?.map(str::to_owned), Link { after, target }))
}

fn verdict(number: u32) -> Result<Verdict, Failure> {
    let found = Verdict::ALL.into_iter().find(|verdict| *verdict as u32 == number);
    found.ok_or_else(|| Failure::argument(format!("{number} is no enum paceline_verdict")))
}
