//! Differences that do not count.

/// A kind of difference that is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    Verdict,
    Redirect,
    Events,
    Bytes,
    Maps,
    Map(String),
    Field(String),
}

impl Ignored {
    /// As the command line names it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "it must be verdict, redirect, events, bytes, maps, map:NAME or a field such as ipv4.ttl";
        Ok(match text {
            "verdict" => Self::Verdict,
            "redirect" => Self::Redirect,
            "events" => Self::Events,
            "bytes" => Self::Bytes,
            "maps" => Self::Maps,
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
