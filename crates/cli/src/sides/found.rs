//! Running both sides over packets.

use std::collections::BTreeSet;

use super::compare::compare;
use super::group::{Changed, Explained, Group, groups};
use super::ignored::Ignored;
use super::maps::{self, MapChange};
use super::side::{Side, SideMaker, run_both};
use crate::common::capture::CapturedPacket;
use crate::common::failure::Failure;

/// Most packets that are explained; others are grouped by what differs alone.
const EXPLAINED: usize = 2_000;

/// A difference.
pub(crate) struct Found {
    pub(crate) groups: Vec<Group>,
    pub(crate) maps: Vec<MapChange>,
    /// The first packet that differs, from 0.
    pub(crate) first: Option<usize>,
    /// Packets that the kernel does not take, from 0.
    pub(crate) left_out: BTreeSet<usize>,
}

/// Runs packets on both sides, which were made by their makers.
pub(crate) fn find(
    makers: [&SideMaker<'_>; 2],
    [mut old, mut new]: [Side; 2],
    packets: &[CapturedPacket],
    ignored: &[Ignored],
) -> Result<Found, Failure> {
    let (mut changed, mut left_out) = (Vec::new(), BTreeSet::new());
    for (number, packet) in packets.iter().enumerate() {
        match run_both(&mut old, &mut new, number, packet)? {
            Some(fates) => {
                changed.extend(compare(&fates, ignored).map(|change| Changed { number, change }));
            }
            None => drop(left_out.insert(number)),
        }
    }
    let wanted: Vec<usize> = changed.iter().take(EXPLAINED).map(|changed| changed.number).collect();
    let explain = |maker: &SideMaker<'_>| -> Result<Explained, Failure> {
        match wanted.is_empty() || !maker.is_explained() {
            true => Ok(Explained::new()),
            false => Ok(maker.make()?.explain(packets, &wanted, &left_out)?.into_iter().collect()),
        }
    };
    let groups = groups(&changed, &explain(makers[0])?, &explain(makers[1])?);
    let maps = maps::changes(makers, [&old, &new], packets, ignored)?;
    Ok(Found { groups, maps, first: changed.first().map(|changed| changed.number), left_out })
}
