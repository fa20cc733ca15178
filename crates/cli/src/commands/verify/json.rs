//! Verdicts as JSON.

use std::time::Duration;

use paceline::verifier::Stats;
use serde_json::{Value as Json, json};

pub(super) fn accepted(program: &str, stats: &Stats, time: Duration) -> Json {
    json!({
        "name": program,
        "verdict": "accepted",
        "stats": {
            "instructions": stats.instructions,
            "states": stats.states,
            "peak_states": stats.peak_states,
            "peak_branches": stats.peak_branches,
            "peak_bytes": stats.peak_bytes,
            "pruned": stats.pruned,
            "seconds": time.as_secs_f64(),
        },
    })
}

/// A program that is not loaded for a reason other than its code.
pub(super) fn not_loaded(program: &str, unsupported: bool, text: &str) -> Json {
    json!({
        "name": program,
        "verdict": "refused",
        "unsupported": unsupported,
        "cause": { "kind": "not_loaded", "text": text },
    })
}
