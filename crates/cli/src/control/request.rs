//! Requests on the control socket, and their form as JSON (`docs/LIVE.md`).

use std::time::Duration;

use paceline::filter::SockFilter;
use serde_json::{Value as Json, json};

/// A request of a client to a live run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// Counts and programs; whether a sample of the packets is to be followed from now on.
    Status { follow: bool },
    /// The end of the run.
    Stop,
    /// The chain.
    Chain(ChainForm),
    /// The packets from now on, as a capture.
    Capture(Capture),
    /// The definitions of all maps.
    MapList,
    /// The definition of a map.
    MapShow { map: String },
    /// The elements of a map.
    MapDump { map: String },
    /// The value of a key.
    MapGet { map: String, key: Json },
    /// A new value for a key.
    MapSet { map: String, key: Json, value: Json },
    /// The end of an element.
    MapDelete { map: String, key: Json },
}

/// How the chain is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChainForm {
    Json,
    Text,
    Explain,
    Dot,
    Svg,
}

/// Packets of a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Capture {
    /// A classic program: only packets that match it.
    pub(crate) filter: Option<Vec<SockFilter>>,
    /// Number of packets.
    pub(crate) count: Option<u64>,
    /// Duration of the capture.
    pub(crate) time: Option<Duration>,
}

impl ChainForm {
    const ALL: [(Self, &str); 5] = [
        (Self::Json, "json"),
        (Self::Text, "text"),
        (Self::Explain, "explain"),
        (Self::Dot, "dot"),
        (Self::Svg, "svg"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(form, _)| *form == self).map_or("json", |(_, name)| name)
    }
}

impl Request {
    /// Reads a request. The error is for the client.
    pub(crate) fn parse(request: &Json) -> Result<Self, String> {
        let map = || text(request, "map").map(str::to_owned);
        let key = || value(request, "key").cloned();
        Ok(match text(request, "command")? {
            "status" => Self::Status { follow: request.get("follow").and_then(Json::as_bool) == Some(true) },
            "stop" => Self::Stop,
            "chain" => Self::Chain(form(request)?),
            "capture" => Self::Capture(capture(request)?),
            "map list" => Self::MapList,
            "map show" => Self::MapShow { map: map()? },
            "map dump" => Self::MapDump { map: map()? },
            "map get" => Self::MapGet { map: map()?, key: key()? },
            "map set" => Self::MapSet { map: map()?, key: key()?, value: value(request, "value")?.clone() },
            "map delete" => Self::MapDelete { map: map()?, key: key()? },
            other => {
                return Err(format!(
                    "`{other}` is no command; it must be status, stop, chain, capture, map list, map show, map dump, map get, map set or map delete"
                ));
            }
        })
    }

    /// The request as JSON, without its version.
    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Status { follow: false } => json!({ "command": "status" }),
            Self::Status { follow: true } => json!({ "command": "status", "follow": true }),
            Self::Stop => json!({ "command": "stop" }),
            Self::Chain(form) => json!({ "command": "chain", "form": form.name() }),
            Self::Capture(capture) => capture.to_json(),
            Self::MapList => json!({ "command": "map list" }),
            Self::MapShow { map } => json!({ "command": "map show", "map": map }),
            Self::MapDump { map } => json!({ "command": "map dump", "map": map }),
            Self::MapGet { map, key } => json!({ "command": "map get", "map": map, "key": key }),
            Self::MapSet { map, key, value } => {
                json!({ "command": "map set", "map": map, "key": key, "value": value })
            }
            Self::MapDelete { map, key } => json!({ "command": "map delete", "map": map, "key": key }),
        }
    }
}

impl Capture {
    fn to_json(&self) -> Json {
        let mut request = json!({ "command": "capture" });
        if let Some(filter) = &self.filter {
            request["filter"] =
                filter.iter().map(|insn| json!([insn.code, insn.jt, insn.jf, insn.k])).collect();
        }
        if let Some(count) = self.count {
            request["count"] = count.into();
        }
        if let Some(time) = self.time {
            request["seconds"] = time.as_secs_f64().into();
        }
        request
    }
}

