//! What the generator knows of the machine: a light form of what a verifier would.

use paceline_isa::{Reg, RegSet};

/// Slots of stack that the main program uses.
pub(super) const CELLS: usize = 12;
/// Groups of packet pointers that are told apart.
const GROUPS: usize = 8;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing that may be used.
    Unset,
    /// A number of at most `max`.
    Number { max: u64 },
    /// The context.
    Context,
    /// A pointer into the packet, or its metadata: `at` bytes from where its group starts.
    Packet { group: u8, at: i16, from: Part },
    /// The end of the packet.
    End,
    /// The stack, `at` bytes from the frame pointer.
    Stack { at: i16 },
    /// Memory with `back` bytes before and `room` bytes from here on.
    Bytes { back: i16, room: i16, source: Source },
    /// The same or null; those of one `id` are null together.
    Nullable { room: i16, source: Source, id: u8 },
}

/// Where a packet pointer's group starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// At the packet's first byte.
    Data,
    /// At the first byte of the metadata.
    Meta,
    /// Somewhere in the packet.
    Inside,
}

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A value of a map that programs may write.
    Map,
    /// A value of a map that they may only read.
    Constant,
    /// The memory of a caller, perhaps its stack.
    Caller,
    /// A record of a ring buffer.
    Record,
    /// A slice of a dynptr: the packet, or the buffer that was given for it.
    Slice { writable: bool },
}

impl Kind {
    pub(super) const NUMBER: Self = Self::Number { max: u64::MAX };

    pub(super) fn is_number(self) -> bool {
        matches!(self, Self::Number { .. })
    }

    pub(super) fn is_pointer(self) -> bool {
        !matches!(self, Self::Unset | Self::Number { .. })
    }

    fn is_of_packet(self) -> bool {
        matches!(
            self,
            Self::Packet { .. }
                | Self::End
                | Self::Bytes { source: Source::Slice { .. }, .. }
                | Self::Nullable { source: Source::Slice { .. }, .. }
        )
    }

    /// What is true of both.
    fn meet(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::Number { max: a }, Self::Number { max: b }) => Self::Number { max: a.max(b) },
            (
                Self::Bytes { back, room, source },
                Self::Bytes { back: other_back, room: other_room, source: other },
            ) if source == other => {
                Self::Bytes { back: back.min(other_back), room: room.min(other_room), source }
            }
            _ => Self::Unset,
        }
    }
}

/// Eight aligned bytes of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Bytes that were written, as bits by rising address.
    pub(super) init: u8,
    /// The register that was stored here whole; [`Kind::Unset`] for other bytes.
    pub(super) kind: Kind,
}

impl Cell {
    const EMPTY: Self = Self { init: 0, kind: Kind::Unset };
    pub(super) const NUMBER: Self = Self { init: 0xff, kind: Kind::NUMBER };

    pub(super) fn is_whole_number(self) -> bool {
        self.init == 0xff && !self.kind.is_pointer()
    }
}

