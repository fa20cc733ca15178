//! Effects of operations: which memory they read and write, and whether they can be removed.

use paceline_spec::helper::{Arg, Helper};

use crate::ir::op::{Callee, Op, RunOp};
use crate::ir::types::{Access, Region};

/// A set of classes of memory. No access to one class touches another, but one with a region of several classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Classes(u8);

impl Classes {
    /// No memory.
    pub const NONE: Self = Self(0);
    /// The packet and its metadata.
    pub const PACKET: Self = Self(1);
    /// Values of maps.
    pub const MAPS: Self = Self(2);
    /// The running function's stack.
    pub const STACK: Self = Self(4);
    /// Stacks of functions further out.
    pub const CALLER_STACK: Self = Self(8);
    /// Fields of the context, among them where the packet is.
    pub const CONTEXT: Self = Self(16);
    /// All other memory.
    pub const OTHER: Self = Self(32);
    /// Number of classes.
    pub const COUNT: usize = 6;
    /// All memory but the context's, which only operations on the context and helpers reach.
    pub const MEMORY: Self = Self(0b10_1111);
    /// All classes.
    pub const ALL: Self = Self(0b11_1111);

    /// The union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether both have a class.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it has no class.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Positions of its classes, below [`COUNT`](Self::COUNT).
    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..Self::COUNT).filter(move |position| self.0 >> position & 1 != 0)
    }

    /// The classes that a region may have.
    #[must_use]
    pub const fn of(region: Region) -> Self {
        match region {
            Region::Stack => Self::STACK,
            Region::CallerStack => Self::CALLER_STACK,
            Region::Packet => Self::PACKET,
            Region::MapValue(_) | Region::SomeMapValue => Self::MAPS,
            // Nobody writes them.
            Region::Constant(_) => Self::NONE,
            // A function's memory argument may be anything that its caller has, a slice any part of the packet.
            Region::Memory => Self(0b10_1011),
            Region::Mixed => Self::MEMORY,
        }
    }
}

/// Effects of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Memory that it may read.
    pub reads: Classes,
    /// Memory that it may write, or that others may have written when it is done.
    pub writes: Classes,
    /// Whether it moves the packet, so that pointers to it are stale.
    pub moves_packet: bool,
    /// Whether it must stay although nobody uses its result: it writes, calls, or orders accesses.
    pub stays: bool,
    /// Whether the function may return in it.
    pub may_return: bool,
}

impl Effects {
    /// No effects: the result depends on the operands only.
    pub const PURE: Self = Self {
        reads: Classes::NONE,
        writes: Classes::NONE,
        moves_packet: false,
        stays: false,
        may_return: false,
    };

    /// Any effect but a return from the function.
    pub const ANY: Self = Self {
        reads: Classes::ALL,
        writes: Classes::ALL,
        moves_packet: true,
        stays: true,
        may_return: false,
    };

    const fn reading(reads: Classes) -> Self {
        Self { reads, ..Self::PURE }
    }

    const fn writing(writes: Classes) -> Self {
        Self { writes, stays: true, ..Self::PURE }
    }

    /// Whether it neither reads nor writes memory, and may be removed.
    #[must_use]
    pub fn is_pure(&self) -> bool {
        *self == Self::PURE
    }
}

impl Op {
    /// Effects of the operation.
    #[must_use]
    #[inline]
    pub fn effects(&self) -> Effects {
        match *self {
            Self::Load { access, .. } => Effects::reading(Classes::of(access.region)),
            Self::Store { access, .. } => Effects::writing(Classes::of(access.region)),
            // Other workers' writes to shared memory are visible after these.
            Self::Atomic { access, .. }
            | Self::LoadAcquire { access, .. }
            | Self::StoreRelease { access, .. } => ordered(access),
            Self::ContextLoad { .. } => Effects::reading(Classes::CONTEXT),
            Self::ContextStore { .. } => Effects::writing(Classes::CONTEXT),
            Self::PacketLoad { .. } => Effects::reading(Classes::PACKET.union(Classes::CONTEXT)),
            Self::Run(op) => of_run(op),
            Self::Call { callee, .. } => of_call(callee),
            _ if self.is_computed() => Effects::PURE,
            // An operation that nobody has said anything of yet.
            _ => Effects::ANY,
        }
    }

    /// Whether it must stay although nobody uses its result: [`Effects::stays`].
    #[must_use]
    #[inline]
    pub fn stays(&self) -> bool {
        let loads = matches!(self, Self::Load { .. } | Self::ContextLoad { .. } | Self::PacketLoad { .. });
        !loads && !self.is_computed()
    }