fn text<'a>(request: &'a Json, name: &str) -> Result<&'a str, String> {
    value(request, name)?.as_str().ok_or_else(|| format!("`{name}` is no text"))
}

fn value<'a>(request: &'a Json, name: &str) -> Result<&'a Json, String> {
    request.get(name).ok_or_else(|| format!("`{name}` is missing"))
}

fn form(request: &Json) -> Result<ChainForm, String> {
    let name = request.get("form").map_or(Some("json"), Json::as_str);
    let found = ChainForm::ALL.into_iter().find(|(_, known)| Some(*known) == name);
    found.map(|(form, _)| form).ok_or_else(|| "`form` must be json, text, explain, dot or svg".to_owned())
}

fn capture(request: &Json) -> Result<Capture, String> {
    let seconds = match request.get("seconds") {
        None => None,
        Some(value) => Some(value.as_f64().ok_or("`seconds` is no number")?),
    };
    let count = match request.get("count") {
        None => None,
        Some(value) => Some(value.as_u64().ok_or("`count` is no whole number from 0 on")?),
    };
    let filter = request.get("filter").map(insns).transpose()?;
    let time = seconds.map(Duration::try_from_secs_f64).transpose();
    let time = time.map_err(|_| "`seconds` is no time: a number from 0 on".to_owned())?;
    Ok(Capture { filter, count, time })
}

/// A filter as a list of instructions, each a list of its four numbers.
fn insns(value: &Json) -> Result<Vec<SockFilter>, String> {
    let insn = |insn: &Json| {
        let [code, jt, jf, k] = insn.as_array()?.as_slice() else { return None };
        Some(SockFilter {
            code: u16::try_from(code.as_u64()?).ok()?,
            jt: u8::try_from(jt.as_u64()?).ok()?,
            jf: u8::try_from(jf.as_u64()?).ok()?,
            k: u32::try_from(k.as_u64()?).ok()?,
        })
    };
    let insns = value.as_array().and_then(|insns| insns.iter().map(insn).collect());
    insns.ok_or_else(|| "`filter` is no list of instructions [code, jt, jf, k]".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use paceline::filter::SockFilter;
    use serde_json::json;

    use super::{Capture, ChainForm, Request};

    #[test]
    fn what_is_asked_is_read_as_it_was() {
        let filter = vec![SockFilter { code: 6, jt: 0, jf: 0, k: u32::MAX }];
        let (map, key, value) = ("rules".to_owned(), json!({ "port": 22 }), json!(1));
        for request in [
            Request::Status { follow: false },
            Request::Status { follow: true },
            Request::Stop,
            Request::Chain(ChainForm::Svg),
            Request::Capture(Capture::default()),
            Request::Capture(Capture {
                filter: Some(filter),
                count: Some(2),
                time: Some(Duration::from_millis(1500)),
            }),
            Request::MapList,
            Request::MapShow { map: map.clone() },
            Request::MapDump { map: map.clone() },
            Request::MapGet { map: map.clone(), key: key.clone() },
            Request::MapSet { map: map.clone(), key: key.clone(), value },
            Request::MapDelete { map, key },
        ] {
            assert_eq!(Request::parse(&request.to_json()), Ok(request));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (request, error) in [
            (json!({}), "`command` is missing"),
            (json!({ "command": 1 }), "`command` is no text"),
            (json!({ "command": "chain", "form": "png" }), "`form` must be json, text, explain, dot or svg"),
            (json!({ "command": "map get", "map": "a" }), "`key` is missing"),
            (json!({ "command": "capture", "seconds": -1 }), "`seconds` is no time: a number from 0 on"),
            (
                json!({ "command": "capture", "filter": [[1, 2]] }),
                "`filter` is no list of instructions [code, jt, jf, k]",
            ),
        ] {
            assert_eq!(Request::parse(&request), Err(error.to_owned()), "{request}");
        }
    }
}
