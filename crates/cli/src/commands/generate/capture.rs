//! The inputs as a capture.

use std::fs::File;
use std::io::BufWriter;

use paceline::capture::{AnnotatedWriter, LinkType, Notes, WriteError};
use paceline::packet::to_text;

use super::found::Found;
use crate::common::failure::CommandError;

/// The capture cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
pub(super) struct CaptureError {
    name: String,
    source: WriteError,
}

impl CommandError for CaptureError {}

/// Writes the packets of all inputs, with their purpose in their comments.
pub(super) fn write(all: &[Found], (file, name): (File, String)) -> Result<(), CaptureError> {
    packets(all, file).map_err(|source| CaptureError { name, source })
}

fn packets(all: &[Found], file: File) -> Result<(), WriteError> {
    let mut writer = AnnotatedWriter::new(BufWriter::new(file), "paceline")?;
    let (mut number, mut last) = (0, 0);
    for found in all {
        let interface = writer.add_interface(&found.program.name, LinkType::ETHERNET)?;
        for (goal, variant, confirmed) in found.inputs() {
            number += 1;
            let input = &confirmed.input;
            let mut comment = format!("{}: {}", confirmed.verdict.name(), found.purpose(goal, variant));
            let text = found.text(goal.slot());
            if !text.is_empty() {
                comment += &format!("\n{text}");
            }
            comment += &format!("\n{}", to_text(&input.packet));
            if !input.maps.is_empty() {
                comment += "\nwith elements in maps";
            }
            if input.route.is_some() {
                comment += "\nwith a network";
            }
            let notes = Notes {
                comment: &comment,
                packet_id: Some(number),
                queue: Some(input.queue.into()),
                verdict: Some((confirmed.verdict as u32).into()),
            };
            let len = input.packet.len() as u32;
            writer.push(interface, input.time_ns, &input.packet, len, &notes)?;
            last = input.time_ns;
        }
    }
    writer.finish(last, 0)
}
