//! Outcomes as doors tell them.

use serde_json::Value as Json;

use crate::hex::hex;

/// Members of an outcome that doors have in common.
const MEMBERS: [&str; 8] = ["verdict", "returns", "action", "redirect", "length", "context", "fault", "data"];

/// What a door tells of a packet.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) members: Vec<(&'static str, Json)>,
}

impl Told {
    /// The members that a JSON object has.
    pub(super) fn of_json(json: &Json) -> Self {
        let member = |name: &&'static str| Some((*name, json.get(*name)?.clone()));
        Self { members: MEMBERS.iter().filter_map(member).collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        self.members.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Whether the packet does not go on.
    pub(super) fn is_dropped(&self) -> bool {
        self.get("verdict").is_some_and(|verdict| verdict == "drop" || verdict == "aborted")
    }

    /// With the bytes of the packet, if it is known.
    pub(super) fn with_bytes(mut self, bytes: Option<&[u8]>) -> Self {
        self.members.extend(bytes.map(|bytes| ("data", hex(bytes).into())));
        self
    }

    /// Whether anything that both tell differs, of packets that go on bytes and context too.
    pub(super) fn fares_otherwise(&self, other: &Self) -> bool {
        let goes_on = !self.is_dropped() || !other.is_dropped();
        let counts = |name: &str| goes_on || !["data", "length", "context"].contains(&name);
        self.members
            .iter()
            .any(|(name, value)| counts(name) && other.get(name).is_some_and(|other| other != value))
    }

    /// The first member that differs from the truth, which must have all that the door tells.
    pub(super) fn difference(&self, truth: &Self) -> Option<String> {
        self.members.iter().find_map(|(name, told)| {
            let right = truth.get(name);
            (right != Some(told)).then(|| {
                let right = right.map_or_else(|| "nothing".to_owned(), Json::to_string);
                format!("{name} is {told}, and {right} in run")
            })
        })
    }
}

/// The packets of each verdict, in the order of their numbers.
pub(super) fn counts(truth: &[Told]) -> Json {
    let names = paceline::Verdict::ALL.map(paceline::Verdict::name);
    let count = |name: &str| truth.iter().filter(|told| told.get("verdict") == Some(&name.into())).count();
    names
        .into_iter()
        .map(|name| (name.to_owned(), Json::from(count(name))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
