//! The outcome of a packet as JSON: the same members in every command.

use paceline::{Map, Outcome, RanAs, Redirect, RedirectTarget};
use serde_json::{Map as Object, Value as Json};

/// The members of an outcome: verdict, return value and its name, target, length, context and fault.
pub(crate) fn to_json(outcome: &Outcome, ran: RanAs) -> Object<String, Json> {
    let mut object = Object::new();
    object.insert("verdict".to_owned(), outcome.verdict.name().into());
    object.insert("returns".to_owned(), number(outcome.returned, ran).into());
    object.insert("action".to_owned(), name(outcome.returned, ran).into());
    object.insert("redirect".to_owned(), outcome.redirect.map(target).into());
    object.insert("length".to_owned(), outcome.bytes.len().into());
    if let Some(context) = &outcome.context {
        let members = context.members().map(|(name, value)| (name.to_owned(), Json::from(value)));
        object.insert("context".to_owned(), Json::Object(members.collect()));
    }
    object.insert("fault".to_owned(), outcome.fault.as_ref().map(ToString::to_string).into());
    object
}

/// A return value as a number: negative where the type's numbers are `int`.
pub(crate) fn number(returned: u32, ran: RanAs) -> i64 {
    let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = ran;
    meaning.number(returned)
}

/// The name of a return value, if it has one.
pub(crate) fn name(returned: u32, ran: RanAs) -> Option<&'static str> {
    let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = ran;
    meaning.name(returned)
}

/// A return value as people read it: `2 (TC_ACT_SHOT)`.
pub(crate) fn returned(returned: u32, ran: RanAs) -> String {
    let number = number(returned, ran);
    name(returned, ran).map_or_else(|| number.to_string(), |name| format!("{number} ({name})"))
}

/// The target of a redirect, with its flags: `interface 3`, `ports[2] with flags 0x8`.
pub(crate) fn target(redirect: Redirect) -> String {
    let target = match redirect.target {
        RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
        RedirectTarget::Map { map, key } => format!("{}[{key}]", map_name(map)),
    };
    match redirect.flags {
        0 => target,
        flags => format!("{target} with flags {flags:#x}"),
    }
}

/// The name of a map by its number.
pub(crate) fn map_name(map: u32) -> String {
    Map::by_id(map).map_or_else(|| format!("map {map}"), |map| map.spec().name.clone())
}
