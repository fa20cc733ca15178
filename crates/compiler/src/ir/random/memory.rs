//! A machine whose memory is a few vectors, at addresses far from each other.

use std::collections::BTreeMap;

use paceline_isa::{AtomicOp, Size, Width, eval};
use paceline_verifier::state::MapRef;

use super::helpers;
use crate::ir::function::{Function, Module};
use crate::ir::interpret::{Called, Machine, RunError};
use crate::ir::op::{Address, Callee};
use crate::ir::types::{Access, Kind, Region, STACK_BYTES};

/// Address of the context.
pub(super) const CONTEXT: u64 = 0x1000;
const PACKET: u64 = 0x10_0000;
const MAPS: u64 = 0x20_0000;
const STACKS: u64 = 0x30_0000;
const MAP_HANDLES: u64 = 0x50_0000;
const FUNCTIONS: u64 = 0x60_0000;

/// Bytes of each map's only value.
pub(super) const MAP_BYTES: usize = 64;
/// Number of maps.
pub(super) const MAP_COUNT: usize = 2;
/// Least bytes of a packet.
pub(super) const PACKET_BYTES: usize = 64;
/// Lengths that a packet may have; few, so that comparisons meet them.
pub(super) const LENGTHS: usize = 5;
/// What bytes of a function's stack are that need not be zero on entry.
const POISON: u8 = 0xa5;
/// Functions that can be active.
const DEPTH: usize = 8;
/// Greatest number of rounds of a loop that calls a function.
const LOOPS: u64 = 3;
/// Rounds of `may_goto` that a function has.
const ROUNDS: u32 = 5;

/// Memory, and what was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    packet: Vec<u8>,
    maps: Vec<u8>,
    stacks: Vec<u8>,
    fields: [u64; 8],
    /// Active functions.
    depth: usize,
    rounds: [u32; DEPTH],
    calls: Vec<(Callee, [u64; 5])>,
    /// Functions whose address was taken, by their slots: words of their stacks that are zero.
    callbacks: BTreeMap<u32, u64>,
    /// Loops that call a function, with the rounds that are left.
    loops: Vec<Loop>,
}

/// A loop that calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    rounds: u64,
    left: u64,
    slot: u32,
    context: u64,
}

/// What a run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The value that the main program returns.
    pub result: Result<u64, RunError<u64>>,
    packet: Vec<u8>,
    maps: Vec<u8>,
    fields: [u64; 8],
    calls: Vec<(Callee, [u64; 5])>,
}

