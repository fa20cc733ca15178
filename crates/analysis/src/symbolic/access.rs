//! Loads and stores.

use std::rc::Rc;

use crate::solver::Term;
use paceline_isa::{Reg, Size};
use paceline_spec::context::{FieldKind, Place, Rule};

use crate::symbolic::alu;
use crate::symbolic::bounds::Assumption;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::memory::Byte;
use crate::symbolic::source::Source;
use crate::symbolic::state::{Initial, Object, Packet, State};
use crate::symbolic::value::{Pointer, Region, Value};

/// The field of the interface that a packet comes in on.
pub(crate) const INGRESS: &str = "ingress_ifindex";

impl Explorer<'_> {
    pub(crate) fn load(
        &mut self,
        state: &mut State,
        base: Reg,
        offset: i16,
        size: Size,
    ) -> Result<Value, GiveUp> {
        let Value::Pointer(pointer) = Self::register(state, base) else { return Err(GiveUp::Address) };
        if pointer.region == Region::Packet {
            let bytes = self.packet_bytes(state, pointer.offset, offset, size.bytes())?;
            return self.joined(&bytes);
        }
        let start = self.place(state, pointer, offset);
        if pointer.region == Region::Context {
            return self.load_context(state, start, size);
        }
        let bytes = self.bytes(state, pointer.region, start, size.bytes())?;
        self.joined(&bytes)
    }

    /// Bytes of the packet.
    fn packet_bytes(
        &mut self,
        state: &mut State,
        start: Term,
        offset: i16,
        len: usize,
    ) -> Result<Vec<Byte>, GiveUp> {
        let by = self.terms.constant(64, offset as u64);
        let place = self.terms.add(start, by);
        if let Some(bytes) = self.unknown_bytes(state, place, len) {
            return Ok(bytes);
        }
        let start = self.concrete(state, place).cast_signed();
        self.bytes(state, Region::Packet, start, len)
    }

    /// The value of bytes that are loaded together.
    fn joined(&mut self, bytes: &[Byte]) -> Result<Value, GiveUp> {
        if let Some(&Byte::Part(value, 0)) = bytes.first() {
            let is_whole = bytes.len() == 8
                && bytes.iter().zip(0..).all(|(byte, index)| *byte == Byte::Part(value, index));
            return if is_whole { Ok(value) } else { Err(GiveUp::Address) };
        }
        let numbers = bytes.iter().map(|byte| number_of(*byte)).collect::<Result<Vec<_>, _>>()?;
        let word = alu::word(&mut self.terms, &numbers);
        Ok(Value::Number(self.terms.resize(word, 64)))
    }

    pub(crate) fn store(
        &mut self,
        state: &mut State,
        base: Reg,
        offset: i16,
        size: Size,
        value: Value,
    ) -> Result<(), GiveUp> {
        let Value::Pointer(pointer) = Self::register(state, base) else { return Err(GiveUp::Address) };
        let start = self.place(state, pointer, offset);
        if pointer.region == Region::Context {
            return self.store_context(state, start, size, value);
        }
        let bytes: Vec<_> = match value {
            Value::Number(number) => {
                alu::bytes(&mut self.terms, number, size.bytes()).into_iter().map(Byte::Number).collect()
            }
            Value::Unset => return Err(GiveUp::Address),
            value if size == Size::Dw => (0..8).map(|index| Byte::Part(value, index)).collect(),
            value => {
                let number = self.as_number(value)?;
                alu::bytes(&mut self.terms, number, size.bytes()).into_iter().map(Byte::Number).collect()
            }
        };
        self.write(state, pointer.region, start, &bytes)
    }

    /// The offset of an access as a number.
    fn place(&mut self, state: &mut State, pointer: Pointer, offset: i16) -> i64 {
        let by = self.terms.constant(64, offset as u64);
        let place = self.terms.add(pointer.offset, by);
        self.concrete(state, place).cast_signed()
    }

    /// Bytes of a region.
    pub(crate) fn bytes(
        &mut self,
        state: &State,
        region: Region,
        start: i64,
        len: usize,
    ) -> Result<Vec<Byte>, GiveUp> {
        (start..).take(len).map(|offset| self.byte(state, region, offset)).collect()
    }

    fn byte(&mut self, state: &State, region: Region, offset: i64) -> Result<Byte, GiveUp> {
        let zero = Byte::Number(self.terms.constant(8, 0));
        match region {
            // All engines give functions a stack of zeros.
            Region::Stack(frame) => {
                let written = state.frames.get(frame).and_then(|frame| frame.stack.get(offset));
                Ok(written.unwrap_or_else(|| {
                    self.assume(Assumption::ZeroStack);
                    zero
                }))
            }
            Region::Packet => Ok(match state.packet.written.get(offset) {
                Some(byte) => byte,
                None => Byte::Number(self.packet_byte(&state.packet, offset)),
            }),
            Region::Object(index) => {
                let object = Rc::clone(state.objects.get(index).ok_or(GiveUp::Address)?);
                self.object_byte(&object, offset)
            }
            Region::Fixed(value) => {
                let byte = u32::try_from(offset).map_err(|_| GiveUp::Address)?;
                Ok(Byte::Number(self.sources.term(&mut self.terms, Source::Fixed { value, byte })))
            }
            Region::Context => Err(GiveUp::Address),
        }
    }

    /// A byte of an object.
    pub(crate) fn object_byte(&mut self, object: &Object, offset: i64) -> Result<Byte, GiveUp> {
        if let Some(byte) = object.written.get(offset) {
            return Ok(byte);
        }
        let byte = usize::try_from(offset).map_err(|_| GiveUp::Address)?;
        Ok(Byte::Number(match &object.initial {
            Initial::Zero => self.terms.constant(8, 0),
            Initial::Bytes(bytes) => self.terms.constant(8, u64::from(bytes.get(byte).copied().unwrap_or(0))),
            &Initial::Element { map, element } => {
                self.sources.term(&mut self.terms, Source::Value { map, element, byte: byte as u32 })
            }
            &Initial::Record(record) => return self.record_byte(record, byte),
        }))
    }

    /// A byte of the packet that was not written: as it came in, zero in the headroom and where the packet has grown. Frames have zeros in
    /// the headroom when it is given to a program.
    pub(crate) fn packet_byte(&mut self, packet: &Packet, offset: i64) -> Term {
        let zero = self.terms.constant(8, 0);
        let Ok(index) = u32::try_from(offset) else { return zero };
        let byte = self.sources.term(&mut self.terms, Source::Packet(index));
        let Some(floor) = packet.floor else { return byte };
        let place = self.terms.constant(64, u64::from(index));
        // The packet may have ended before the place where it began.
        let is_below = self.terms.slt(place, floor);
        self.terms.ite(is_below, byte, zero)
    }

    /// Writes bytes of a region.
    pub(crate) fn write(
        &mut self,
        state: &mut State,
        region: Region,
        start: i64,
        bytes: &[Byte],
    ) -> Result<(), GiveUp> {
        let memory = match region {
            Region::Stack(frame) => {
                Rc::make_mut(&mut state.frames.get_mut(frame).ok_or(GiveUp::Address)?.stack)
            }
            Region::Packet => Rc::make_mut(&mut state.packet.written),
            Region::Object(index) => &mut state.object_mut(index).ok_or(GiveUp::Address)?.written,
            // What no program writes to is not written to.
            Region::Fixed(_) | Region::Context => return Err(GiveUp::Address),
        };
        (start..).zip(bytes).for_each(|(offset, byte)| memory.set(offset, *byte));
        Ok(())
    }

    /// Numbers in memory at a pointer.
    pub(crate) fn read_numbers(
        &mut self,
        state: &mut State,
        pointer: Pointer,
        len: usize,
    ) -> Result<Vec<Term>, GiveUp> {
        let bytes = match pointer.region {
            Region::Packet => self.packet_bytes(state, pointer.offset, 0, len)?,
            region => {
                let start = self.place(state, pointer, 0);
                self.bytes(state, region, start, len)?
            }
        };
        bytes.into_iter().map(number_of).collect()
    }

    /// Writes numbers to memory at a pointer.
    pub(crate) fn write_numbers(
        &mut self,
        state: &mut State,
        pointer: Pointer,
        numbers: &[Term],
    ) -> Result<(), GiveUp> {
        let start = self.place(state, pointer, 0);
        let bytes: Vec<_> = numbers.iter().copied().map(Byte::Number).collect();
        self.write(state, pointer.region, start, &bytes)
    }

    fn load_context(&mut self, state: &mut State, offset: i64, size: Size) -> Result<Value, GiveUp> {
        let kind = self.verified.program().kind;
        let at = u64::try_from(offset).map_err(|_| GiveUp::Address)?;
        let field = kind.context_field(at, size.bytes() as u64, false).ok_or(GiveUp::Context("a field"))?;
        let packet = |offset: Term| Ok(Value::Pointer(Pointer { region: Region::Packet, offset }));
        match field.kind {
            FieldKind::PacketData => packet(self.terms.constant(64, state.packet.start as u64)),
            FieldKind::PacketMeta => {
                self.assume(Assumption::NoMetadata);
                packet(self.terms.constant(64, state.packet.meta as u64))
            }
            FieldKind::PacketEnd => packet(state.packet.end),
            FieldKind::Number => {
                let within = at as u32 - u32::from(field.offset);
                if field.size > 8 {
                    // The program's own memory, by words of four bytes.
                    return self.load_scratch(state, field.offset, within, size);
                }
                let number = match state.context.get(&field.offset) {
                    Some(&number) => number,
                    None => self.context_number(state, field)?,
                };
                let bits = size.bytes() as u32 * 8;
                let start = if cfg!(target_endian = "little") { within * 8 } else { 64 - within * 8 - bits };
                let part = self.terms.extract(number, start.min(64 - bits), bits);
                Ok(Value::Number(self.terms.resize(part, 64)))
            }
        }
    }

    /// A number of the context as the packet came in, of 64 bits.
    fn context_number(
        &mut self,
        state: &State,
        field: &paceline_spec::context::Field,
    ) -> Result<Term, GiveUp> {
        let rule = match field.place {
            Place::Computed(rule) => Some(rule),
            Place::Host { entry, .. } => entry,
            Place::Frame { size, .. } => {
                // Filters have the interface in two fields.
                let is_interface = matches!(field.name, INGRESS | "ifindex");
                let offset = if is_interface { self.field_offset(INGRESS) } else { field.offset };
                let number = self.sources.term(&mut self.terms, Source::Context(offset));
                let number = self.terms.resize(number, u32::from(size) * 8);
                let number = self.terms.resize(number, 64);
                return Ok(if is_interface { self.at_least_one(number) } else { number });
            }
            Place::Zero => None,
        };
        match rule {
            Some(Rule::PacketLen) => {
                let start = self.terms.constant(64, state.packet.start as u64);
                Ok(self.terms.sub(state.packet.end, start))
            }
            None => {
                let number = self.sources.term(&mut self.terms, Source::Context(field.offset));
                let number = self.terms.resize(number, u32::from(field.size).min(8) * 8);
                Ok(self.terms.resize(number, 64))
            }
            Some(Rule::Protocol) => Ok(self.protocol()),
            Some(Rule::Ifindex) => {
                let field = self.field_offset(INGRESS);
                let ingress = self.sources.term(&mut self.terms, Source::Context(field));
                let ingress = self.terms.resize(ingress, 32);
                let index = self.at_least_one(ingress);
                Ok(self.terms.resize(index, 64))
            }
            Some(Rule::PacketType | Rule::RxQueue) => Err(GiveUp::Context(field.name)),
        }
    }

    /// The number, and 1 in the place of 0: packets come in on an interface.
    fn at_least_one(&mut self, number: Term) -> Term {
        let width = self.terms.width(number);
        let (zero, one) = (self.terms.constant(width, 0), self.terms.constant(width, 1));
        let is_zero = self.terms.eq(number, zero);
        self.terms.ite(is_zero, one, number)
    }

    pub(crate) fn field_offset(&self, name: &str) -> u16 {
        let fields = self.verified.program().kind.context().fields;
        fields.iter().find(|field| field.name == name).map_or(0, |field| field.offset)
    }

    /// The protocol of a packet as it came in, in network order: `eth_type_trans` in `net/ethernet/eth.c`.
    fn protocol(&mut self) -> Term {
        self.assume(Assumption::TagsInPacket);
        const LEAST_TYPE: u64 = 0x600;
        const HEADER: u64 = 14;
        let byte =
            |explorer: &mut Self, offset| explorer.sources.term(&mut explorer.terms, Source::Packet(offset));
        let [high, low, first, second] = [12, 13, 14, 15].map(|offset| byte(self, offset));
        let (number, next) = (self.terms.concat(high, low), self.terms.concat(first, second));
        let length = self.sources.term(&mut self.terms, Source::Length);
        let [least, raw, llc, ones, none] =
            [LEAST_TYPE, 1, 4, 0xffff, 0].map(|value| self.terms.constant(16, value));
        let [header, longer] = [HEADER, HEADER + 2].map(|value| self.terms.constant(16, value));
        let is_length = self.terms.ult(number, least);
        let (is_raw, has_next) = (self.terms.eq(next, ones), self.terms.ule(longer, length));
        let is_raw = self.terms.and(is_raw, has_next);
        let of_length = self.terms.ite(is_raw, raw, llc);
        let found = self.terms.ite(is_length, of_length, number);
        let is_short = self.terms.ult(length, header);
        let protocol = self.terms.ite(is_short, none, found);
        let in_memory =
            if cfg!(target_endian = "little") { self.terms.swap_bytes(protocol) } else { protocol };
        self.terms.resize(in_memory, 64)
    }

    fn load_scratch(&mut self, state: &State, field: u16, within: u32, size: Size) -> Result<Value, GiveUp> {
        let start = field + within as u16;
        let bytes: Vec<_> = (start..start + size.bytes() as u16)
            .map(|offset| match state.context.get(&offset) {
                Some(&byte) => byte,
                None => self.sources.term(&mut self.terms, Source::Scratch(offset)),
            })
            .collect();
        let word = alu::word(&mut self.terms, &bytes);
        Ok(Value::Number(self.terms.resize(word, 64)))
    }

    fn store_context(
        &mut self,
        state: &mut State,
        offset: i64,
        size: Size,
        value: Value,
    ) -> Result<(), GiveUp> {
        let kind = self.verified.program().kind;
        let at = u64::try_from(offset).map_err(|_| GiveUp::Address)?;
        let field = kind.context_field(at, size.bytes() as u64, true).ok_or(GiveUp::Context("a field"))?;
        let number = crate::symbolic::step::number_of(value)?;
        let context = Rc::make_mut(&mut state.context);
        if field.size > 8 {
            for (index, byte) in (at as u16..).zip(alu::bytes(&mut self.terms, number, size.bytes())) {
                context.insert(index, byte);
            }
            return Ok(());
        }
        let Place::Host { size: stored, .. } = field.place else { return Err(GiveUp::Context(field.name)) };
        if field.permission != paceline_spec::context::Permission::Write {
            return Err(GiveUp::Context(field.name));
        }
        let kept = self.terms.resize(number, u32::from(stored) * 8);
        let number = self.terms.resize(kept, 64);
        context.insert(field.offset, number);
        Ok(())
    }
}

fn number_of(byte: Byte) -> Result<Term, GiveUp> {
    match byte {
        Byte::Number(term) => Ok(term),
        Byte::Part(..) => Err(GiveUp::Address),
    }
}
