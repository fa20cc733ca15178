//! Differences that do not count.

use paceline::SkBuffMember;

/// A kind of difference that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    Verdict,
    Returns,
    Redirect,
    Events,
    Bytes,
    Metadata,
    Context,
    Maps,
    Map(String),
    /// A member of the `sk_buff`.
    Member(String),
    Field(String),
}

impl Ignored {
    /// As the command line names it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "it must be verdict, returns, redirect, events, bytes, metadata, context, context:FIELD, maps, map:NAME or a field such as ipv4.ttl";
        Ok(match text {
            "verdict" => Self::Verdict,
            "returns" => Self::Returns,
            "metadata" => Self::Metadata,
            "context" => Self::Context,
            "redirect" => Self::Redirect,
            "events" => Self::Events,
            "bytes" => Self::Bytes,
            "maps" => Self::Maps,
            text if text.starts_with("context:") => {
                let name = text.trim_start_matches("context:");
                match SkBuffMember::named(name) {
                    Some(member) => Self::Member(member.name.to_owned()),
                    None => {
                        return Err(format!("`__sk_buff` has no field `{name}` that is compared; {FORM}"));
                    }
                }
            }
            text => match (text.strip_prefix("map:"), text.split_once('.')) {
                (Some(map), _) if !map.is_empty() => Self::Map(map.to_owned()),
                (None, Some((layer, field))) => {
                    let name = layer.split('#').next().unwrap_or(layer);
                    let protocol = paceline::packet::Protocol::named(name);
                    match protocol.and_then(|protocol| protocol.field(field)) {
                        Some(_) => Self::Field(text.to_owned()),
                        None => return Err(format!("there is no field `{text}`; {FORM}")),
                    }
                }
                _ => return Err(FORM.to_owned()),
            },
        })
    }
}
