//! The packets that both sides get.

use std::path::Path;

use paceline::capture::CaptureReader;
use paceline::{Burst, FrameMeta};

use crate::common::capture::{Capture, CaptureError};

/// A packet of the capture.
#[derive(Clone, Debug)]
pub(super) struct InputPacket {
    pub(super) bytes: Vec<u8>,
    pub(super) meta: FrameMeta,
}

/// All packets, in memory: both sides run them more than once.
pub(super) struct Packets {
    /// For messages.
    pub(super) name: String,
    pub(super) all: Vec<InputPacket>,
}

impl Packets {
    pub(super) fn read(path: Option<&Path>, count: Option<u64>) -> Result<Self, CaptureError> {
        let mut capture = Capture::open(path, CaptureReader::new)?;
        let (mut burst, mut all) = (Burst::default(), Vec::new());
        let most = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        while all.len() < most {
            let failed = |source| {
                let (name, processed) = (capture.name.clone(), all.len() as u64);
                CaptureError::Read { name, source: Box::new(source), processed }
            };
            if capture.reader.fill(&mut burst).map_err(failed)? == 0 {
                break;
            }
            let packets =
                burst.iter().map(|frame| InputPacket { bytes: frame.packet().to_vec(), meta: *frame.meta() });
            all.extend(packets);
        }
        all.truncate(most);
        Ok(Self { name: capture.name, all })
    }
}