    /// Whether the result is computed from nothing but the operands.
    #[must_use]
    #[inline]
    pub(crate) fn is_computed(&self) -> bool {
        matches!(
            self,
            Self::Const { .. }
                | Self::Address(_)
                | Self::StackAddress { .. }
                | Self::Binary { .. }
                | Self::Neg { .. }
                | Self::SignExtend { .. }
                | Self::ZeroExtend { .. }
                | Self::Truncate { .. }
                | Self::Swap { .. }
                | Self::Compare { .. }
        )
    }

    /// Whether it may move the packet: [`Effects::moves_packet`].
    #[must_use]
    #[inline]
    pub fn moves_packet(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::Run(_)) && self.effects().moves_packet
    }

    /// Whether it is a load of memory that others may write at any time. A program sees what it has loaded: such a load is neither
    /// repeated nor replaced by an earlier one, and not moved over another one.
    #[must_use]
    pub fn reads_shared(&self) -> bool {
        matches!(self, Self::Load { access, .. } if access.region.is_shared())
    }
}

fn of_run(op: RunOp) -> Effects {
    match op {
        // The area is made of what the packet has.
        RunOp::Begin { area: true, .. } => {
            let reads = Classes::PACKET.union(Classes::CONTEXT);
            Effects { reads, ..Effects::writing(Classes::CONTEXT) }
        }
        // A tag that was put off is put into the packet.
        RunOp::Finish => {
            let packet = Classes::PACKET.union(Classes::CONTEXT);
            Effects { reads: packet, moves_packet: true, ..Effects::writing(packet) }
        }
        // Each answer is that of its time.
        RunOp::Begin { area: false, .. } | RunOp::Count { .. } | RunOp::Fault => {
            Effects::writing(Classes::NONE)
        }
    }
}

fn ordered(access: Access) -> Effects {
    let classes = Classes::of(access.region);
    let shared = Classes::MAPS.union(Classes::OTHER);
    Effects { reads: classes.union(shared), ..Effects::writing(classes.union(shared)) }
}

fn of_call(callee: Callee) -> Effects {
    match callee {
        Callee::TailCall => Effects { may_return: true, ..Effects::ANY },
        Callee::Function(_) | Callee::Kfunc { .. } | Callee::Program => Effects::ANY,
        Callee::Helper(id) => Helper::from_imm(id).map_or(Effects::ANY, of_helper),
        Callee::LookUp { .. } => Effects { stays: true, ..Effects::writing(Classes::NONE) },
    }
}

/// Effects of a helper by its prototype.
fn of_helper(helper: &Helper) -> Effects {
    let Some(prototype) = &helper.prototype else { return Effects::ANY };
    let start = Effects { moves_packet: prototype.moves_packet, stays: true, ..Effects::PURE };
    let mut effects = prototype.args.iter().fold(start, |effects, arg| {
        let (reads, writes) = of_argument(arg);
        Effects { reads: effects.reads.union(reads), writes: effects.writes.union(writes), ..effects }
    });
    if helper.changes_map() {
        effects.writes = effects.writes.union(Classes::MAPS);
    }
    if helper.prints() {
        effects.reads = Classes::ALL;
    }
    if prototype.moves_packet {
        effects.writes = effects.writes.union(Classes::PACKET).union(Classes::CONTEXT);
    }
    effects
}

/// Memory that a helper reads and writes because of an argument. The pointer may be of any class but the context's.
const fn of_argument(arg: &Arg) -> (Classes, Classes) {
    match arg {
        Arg::Scalar
        | Arg::Unchecked
        | Arg::Map
        | Arg::Size
        | Arg::SizeOrZero
        | Arg::RecordSize
        | Arg::Socket
        | Arg::ReleasedSocket => (Classes::NONE, Classes::NONE),
        Arg::MapKey | Arg::MapValue | Arg::ReadMem | Arg::ReadMemOrNull | Arg::ReadBytes(_) | Arg::Text => {
            (Classes::MEMORY, Classes::NONE)
        }
        // Helpers with the context read and write the packet, and fields beside it.
        Arg::Context => {
            let packet = Classes::PACKET.union(Classes::CONTEXT);
            (packet, packet)
        }
        Arg::NextValue
        | Arg::WriteMem
        | Arg::WriteMemOrNull
        | Arg::ReadWriteMem
        | Arg::WriteBytes(_)
        | Arg::ReadWriteBytes(_)
        | Arg::Dynptr
        | Arg::NewValueDynptr
        | Arg::NewRecordDynptr
        | Arg::ReleasedDynptr
        | Arg::Record => (Classes::MEMORY, Classes::MEMORY),
        // The function, or whoever has the lock, may do anything.
        Arg::SpinLock | Arg::HeldSpinLock | Arg::Timer | Arg::Function | Arg::StackOrNull => {
            (Classes::ALL, Classes::ALL)
        }
    }
}
