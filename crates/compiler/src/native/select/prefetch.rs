//! Prefetch distances.

use crate::ir::{Function, Inst, Op, Region};

use crate::native::settings::Prefetch;

/// Prefetch distance of [`Prefetch::Auto`] in packets.
const PREFETCH_AHEAD: u8 = 16;
/// Operations of a program for which prefetching pays.
const PREFETCH_FROM: usize = 16;

impl Prefetch {
    /// The distance for a function, in packets; 0 for no prefetch.
    pub(super) fn distance(self, function: &Function) -> u8 {
        let touches = |inst: &Inst| {
            let op = &function.inst(*inst).op;
            matches!(op, Op::PacketLoad { .. })
                || op.access().is_some_and(|(.., access)| access.region == Region::Packet)
        };
        match self {
            Self::Ahead(packets) => packets,
            Self::Auto => {
                let mut insts = function.layout.iter().flat_map(|block| &function.block(*block).insts);
                let pays = function.inst_count() >= PREFETCH_FROM && insts.any(touches);
                if pays { PREFETCH_AHEAD } else { 0 }
            }
        }
    }
}
