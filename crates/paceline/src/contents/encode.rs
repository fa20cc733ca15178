//! Keys and values from JSON, by their types.

use paceline_btf::Btf;
use paceline_spec::MapSpec;
use serde_json::Value as Json;

use super::error::ContentsCause;
use super::text::Part;
use crate::json;

/// The bytes of a value.
pub(super) fn encode(
    part: &Part<'_>,
    btf: Option<&Btf>,
    ty: u32,
    size: usize,
) -> Result<Vec<u8>, ContentsCause> {
    json::encode(&part.value()?, btf, ty, size).map_err(|error| part.fail(error.into()))
}

/// The bytes of a key.
pub(super) fn encode_key(
    part: &Part<'_>,
    json: &Json,
    btf: Option<&Btf>,
    spec: &MapSpec,
) -> Result<Vec<u8>, ContentsCause> {
    json::encode_key(json, btf, spec).map_err(|error| part.fail(error.into()))
}

/// The bytes of a value of a type.
pub(super) fn typed(part: &Part<'_>, btf: &Btf, ty: u32, size: usize) -> Result<Vec<u8>, ContentsCause> {
    json::encode_typed(&part.value()?, btf, ty, size).map_err(|error| part.fail(error.into()))
}
