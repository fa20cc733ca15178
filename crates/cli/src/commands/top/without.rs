//! A build without the view.

use std::process::ExitCode;

use super::args::TopArgs;
use crate::common::failure::{CommandError, Failure};

/// The command was built without its terminal view.
#[derive(Debug, thiserror::Error)]
#[error("this build has no terminal view, it lacks the feature `top`")]
struct NoView;

impl CommandError for NoView {
    fn hint(&self) -> Option<String> {
        Some("`paceline stats` prints the rates line by line".to_owned())
    }
}

/// Fails: there is no view.
pub(crate) fn top(_: &TopArgs) -> Result<ExitCode, Failure> {
    Err(NoView.into())
}
