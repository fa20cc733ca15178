//! Bytes of a packet that a filter looks at.

use super::check::Filter;
use super::insn::{LoadFrom, Operation, Register};

/// The longest IPv4 header in bytes: the most that a load of a header's length gives.
const LONGEST_HEADER: u64 = 60;

impl Filter {
    /// Number of bytes at the start of a packet that can decide, beside its length on the wire: the filter gives the same for a packet
    /// that is cut to as many. `None` if the offset of a load depends on more than the length of an IPv4 header, or if there is a loop.
    ///
    /// By the rules of libpcap, where no load reaches data other than the packet's.
    #[must_use]
    pub fn extent(&self) -> Option<u64> {
        let operations =
            || self.insns().iter().filter_map(|insn| Some((insn.row()?.operation, u64::from(insn.k))));
        let mut index = LONGEST_HEADER;
        for (operation, k) in operations() {
            match operation {
                Operation::Tax | Operation::Load(Register::X, LoadFrom::Memory | LoadFrom::Length) => {
                    return None;
                }
                // The captured length bounds the iterations of a loop.
                Operation::Jump if (k as u32).cast_signed() < 0 => return None,
                Operation::Load(Register::X, LoadFrom::Immediate) => index = index.max(k),
                _ => {}
            }
        }
        let end = |(operation, k)| match operation {
            Operation::Load(_, LoadFrom::Absolute(size)) => k + u64::from(size.bytes()),
            Operation::Load(_, LoadFrom::Indirect(size)) => index + k + u64::from(size.bytes()),
            Operation::Load(_, LoadFrom::HeaderLength) => k + 1,
            _ => 0,
        };
        operations().map(end).max()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Filter, Purpose, text};

    fn extent(text: &str) -> Option<u64> {
        let insns = text::parse(text).expect("a program");
        Filter::new(insns, Purpose::UserSpace).expect("a sound program").extent()
    }

    #[test]
    fn the_farthest_load_decides() {
        assert_eq!(extent("ret #0"), Some(0));
        assert_eq!(extent("ldh [12]\n jne #0x800, drop\n ret #1\n drop: ret #0"), Some(14));
        assert_eq!(extent("ldxb 4*([14]&0xf)\n ldh [x + 16]\n ret a"), Some(78));
        assert_eq!(extent("ldx #100\n ldb [x + 1]\n ret a"), Some(102));
        assert_eq!(extent("ldb [0]\n tax\n ldb [x + 1]\n ret a"), None);
        assert_eq!(extent("ldx #len\n ldb [x + 1]\n ret a"), None);
    }
}
