//! Interfaces and their clocks.

use super::option::Options;
use crate::byte_order::ByteOrder;
use crate::error::ReadError;
use crate::link_type::LinkType;

pub(super) const IF_TSRESOL: u16 = 9;
pub(super) const IF_TSOFFSET: u16 = 14;

const NANOSECONDS: u64 = 1_000_000_000;

/// Conversion of time stamps to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds per unit.
    Nanoseconds(u64),
    /// Units per nanosecond.
    PerNanosecond(u128),
    /// Units per second, as a power of 2.
    PowerOfTwo(u8),
}

/// Resolution and offset of an interface's time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    unit: Unit,
    /// Offset in nanoseconds.
    offset: i128,
}

impl Default for Clock {
    fn default() -> Self {
        Self { unit: Unit::Nanoseconds(1_000), offset: 0 }
    }
}

impl Clock {
    /// The unit of an `if_tsresol` value: a negative power of 2 if the highest bit is set, otherwise of 10.
    fn unit(resolution: u8) -> Unit {
        if resolution & 0x80 != 0 {
            return Unit::PowerOfTwo(resolution & 0x7f);
        }
        match resolution {
            0..=9 => Unit::Nanoseconds(10u64.pow(9 - u32::from(resolution))),
            // The resolution is so fine that 64-bit time stamps are less than a nanosecond: any divisor above 2^64 is equivalent.
            _ => Unit::PerNanosecond(10u128.checked_pow(u32::from(resolution) - 9).unwrap_or(u128::MAX)),
        }
    }

    /// Nanoseconds since the epoch, rounded down and clamped to 64 bits.
    #[inline]
    pub(crate) fn nanoseconds(&self, stamp: u64) -> u64 {
        let since_offset = match self.unit {
            Unit::Nanoseconds(unit) => u128::from(stamp) * u128::from(unit),
            Unit::PerNanosecond(units) => u128::from(stamp) / units,
            Unit::PowerOfTwo(power) => (u128::from(stamp) * u128::from(NANOSECONDS)) >> power,
        };
        // Both are less than 2^64 * 10^9, so the sum fits 128 bits.
        let total = since_offset as i128 + self.offset;
        u64::try_from(total).unwrap_or(if total < 0 { 0 } else { u64::MAX })
    }
}

/// Properties of an Interface Description Block that packets depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) link_type: LinkType,
    /// Snapshot length in bytes; 0 for no limit.
    pub(crate) snaplen: u32,
    pub(crate) clock: Clock,
}

impl Interface {
    /// Decodes the block with header `head` and these options.
    pub(crate) fn decode(
        head: &[u8; 16],
        options: &[u8],
        order: ByteOrder,
        offset: u64,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            link_type: LinkType(u32::from(order.u16(head, 8))),
            snaplen: order.u32(head, 12),
            clock: decode_clock(options, order, offset)?,
        })
    }
}

fn decode_clock(options: &[u8], order: ByteOrder, offset: u64) -> Result<Clock, ReadError> {
    let mut clock = Clock::default();
    let malformed = |code, cause| ReadError::Option { offset, code, cause };
    for option in Options::new(options, order) {
        let option = option.map_err(|e| malformed(e.code, "reaches past the end of the block"))?;
        match (option.code, option.value) {
            (IF_TSRESOL, &[resolution]) => clock.unit = Clock::unit(resolution),
            (IF_TSRESOL, _) => return Err(malformed(IF_TSRESOL, "(if_tsresol) is not one byte long")),
            (IF_TSOFFSET, value) => {
                let seconds = value
                    .try_into()
                    .map_err(|_| malformed(IF_TSOFFSET, "(if_tsoffset) is not eight bytes long"))?;
                clock.offset = i128::from(order.i64(seconds)) * i128::from(NANOSECONDS);
            }
            _ => {}
        }
    }
    Ok(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(resolution: u8, offset_seconds: i64) -> Clock {
        Clock { unit: Clock::unit(resolution), offset: i128::from(offset_seconds) * i128::from(NANOSECONDS) }
    }

    #[test]
    fn decimal_and_binary_resolutions() {
        assert_eq!(clock(6, 0).nanoseconds(1_500_000), 1_500_000_000);
        assert_eq!(clock(0, 0).nanoseconds(2), 2 * NANOSECONDS);
        assert_eq!(clock(9, 0).nanoseconds(7), 7);
        assert_eq!(clock(12, 0).nanoseconds(7_999), 7);
        assert_eq!(clock(127, 0).nanoseconds(u64::MAX), 0);
        assert_eq!(clock(0x80 | 32, 0).nanoseconds(3 << 31), 1_500_000_000);
        assert_eq!(clock(0x80, 0).nanoseconds(4), 4 * NANOSECONDS);
        assert_eq!(clock(0xff, 0).nanoseconds(u64::MAX), 0);
    }

    #[test]
    fn offsets_and_what_64_bits_cannot_hold() {
        assert_eq!(clock(6, 10).nanoseconds(1), 10 * NANOSECONDS + 1_000);
        assert_eq!(clock(6, -1).nanoseconds(1_000_001), 1_000);
        assert_eq!(clock(6, -2).nanoseconds(1_000_001), 0);
        assert_eq!(clock(0, i64::MAX).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(clock(0, i64::MIN).nanoseconds(0), 0);
    }
}
