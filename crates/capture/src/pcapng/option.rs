//! Options of blocks.

use crate::byte_order::ByteOrder;

/// Options of a packet that are invalid, or must not be copied, after a program may have changed it: `epb_hash`, and custom options
/// that editing tools must not copy.
pub(crate) const ALTERED_BY_EDITING: [u16; 3] = [3, 19372, 19373];

/// An option that is out of its block's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutsideBlock {
    pub(crate) code: u16,
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opt<'a> {
    pub(crate) code: u16,
    pub(crate) value: &'a [u8],
    /// The whole option including code, length and padding.
    pub(crate) whole: &'a [u8],
}

/// Iterator over options, up to the end-of-options option.
pub(crate) struct Options<'a> {
    rest: &'a [u8],
    order: ByteOrder,
}

impl<'a> Options<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { rest: bytes, order }
    }

    /// The bytes that were not decoded.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Opt<'a>, OutsideBlock>;

    fn next(&mut self) -> Option<Self::Item> {
        let head: &[u8; 4] = self.rest.first_chunk()?;
        let code = self.order.u16(head, 0);
        let len = usize::from(self.order.u16(head, 2));
        if code == 0 {
            return None;
        }
        let (Some(value), Some((whole, rest))) =
            (self.rest.get(4..4 + len), self.rest.split_at_checked(4 + len.next_multiple_of(4)))
        else {
            return Some(Err(OutsideBlock { code }));
        };
        self.rest = rest;
        Some(Ok(Opt { code, value, whole }))
    }
}
