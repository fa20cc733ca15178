//! Chain-call maps as JSON: programs by their names, as `bpftool map dump` would show them.

use std::collections::BTreeMap;
use std::path::Path;

use paceline::Verdict;
use paceline::chain::{CallMap, Calls};
use paceline::text_file;
use serde_json::Value as Json;

use super::error::{CallsProblem, ChainError};

/// The ids of programs by their names.
pub(super) type Ids = BTreeMap<String, u32>;

/// Reads `[{"key": "firewall", "value": {"pass": "balancer", "wildcard": "logger"}}]`.
pub(super) fn read(path: &Path, ids: &Ids) -> Result<CallMap, ChainError> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|source| ChainError::Read { name: name.clone(), source })?;
    parse(&text, ids).map_err(|problem| ChainError::Calls { name, problem })
}

fn parse(text: &str, ids: &Ids) -> Result<CallMap, CallsProblem> {
    let json: Json = serde_json::from_str(text).map_err(CallsProblem::Syntax)?;
    let mut map = CallMap::default();
    for entry in json.as_array().ok_or(CallsProblem::Shape)? {
        let entry = entry.as_object().filter(|entry| entry.len() == 2).ok_or(CallsProblem::Shape)?;
        let (Some(Json::String(key)), Some(Json::Object(value))) = (entry.get("key"), entry.get("value"))
        else {
            return Err(CallsProblem::Shape);
        };
        let program = id(key, ids)?;
        if map.get(program).is_some() {
            return Err(CallsProblem::Twice(key.clone()));
        }
        let mut calls = Calls::default();
        for (verdict, next) in value {
            let next = id(next.as_str().ok_or(CallsProblem::Shape)?, ids)?;
            calls = match Verdict::ALL.into_iter().find(|known| known.name() == verdict) {
                Some(verdict) => calls.with(verdict, next),
                None if verdict == "wildcard" => calls.with_wildcard(next),
                None => return Err(CallsProblem::NoVerdict(verdict.clone())),
            };
        }
        map.set(program, calls).map_err(|_| CallsProblem::Shape)?;
    }
    Ok(map)
}

fn id(name: &str, ids: &Ids) -> Result<u32, CallsProblem> {
    let missing = || CallsProblem::NoProgram { name: name.to_owned(), names: ids.keys().cloned().collect() };
    ids.get(name).copied().ok_or_else(missing)
}