/// What is known at one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model {
    regs: [Kind; 10],
    /// From the frame pointer down.
    pub(super) cells: [Cell; CELLS],
    /// Bytes that each group of packet pointers is known to have from its start.
    ranges: [u16; GROUPS],
    next_group: u8,
    next_id: u8,
    /// Registers that steps leave alone.
    pub(super) locked: RegSet,
    /// Whether a dynptr lies at the place for it.
    pub(super) has_dynptr: bool,
    /// A cell that a slice may be: steps choose it often.
    pub(super) buffer: Option<usize>,
    /// Cells that no pointer was ever stored to, as bits: what they hold before they are written is zero.
    pub(super) without_pointers: u16,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            regs: [Kind::Unset; 10],
            cells: [Cell::EMPTY; CELLS],
            ranges: [0; GROUPS],
            next_group: 0,
            next_id: 0,
            locked: RegSet::EMPTY,
            has_dynptr: false,
            buffer: None,
            without_pointers: u16::MAX,
        }
    }

    pub(super) fn get(&self, reg: Reg) -> Kind {
        self.regs.get(usize::from(reg.number())).copied().unwrap_or(Kind::Stack { at: 0 })
    }

    pub(super) fn set(&mut self, reg: Reg, kind: Kind) {
        if let Some(place) = self.regs.get_mut(usize::from(reg.number())) {
            *place = kind;
        }
    }

    pub(super) fn lock(&mut self, reg: Reg) {
        self.locked = self.locked.union([reg].into_iter().collect());
    }

    fn update(&mut self, change: impl Fn(Kind) -> Kind) {
        let cells = self.cells.iter_mut().map(|cell| &mut cell.kind);
        self.regs.iter_mut().chain(cells).for_each(|kind| *kind = change(*kind));
    }

    /// A group of packet pointers of which nothing is known; the oldest is given up for it.
    pub(super) fn new_group(&mut self) -> u8 {
        let group = self.next_group;
        self.next_group = (group + 1) % GROUPS as u8;
        self.ranges[usize::from(group)] = 0;
        let is_old = |kind| matches!(kind, Kind::Packet { group: other, .. } if other == group);
        self.forget(is_old);
        group
    }

    /// Bytes from a packet pointer on that are known to be there.
    pub(super) fn room(&self, group: u8, at: i16) -> i16 {
        self.ranges[usize::from(group)] as i16 - at
    }

    pub(super) fn learn_range(&mut self, group: u8, bytes: i16) {
        let range = &mut self.ranges[usize::from(group)];
        *range = (*range).max(bytes.max(0) as u16);
    }

    pub(super) fn new_id(&mut self) -> u8 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    /// What was null or not is not.
    pub(super) fn not_null(&mut self, id: u8) {
        self.update(|kind| match kind {
            Kind::Nullable { room, source, id: other } if other == id => {
                Kind::Bytes { back: 0, room, source }
            }
            other => other,
        });
    }

    /// Registers and spilled registers that are of no use any more. What was spilled stays a pointer in memory, so that
    /// nobody takes it for a number.
    pub(super) fn forget(&mut self, which: impl Fn(Kind) -> bool) {
        self.regs.iter_mut().filter(|kind| which(**kind)).for_each(|kind| *kind = Kind::Unset);
        let stale = self.cells.iter_mut().filter(|cell| which(cell.kind));
        stale.for_each(|cell| *cell = Cell::EMPTY);
    }

    /// A call of a helper or function was made.
    pub(super) fn call(&mut self, result: Kind) {
        self.regs[..6].fill(Kind::Unset);
        self.regs[0] = result;
    }

    pub(super) fn packet_moved(&mut self) {
        self.forget(Kind::is_of_packet);
    }

    /// What holds on both ways to here.
    pub(super) fn meet(&mut self, other: &Self) {
        for (kind, other) in self.regs.iter_mut().zip(other.regs) {
            *kind = kind.meet(other);
        }
        for (cell, other) in self.cells.iter_mut().zip(other.cells) {
            let pointers = cell.kind.is_pointer() || other.kind.is_pointer();
            let kind = cell.kind.meet(other.kind);
            *cell = match pointers && kind == Kind::Unset {
                // Perhaps the bytes of a pointer: as good as never written.
                true => Cell::EMPTY,
                false => Cell { init: cell.init & other.init, kind },
            };
            if cell.init != 0xff {
                cell.kind = Kind::Unset;
            }
        }
        for (range, other) in self.ranges.iter_mut().zip(other.ranges) {
            *range = (*range).min(other);
        }
        self.has_dynptr &= other.has_dynptr;
        self.buffer = self.buffer.filter(|buffer| other.buffer == Some(*buffer));
        self.without_pointers &= other.without_pointers;
        // A group that only one of them still has is another one for the other.
        self.next_group = self.next_group.max(other.next_group);
    }

    /// What holds at the start of every round of a loop whose body may write all registers that are not locked: pointers
    /// that calls keep stay, locked; others may hold anything by then.
    pub(super) fn enter_loop(&mut self) {
        self.regs[..6].fill(Kind::Unset);
        for reg in [Reg::R6, Reg::R7, Reg::R8, Reg::R9] {
            match self.get(reg) {
                Kind::Number { .. } if !self.locked.contains(reg) => self.set(reg, Kind::Unset),
                Kind::Nullable { .. } => self.set(reg, Kind::Unset),
                kind if kind.is_pointer() => self.lock(reg),
                _ => {}
            }
        }
        for cell in &mut self.cells {
            if cell.kind.is_number() {
                cell.kind = Kind::NUMBER;
            }
        }
    }
}
