//! Members of a packet's frame, as code accesses them.

use paceline_frame::{Frame, Verdict};

/// Size of a frame in bytes.
pub(crate) const SIZE: i32 = size_of::<Frame>() as i32;
/// Offset of the packet's start.
pub(crate) const DATA: i32 = Frame::OFFSET_DATA as i32;
/// Offset of the packet's end.
pub(crate) const DATA_END: i32 = Frame::OFFSET_DATA_END as i32;
/// Offset of the verdict.
pub(crate) const VERDICT: i32 = Frame::OFFSET_VERDICT as i32;
/// Offset of the redirect target.
pub(crate) const REDIRECT: i32 = Frame::OFFSET_REDIRECT as i32;
/// The verdict that has a use for the redirect target.
pub(crate) const TO_REDIRECT: u32 = Verdict::Redirect as u32;
