//! Keys and values from JSON, by their types.

use paceline::btf::Btf;
use serde_json::Value as Json;

use super::failure::{MapFailure, Problem};
use super::json;
use super::json_file::Part;

/// The bytes of a key or value.
pub(super) fn encode(
    part: &Part<'_>,
    btf: Option<&Btf>,
    ty: u32,
    size: usize,
) -> Result<Vec<u8>, MapFailure> {
    encode_json(part, &part.value()?, btf, ty, size)
}

pub(super) fn encode_json(
    part: &Part<'_>,
    json: &Json,
    btf: Option<&Btf>,
    ty: u32,
    size: usize,
) -> Result<Vec<u8>, MapFailure> {
    if let Some(bytes) = json::from_hex(json, size) {
        return Ok(bytes);
    }
    match btf.filter(|_| ty != 0) {
        Some(btf) => typed_json(part, json, btf, ty, size),
        None => json::from_untyped(json, size).ok_or_else(|| part.fail(Problem::Untyped { size })),
    }
}

/// The bytes of a value of a type.
pub(super) fn typed(part: &Part<'_>, btf: &Btf, ty: u32, size: usize) -> Result<Vec<u8>, MapFailure> {
    typed_json(part, &part.value()?, btf, ty, size)
}

fn typed_json(part: &Part<'_>, json: &Json, btf: &Btf, ty: u32, size: usize) -> Result<Vec<u8>, MapFailure> {
    let value = json::from_json(json).map_err(|problem| part.fail(problem))?;
    let bytes = btf.encode(ty, &value).map_err(|error| part.fail(Problem::Value(error)))?;
    if bytes.len() == size {
        Ok(bytes)
    } else {
        Err(part.fail(Problem::Size { found: bytes.len(), expected: size }))
    }
}
