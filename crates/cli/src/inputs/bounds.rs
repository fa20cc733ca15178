//! The bounds of proofs, as JSON.

use paceline::prove::Bounds;
use serde_json::{Value as Json, json};

/// The bounds of a proof.
pub(crate) fn bounds_json(bounds: &Bounds) -> Json {
    let assumptions: Vec<_> = bounds.assumptions.iter().map(ToString::to_string).collect();
    json!({ "length": [bounds.length.0, bounds.length.1], "assumptions": assumptions })
}
