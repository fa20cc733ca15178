//! Where packets go that have run.

use paceline_capture::{CaptureReader, CaptureWriter};
use paceline_frame::Verdict;

use super::error::ReplayError;

/// Outputs of packets.
#[derive(Default)]
pub struct Outputs<'a> {
    /// Packets with verdict pass, tx or redirect.
    pub passed: Option<CaptureWriter<'a>>,
    /// Packets that were dropped or aborted.
    pub dropped: Option<CaptureWriter<'a>>,
}

impl std::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outputs").finish_non_exhaustive()
    }
}

pub(super) fn finish(outputs: Outputs<'_>, reader: &CaptureReader<'_>) -> Result<(), ReplayError> {
    if let Some(out) = outputs.passed {
        out.finish(reader.records()).map_err(ReplayError::WritePassed)?;
    }
    if let Some(out) = outputs.dropped {
        out.finish(reader.records()).map_err(ReplayError::WriteDropped)?;
    }
    Ok(())
}

/// Whether a packet with this verdict goes to the output of dropped packets.
pub(super) fn is_dropped(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Drop | Verdict::Aborted)
}
