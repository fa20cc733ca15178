//! The words that directives begin with.

/// Directives besides the names of engines.
pub(super) const DIRECTIVES: &[&str] = &[
    "case",
    "type",
    "license",
    "endian",
    "types",
    "map",
    "program",
    "chain",
    "path",
    "update",
    "wait",
    "packet",
    "memory",
    "meta",
    "context",
    "r0",
    "verdict",
    "redirect",
    "output",
    "output_meta",
    "error",
    "after",
    "verifier",
];
