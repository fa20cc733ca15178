//! Windows of records, which are read one after the other and decoded on any thread.

use std::ops::Range;

use paceline_frame::{Burst, FrameMeta};

use crate::decoder::Decoder;
use crate::error::ReadError;
use crate::records::Records;
use crate::sink::{Place, Sink};

/// Whole records of a capture as they are in the file, with the places of their packets in groups.
///
/// [`CaptureReader::fill_window`](crate::CaptureReader::fill_window) copies no packet. A thread for each group decodes its packets:
/// [`group`](Self::group). A window can be filled again.
#[derive(Default)]
pub struct Window {
    /// The reader's buffer, and the part of it that has the records.
    pub(crate) bytes: Vec<u8>,
    pub(crate) filled: Range<usize>,
    /// Offset of the first record in the capture.
    pub(crate) offset: u64,
    /// Decodes the packets; `None` before the first fill.
    pub(crate) decoder: Option<Decoder>,
    /// Offsets of the packets' records in the window.
    pub(crate) groups: Vec<Vec<u32>>,
    /// The group of each packet, in the order of the capture.
    pub(crate) order: Vec<u16>,
    pub(crate) records: Option<Records>,
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").finish_non_exhaustive()
    }
}

/// Division of packets into the groups of windows.
pub struct Division<G> {
    /// Number of groups, at most 65,536.
    pub groups: usize,
    /// Gives the number of a packet's group, which is less than `groups`.
    pub group_of: G,
    /// Number of packets that a window takes.
    pub most: usize,
    /// Whether windows have what else a writer needs: [`Window::records`].
    pub keep_records: bool,
}

impl<G> std::fmt::Debug for Division<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Division").finish_non_exhaustive()
    }
}

/// Takes the places of packets.
pub(crate) struct Places<'a, G, const KEEPS_RECORDS: bool> {
    pub(crate) groups: &'a mut [Vec<u32>],
    pub(crate) order: &'a mut Vec<u16>,
    pub(crate) group_of: G,
    pub(crate) count: usize,
    pub(crate) most: usize,
    /// Offset of the window in the capture.
    pub(crate) offset: u64,
}

impl<G: FnMut(&[u8]) -> usize, const KEEPS_RECORDS: bool> Sink for Places<'_, G, KEEPS_RECORDS> {
    const KEEPS_RECORDS: bool = KEEPS_RECORDS;

    #[inline(always)]
    fn push(&mut self, packet: &[u8], _: FrameMeta, place: Place) -> bool {
        if self.count == self.most {
            return false;
        }
        self.count += 1;
        // A window is shorter than 4 GiB: it has one record of at most 16 MiB, or the records of a buffer.
        let group = (self.group_of)(packet);
        self.groups[group].push((place.record - self.offset) as u32);
        self.order.push(group as u16);
        true
    }

    #[inline]
    fn count(&self) -> usize {
        self.count
    }
}

impl Window {
    /// Whether the records are those of a whole buffer, as from a file. A pipe gives what there is.
    #[must_use]
    pub fn is_full(&self) -> bool {
        2 * self.filled.len() > self.bytes.len()
    }

    /// A reader of a group's packets, in the order of the capture.
    #[must_use]
    pub fn group(&self, number: usize) -> GroupReader {
        GroupReader { number, next: 0, decoder: self.decoder.clone() }
    }

    /// The group of each packet, in the order of the capture.
    #[must_use]
    pub fn order(&self) -> &[u16] {
        &self.order
    }

    /// The capture's other contents, if they are kept.
    #[must_use]
    pub fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }
}

/// Decodes the packets of a group of a [`Window`].
pub struct GroupReader {
    number: usize,
    /// Index of the next packet.
    next: usize,
    decoder: Option<Decoder>,
}

impl std::fmt::Debug for GroupReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupReader").finish_non_exhaustive()
    }
}

impl GroupReader {
    /// Adds the next packets to a burst; returns their number, 0 at the end or if it is full. `window` is the one whose group it is.
    ///
    /// # Errors
    /// [`ReadError`] if `window` is another one.
    pub fn fill(&mut self, window: &Window, burst: &mut Burst) -> Result<usize, ReadError> {
        let Some(decoder) = &mut self.decoder else { return Ok(0) };
        let places =
            window.groups.get(self.number).and_then(|group| group.get(self.next..)).unwrap_or_default();
        let data = window.bytes.get(window.filled.clone()).unwrap_or_default();
        let filled = decoder.take_each(data, window.offset, places, burst)?;
        self.next += filled;
        Ok(filled)
    }
}
