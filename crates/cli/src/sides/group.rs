//! Packets that differ for the same cause.

use std::collections::BTreeMap;

use paceline::explain::ChainExplanation;

use super::compare::Change;
use super::parting::{Parting, parting};

/// Packets that differ in the same way, decided at the same places.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) what: Vec<String>,
    /// Numbers of the packets, from 1, rising.
    pub(crate) packets: Vec<usize>,
    /// Of the first packet: the sentences of both sides, where they are explained.
    pub(crate) sentences: [Option<String>; 2],
    pub(crate) parting: Option<Parting>,
    /// Of the first packet.
    pub(crate) change: Change,
}

/// A packet with its change.
pub(crate) struct Changed {
    /// From 0.
    pub(crate) number: usize,
    pub(crate) change: Change,
}

/// Explanations of packets by their numbers.
pub(crate) type Explained = BTreeMap<usize, ChainExplanation>;

/// Groups packets by what differs and where that was decided; packets without explanations by what differs alone.
pub(crate) fn groups(changed: &[Changed], old: &Explained, new: &Explained) -> Vec<Group> {
    let mut groups: Vec<(Key, Group)> = Vec::new();
    for Changed { number, change } in changed {
        let explained = [old.get(number), new.get(number)];
        let places = explained.map(|side| side.map(decided_at));
        let key = (change.what.clone(), places);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.packets.push(number + 1),
            None => {
                let group = Group {
                    what: change.what.clone(),
                    packets: vec![number + 1],
                    sentences: explained.map(|side| side.map(ChainExplanation::sentence)),
                    parting: explained[0].zip(explained[1]).and_then(|(old, new)| parting(old, new)),
                    change: change.clone(),
                };
                groups.push((key, group));
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().map(|(_, group)| group).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.packets.len()));
    groups
}

type Key = (Vec<String>, [Option<String>; 2]);

/// The place of the branch that decided, in the program that ended the run.
fn decided_at(explanation: &ChainExplanation) -> String {
    let Some((_, last, _)) = explanation.steps.last() else { return String::new() };
    last.place(last.decided_at())
}
