//! Hints for contents of maps that cannot be used.

use paceline::Errno;
use paceline::contents::{ContentsCause, ContentsError, ContentsProblem};

use crate::common::failure::CommandError;
use crate::common::suggest::{closest, closest_program};

impl CommandError for ContentsError {
    fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl CommandError for ContentsCause {
    fn hint(&self) -> Option<String> {
        let closest = |name, names: &[String]| closest(name, names.iter().map(String::as_str));
        match self {
            ContentsCause::NoMap { map, names } => {
                Some(closest(map, names).unwrap_or_else(|| there_is(names)))
            }
            ContentsCause::At { problem, .. } => match &**problem {
                ContentsProblem::NoVariable { name, names, .. }
                | ContentsProblem::NoInnerMap { name, names } => closest(name, names),
                ContentsProblem::Cpu { .. } | ContentsProblem::Refused { errno: Errno::ENODEV, .. } => {
                    Some("`run --cpus N` and `live --workers N` have the CPUs 0 to N-1".to_owned())
                }
                _ => None,
            },
            ContentsCause::Program { source, .. } => closest_program(source),
            _ => None,
        }
    }
}

/// The maps that there are.
fn there_is(names: &[String]) -> String {
    match names {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    }
}
