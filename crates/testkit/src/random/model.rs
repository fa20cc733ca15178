//! The generator's model of the machine: a simplified verifier state.

use paceline_isa::{Reg, RegSet};

/// Stack slots of the main program.
pub(super) const CELLS: usize = 12;
/// Maximum number of groups of packet pointers.
const GROUPS: usize = 8;

/// Contents of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not readable.
    Unset,
    /// A number of at most `max`.
    Number { max: u64 },
    /// The context.
    Context,
    /// A pointer into the packet or its metadata, `at` bytes from the start of its group.
    Packet { group: u8, at: i16, from: Part },
    /// The end of the packet.
    End,
    /// The stack, `at` bytes from the frame pointer.
    Stack { at: i16 },
    /// Memory with `back` bytes before the pointer and `room` bytes from it on.
    Bytes { back: i16, room: i16, source: Source },
    /// A nullable pointer; those of one `id` are null together.
    Nullable { room: i16, source: Source, id: u8 },
}

/// Start of a group of packet pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// At the packet's first byte.
    Data,
    /// At the first byte of the metadata.
    Meta,
    /// At an unknown offset of the packet.
    Inside,
}

/// Kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A value of a map that is writable by programs.
    Map,
    /// A value of a read-only map.
    Constant,
    /// Memory from a caller, perhaps its stack.
    Caller,
    /// A record of a ring buffer.
    Record,
    /// A slice of a dynptr: the packet, or the buffer that was passed for it.
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

    /// The common part of two states.
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
    /// Initialized bytes, as bits by increasing address.
    pub(super) init: u8,
    /// Contents of a register that was spilled here whole; [`Kind::Unset`] for other bytes.
    pub(super) kind: Kind,
}

impl Cell {
    const EMPTY: Self = Self { init: 0, kind: Kind::Unset };
    pub(super) const NUMBER: Self = Self { init: 0xff, kind: Kind::NUMBER };

    pub(super) fn is_whole_number(self) -> bool {
        self.init == 0xff && !self.kind.is_pointer()
    }
}

/// State at one point of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Model {
    regs: [Kind; 10],
    /// From the frame pointer down.
    pub(super) cells: [Cell; CELLS],
    /// Checked bytes of each group of packet pointers, from its start.
    ranges: [u16; GROUPS],
    next_group: u8,
    next_id: u8,
    /// Registers that steps must not overwrite.
    pub(super) locked: RegSet,
    /// Whether its stack slot holds a dynptr.
    pub(super) has_dynptr: bool,
    /// A cell that a slice may alias; steps choose it often.
    pub(super) buffer: Option<usize>,
    /// Cells that never held a pointer, as bits: their uninitialized bytes are zero.
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

    /// A new group of packet pointers without checked bytes; replaces the oldest.
    pub(super) fn new_group(&mut self) -> u8 {
        let group = self.next_group;
        self.next_group = (group + 1) % GROUPS as u8;
        self.ranges[usize::from(group)] = 0;
        let is_old = |kind| matches!(kind, Kind::Packet { group: other, .. } if other == group);
        self.forget(is_old);
        group
    }

    /// Checked bytes after a packet pointer.
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

    /// Marks nullable pointers of an id as not null.
    pub(super) fn not_null(&mut self, id: u8) {
        self.update(|kind| match kind {
            Kind::Nullable { room, source, id: other } if other == id => {
                Kind::Bytes { back: 0, room, source }
            }
            other => other,
        });
    }

    /// Invalidates registers and spilled registers. A spilled value stays a pointer in memory, so that no step reads it as a
    /// number.
    pub(super) fn forget(&mut self, which: impl Fn(Kind) -> bool) {
        self.regs.iter_mut().filter(|kind| which(**kind)).for_each(|kind| *kind = Kind::Unset);
        let stale = self.cells.iter_mut().filter(|cell| which(cell.kind));
        stale.for_each(|cell| *cell = Cell::EMPTY);
    }

    /// Effects of a call of a helper or function.
    pub(super) fn call(&mut self, result: Kind) {
        self.regs[..6].fill(Kind::Unset);
        self.regs[0] = result;
    }

    pub(super) fn packet_moved(&mut self) {
        self.forget(Kind::is_of_packet);
    }

    /// Joins two states.
    pub(super) fn meet(&mut self, other: &Self) {
        for (kind, other) in self.regs.iter_mut().zip(other.regs) {
            *kind = kind.meet(other);
        }
        for (cell, other) in self.cells.iter_mut().zip(other.cells) {
            let pointers = cell.kind.is_pointer() || other.kind.is_pointer();
            let kind = cell.kind.meet(other.kind);
            *cell = match pointers && kind == Kind::Unset {
                // Perhaps the bytes of a pointer: treated as uninitialized.
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
        // A group that only one state has is not the same as a later group with its number.
        self.next_group = self.next_group.max(other.next_group);
    }

    /// The state at the start of every iteration of a loop whose body may write all registers that are not locked:
    /// callee-saved pointers are locked and stay; other registers may hold anything.
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