impl Memory {
    /// Memory with random bytes; stacks are zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let len = PACKET_BYTES + rng.usize(..LENGTHS);
        // Bytes at the ends of their range are more interesting.
        let mut bytes = |len: usize| -> Vec<u8> {
            let byte = |rng: &mut fastrand::Rng| match rng.u8(..4) {
                0 => 0,
                1 => 0xff,
                _ => rng.u8(..),
            };
            (0..len).map(|_| byte(&mut rng)).collect()
        };
        let (packet, maps) = (bytes(len), bytes(MAP_COUNT * MAP_BYTES));
        let mut fields = [0; 8];
        fields.iter_mut().for_each(|field| *field = rng.u32(..).into());
        (fields[0], fields[1]) = (PACKET, PACKET + packet.len() as u64);
        let stacks = vec![0; DEPTH * STACK_BYTES as usize];
        let (calls, callbacks, loops) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { packet, maps, stacks, fields, depth: 0, rounds: [ROUNDS; DEPTH], calls, callbacks, loops }
    }

    pub(super) fn outcome(self, result: Result<u64, RunError<u64>>) -> Outcome {
        let Self { packet, maps, fields, calls, .. } = self;
        Outcome { result, packet, maps, fields, calls }
    }

    /// The bytes at an address.
    fn bytes(&mut self, address: u64, len: usize) -> Result<&mut [u8], u64> {
        let regions = [(PACKET, &mut self.packet), (MAPS, &mut self.maps), (STACKS, &mut self.stacks)];
        for (start, bytes) in regions {
            if let Some(at) = address.checked_sub(start).and_then(|at| usize::try_from(at).ok())
                && let Some(found) = at.checked_add(len).and_then(|end| bytes.get_mut(at..end))
            {
                return Ok(found);
            }
        }
        Err(address)
    }

    /// The number at an address, zero-extended.
    fn get(&mut self, address: u64, size: Size) -> Result<u64, u64> {
        let bytes = self.bytes(address, size.bytes())?;
        let mut value = [0; 8];
        let at = if cfg!(target_endian = "little") { 0 } else { 8 - bytes.len() };
        value[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(u64::from_ne_bytes(value))
    }

    fn set(&mut self, address: u64, size: Size, value: u64) -> Result<(), u64> {
        let bytes = self.bytes(address, size.bytes())?;
        let at = if cfg!(target_endian = "little") { 0 } else { 8 - bytes.len() };
        bytes.copy_from_slice(&value.to_ne_bytes()[at..at + bytes.len()]);
        Ok(())
    }

    /// Demands that what is known of an access is true.
    fn demand(&self, address: u64, size: Size, access: &Access) -> Result<(), u64> {
        let (frame, len) = (self.stack() - STACK_BYTES as u64, self.packet.len() as u64);
        let map = |map: MapRef| MAPS + u64::from(map.index) * MAP_BYTES as u64;
        // The memory that the region is, and where offsets in it start; none if that is not one place.
        let (memory, start) = match access.region {
            Region::Stack => (frame..self.stack(), Some(self.stack())),
            Region::CallerStack => (STACKS..frame, None),
            Region::Packet => (PACKET..PACKET + len, Some(PACKET)),
            Region::MapValue(index) | Region::Constant(index) => {
                (map(index)..map(index) + MAP_BYTES as u64, Some(map(index)))
            }
            Region::SomeMapValue => {
                let offset = address.wrapping_sub(MAPS) % MAP_BYTES as u64;
                (MAPS..MAPS + (MAP_COUNT * MAP_BYTES) as u64, Some(address.wrapping_sub(offset)))
            }
            Region::Memory | Region::Mixed => (0..u64::MAX, None),
        };
        let is_own = (frame..self.stack()).contains(&address);
        let inside = memory.contains(&address) && memory.contains(&(address + size.bytes() as u64 - 1));
        let offset = start.map(|start| address.wrapping_sub(start).cast_signed());
        let in_span = offset
            .zip(access.span)
            .is_none_or(|(offset, span)| (i64::from(span.min)..=i64::from(span.max)).contains(&offset));
        let proven = access.packet_bytes.filter(|_| access.span.is_some_and(|span| span.min == span.max));
        let is_true = inside
            && in_span
            && !(is_own && access.region == Region::Memory)
            && proven.is_none_or(|bytes| u64::from(bytes) <= len);
        if is_true { Ok(()) } else { Err(address) }
    }

    fn field(&mut self, offset: i32) -> Result<&mut u64, u64> {
        let at = usize::try_from(offset / 4).map_err(|_| CONTEXT)?;
        self.fields.get_mut(at).ok_or(CONTEXT)
    }

    /// A function begins, of whose stack these words are zero. Returns the end of its stack.
    fn push(&mut self, zeroed: u64) -> Result<u64, u64> {
        let start = self.depth * STACK_BYTES as usize;
        let frame = self.stacks.get_mut(start..start + STACK_BYTES as usize).ok_or(STACKS)?;
        frame.fill(POISON);
        let words = frame.rchunks_exact_mut(8).enumerate();
        words.filter(|(word, _)| zeroed >> word & 1 != 0).for_each(|(_, word)| word.fill(0));
        self.rounds[self.depth] = ROUNDS;
        self.depth += 1;
        Ok(self.stack())
    }

    /// The next round of the innermost loop that calls a function, or its end.
    fn round(&mut self) -> Result<Called, u64> {
        let running = self.loops.last_mut().ok_or(FUNCTIONS)?;
        let Loop { rounds, left, slot, context } = *running;
        if left == 0 {
            self.loops.pop();
            return Ok(Called::Value(rounds));
        }
        running.left -= 1;
        let zeroed = *self.callbacks.get(&slot).ok_or(FUNCTIONS)?;
        let stack = self.push(zeroed)?;
        Ok(Called::Back { slot, args: [rounds - left, context, 0, 0, 0], stack })
    }

    /// The end of the running function's stack.
    fn stack(&self) -> u64 {
        STACKS + (self.depth * STACK_BYTES as usize) as u64
    }
}

impl Machine for Memory {
    type Fault = u64;

    fn enter(&mut self, function: &Function, _: Option<u32>) -> Result<u64, u64> {
        self.push(function.zeroed)
    }

    fn leave(&mut self, _: u64) {
        self.depth -= 1;
    }

    fn address(&mut self, module: &Module, address: Address) -> Result<u64, u64> {
        Ok(match address {
            Address::Map(map) => MAP_HANDLES + u64::from(map),
            Address::MapValue { map, offset } => MAPS + u64::from(map) * MAP_BYTES as u64 + u64::from(offset),
            Address::Function(function) => {
                let function = module.functions.get(function).ok_or(FUNCTIONS)?;
                self.callbacks.insert(function.slot, function.zeroed);
                FUNCTIONS + u64::from(function.slot)
            }
        })
    }

    fn may_be(&mut self, kind: Kind, address: u64) -> Result<bool, u64> {
        // Pointers may be outside of what they point into, but not far.
        let near = |start: u64| address.abs_diff(start) < 0x8_0000;
        Ok(match kind {
            Kind::Unknown | Kind::Memory => true,
            Kind::Context => near(CONTEXT),
            Kind::Stack | Kind::CallerStack => near(STACKS),
            Kind::Packet => near(PACKET),
            Kind::PacketEnd => address == PACKET + self.packet.len() as u64,
            Kind::Map => near(MAP_HANDLES),
            Kind::MapValue => address == 0 || near(MAPS),
        })
    }

