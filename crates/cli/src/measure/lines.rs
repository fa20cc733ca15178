//! The lines that instructions are spent on.
//!
//! These are counts, not times: the instructions that the plain interpreter executes for the packets, by the line that each was made from. Native
//! code takes another time for each of them, and a clock that is read at every line would mostly measure itself.

use paceline::ArrivalError;
use paceline::explain::LineCounts;

use super::contender::Contender;
use crate::common::capture::CapturedPacket;

/// A line with its share of the instructions.
#[derive(Clone, Debug)]
pub(crate) struct HotLine {
    /// `firewall.bpf.c:88`
    pub(crate) place: String,
    pub(crate) text: String,
    /// Mean number of a packet.
    pub(crate) instructions: f64,
    /// Of all instructions, 0 to 1.
    pub(crate) share: f64,
}

/// The lines of programs.
#[derive(Clone, Debug)]
pub(crate) struct Hot {
    /// The line with the most instructions first.
    pub(crate) lines: Vec<HotLine>,
    /// The share of the instructions that were made from no line.
    pub(crate) without_line: f64,
}

/// Counts the instructions of packets by line.
pub(crate) fn hot_lines(contender: &mut Contender, packets: &[CapturedPacket]) -> Result<Hot, ArrivalError> {
    let mut explainer = contender.subject.explainer();
    let mut counts = LineCounts::default();
    for CapturedPacket { bytes, meta } in packets {
        let packet = contender.origin.arrival(bytes, *meta);
        explainer.count_lines(&packet, &mut contender.host, &mut counts)?;
    }
    let (all, packets) = (counts.total().max(1) as f64, packets.len().max(1) as f64);
    let line =
        |((file, number), line): (&(std::sync::Arc<str>, u32), &paceline::explain::LineCount)| HotLine {
            place: format!("{}:{number}", file.rsplit('/').next().unwrap_or(file)),
            text: line.text.trim().to_owned(),
            instructions: line.instructions as f64 / packets,
            share: line.instructions as f64 / all,
        };
    let mut lines: Vec<_> = counts.lines.iter().map(line).collect();
    lines.sort_by(|a, b| b.instructions.total_cmp(&a.instructions));
    Ok(Hot { lines, without_line: counts.others as f64 / all })
}
