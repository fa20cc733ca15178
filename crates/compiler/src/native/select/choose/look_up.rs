//! Look-ups in maps that are known: in arrays by address, in others by the map's own function.

use crate::codegen::lir::{Place, Vreg};
use crate::ir::{Inst, Value};
use paceline_isa::Size;

use super::choice::{Choice, defined, defined_in, fixed, used};
use crate::internal::Internal;
use crate::ir::expand::ArrayLink;
use crate::ir::expand::known_map;
use crate::native::links::LookUpLink;
use crate::native::machine::op::{AluOp, At, Called, Op, ShiftOp};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;

impl<A: Target> Choice<'_, '_, A> {
    /// Returns whether the look-up is no call of the helper.
    pub(super) fn look_up(&mut self, inst: Inst, key: Value, result: Vreg) -> Result<bool, Internal> {
        let Some(index) = known_map(self.function.calls[inst].map) else { return Ok(false) };
        let map = self.generator.map(index)?;
        match (map.array.filter(ArrayLink::is_addressable), map.look_up) {
            // Those with known keys, or with keys on the stack, were expanded.
            (Some(array), _) => self.look_up_stored(&array, key, result)?,
            (None, Some(link)) => self.look_up_by(&link, key, result)?,
            (None, None) => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn load_cpu(&mut self, result: Vreg) -> Result<(), Internal> {
        self.load_member(self.generator.links.host.cpu, result)
    }

    fn load_member(&mut self, offset: i32, result: Vreg) -> Result<(), Internal> {
        let op = Op::Load { size: Size::Dw, signed: false, at: At::Base(offset) };
        self.push(op, &[used(self.host()?), defined(result)]);
        Ok(())
    }

    fn look_up_stored(&mut self, array: &ArrayLink, key: Value, result: Vreg) -> Result<(), Internal> {
        let (at, base) = self.place(key, 0)?;
        let host = if array.cpu_stride == 0 { None } else { Some(used(self.host()?)) };
        let result = defined_in(result, Place::Early);
        let operands: Vec<_> = base.chain(host).chain([result]).collect();
        self.push(Op::LookUp(*array, at), &operands);
        Ok(())
    }

    /// A look-up by a short key as a number.
    pub(super) fn look_up_number(&mut self, map: u32, args: &[Value], result: Vreg) -> Result<(), Internal> {
        let (Some(link), &[key]) = (self.generator.map(map)?.look_up, args) else {
            return Err(Internal("a look-up by a number has no function, or no key"));
        };
        let key = self.value(key)?;
        self.call_by(&link, key, result)
    }

    /// Calls the map's own function, with short keys by value.
    fn look_up_by(&mut self, link: &LookUpLink, key: Value, result: Vreg) -> Result<(), Internal> {
        let key = match link.key_bytes {
            Some(bytes) => self.load_key(key, bytes)?,
            None => self.value(key)?,
        };
        self.call_by(link, key, result)
    }

    fn call_by(&mut self, link: &LookUpLink, key: Vreg, result: Vreg) -> Result<(), Internal> {
        let context = self.fresh();
        self.push(Op::Number(link.context), &[defined(context)]);
        let mut operands = vec![fixed(context, A::ARGUMENTS[0]), fixed(key, A::ARGUMENTS[1])];
        if let Some(offset) = link.member {
            let member = self.fresh();
            self.load_member(offset, member)?;
            operands.push(fixed(member, A::ARGUMENTS[2]));
        }
        self.call_of(Called::Runtime(link.address), operands, result);
        Ok(())
    }

    /// A key of up to eight bytes as a number, in as few loads as there are powers of two.
    fn load_key(&mut self, key: Value, bytes: u8) -> Result<Vreg, Internal> {
        let mut number = None;
        let mut at = 0;
        for size in [Size::Dw, Size::W, Size::H, Size::B] {
            if bytes - at < size.bytes() as u8 {
                continue;
            }
            let loaded = self.fresh();
            self.load(size, false, key, at.into(), loaded)?;
            number = Some(match number {
                None => loaded,
                Some(before) => self.joined(before, loaded, 8 * at),
            });
            at += size.bytes() as u8;
        }
        number.ok_or(Internal("a key has no bytes"))
    }

    /// `low | high << shift`
    fn joined(&mut self, low: Vreg, high: Vreg, shift: u8) -> Vreg {
        let (shifted, joined) = (self.fresh(), self.fresh());
        let shift = Op::ShiftImm(ShiftOp::Shl, Width::Q64, shift);
        self.push(shift, &[used(high), defined_in(shifted, Place::Reuse(0))]);
        let or = Op::Alu(AluOp::Or, Width::Q64);
        self.push(or, &[used(shifted), used(low), defined_in(joined, Place::Reuse(0))]);
        joined
    }
}