    fn load(&mut self, address: u64, size: Size, access: &Access) -> Result<u64, u64> {
        self.demand(address, size, access)?;
        self.get(address, size)
    }

    fn store(&mut self, address: u64, size: Size, access: &Access, value: u64) -> Result<(), u64> {
        self.demand(address, size, access)?;
        self.set(address, size, value)
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        width: Width,
        address: u64,
        access: &Access,
        [value, expected]: [u64; 2],
    ) -> Result<u64, u64> {
        let size = if width == Width::W32 { Size::W } else { Size::Dw };
        let old = self.load(address, size, access)?;
        let new = match op {
            AtomicOp::Add { .. } => old.wrapping_add(value),
            AtomicOp::Or { .. } => old | value,
            AtomicOp::And { .. } => old & value,
            AtomicOp::Xor { .. } => old ^ value,
            AtomicOp::Xchg => value,
            AtomicOp::CmpXchg if old == eval::truncate(width, expected) => value,
            AtomicOp::CmpXchg => old,
        };
        self.set(address, size, new)?;
        Ok(old)
    }

    fn load_context(&mut self, _: u64, offset: i32, size: Size) -> Result<u64, u64> {
        let field = *self.field(offset)?;
        // The packet's pointers come whole.
        Ok(if offset < 8 { field } else { eval::zero_extend(size, field) })
    }

    fn store_context(&mut self, _: u64, offset: i32, size: Size, value: u64) -> Result<(), u64> {
        *self.field(offset)? = eval::zero_extend(size, value);
        Ok(())
    }

    fn load_packet(&mut self, at: i64, size: Size) -> Result<Option<u64>, u64> {
        let inside = u64::try_from(at).ok().filter(|at| at + size.bytes() as u64 <= self.packet.len() as u64);
        let Some(at) = inside else { return Ok(None) };
        let value = self.get(PACKET + at, size)?;
        Ok(Some(eval::swap(paceline_isa::SwapOrder::ToBe, size, value)))
    }

    fn may_goto(&mut self) -> Result<bool, u64> {
        let rounds = &mut self.rounds[self.depth - 1];
        match rounds.checked_sub(1) {
            Some(left) => *rounds = left,
            None => return Ok(true),
        }
        Ok(false)
    }

    fn call(&mut self, callee: Callee, args: [u64; 5], _: Option<u32>) -> Result<Called, u64> {
        let [first, second, third, ..] = args;
        // Where a function's stack is may change, but not what is there.
        let is_stack = |arg: u64| (STACKS..MAP_HANDLES).contains(&arg);
        self.calls.push((callee, args.map(|arg| if is_stack(arg) { STACKS } else { arg })));
        let Callee::Helper(id) = callee else {
            // A tail call that fails every other time.
            let returns = self.calls.len().is_multiple_of(2);
            return Ok(if returns { Called::Value(0) } else { Called::Return(third) });
        };
        let count = self.calls.len() as u64;
        Ok(Called::Value(match id {
            helpers::LOOK_UP => {
                let key = self.get(second, Size::W)?;
                self.calls.push((callee, [key; 5]));
                if key.is_multiple_of(3) { 0 } else { MAPS + key % MAP_COUNT as u64 * MAP_BYTES as u64 }
            }
            helpers::UPDATE => {
                let (key, value) = (self.get(second, Size::W)?, self.get(third, Size::Dw)?);
                self.set(MAPS + key % 16 * 8, Size::Dw, value)?;
                0
            }
            helpers::ADJUST => {
                // The packet is another one.
                self.packet.rotate_left(1);
                0
            }
            helpers::FIB => {
                let size = third as usize;
                let bytes = self.bytes(second, size)?;
                bytes.reverse();
                bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
                0
            }
            helpers::LOAD => {
                let value = self.get(PACKET, Size::Dw)?;
                self.set(third, Size::Dw, value)?;
                0
            }
            helpers::LOOP => {
                let slot = second.checked_sub(FUNCTIONS).and_then(|slot| slot.try_into().ok());
                let (rounds, slot) = (first % (LOOPS + 1), slot.ok_or(FUNCTIONS)?);
                self.loops.push(Loop { rounds, left: rounds, slot, context: third });
                return self.round();
            }
            _ => count.wrapping_mul(0x9e37_79b9) & 0xffff_ffff,
        }))
    }

    fn called_back(&mut self, result: u64) -> Result<Called, u64> {
        self.depth -= 1;
        // The low bit ends the loop.
        if let Some(running) = self.loops.last_mut().filter(|_| result & 1 != 0) {
            (running.rounds, running.left) = (running.rounds - running.left, 0);
        }
        self.round()
    }
}
