//! Operations.

use paceline_isa::{Condition, Size};
use paceline_spec::helper::Helper;

use super::cursor::{Parsed, Parser};
use super::error::ParseCause;
use crate::ir::arena::Key;
use crate::ir::entity::{FuncId, Value};
use crate::ir::op::{ATOMICS, Address, Args, BinaryOp, CONDITIONS, Callee, Op, RunOp};
use crate::ir::text::lex::TokenKind;
use crate::ir::text::names::SIZES;
use crate::ir::types::{Region, Type};

/// The name of an operation: its parts between dots.
pub(super) struct Name<'a> {
    pub(super) first: &'a str,
    /// The second part, of two or three.
    second: Option<&'a str>,
    last: Option<&'a str>,
}

impl<'a> Name<'a> {
    pub(super) fn of(word: &'a str) -> Self {
        let mut parts = word.split('.');
        let (first, second) = (parts.next().unwrap_or_default(), parts.next());
        Self { first, second, last: parts.next().or(second) }
    }

    pub(super) fn condition(&self) -> Option<Condition> {
        CONDITIONS.iter().find(|(_, name)| Some(*name) == self.second).map(|(condition, _)| *condition)
    }

    pub(super) fn last_type(&self) -> Option<Type> {
        match self.last {
            Some("i32") => Some(Type::I32),
            Some("i64") => Some(Type::I64),
            _ => None,
        }
    }

    /// Size and sign of an access.
    fn size(&self) -> Option<(Size, bool)> {
        let last = self.last?;
        SIZES.iter().find_map(|&(size, unsigned, signed)| match last {
            last if last == unsigned => Some((size, false)),
            last if last == signed => Some((size, true)),
            _ => None,
        })
    }

    fn unsigned(&self) -> Option<Size> {
        self.size().filter(|(_, signed)| !signed).map(|(size, _)| size)
    }

    /// The size after a prefix, in bits.
    fn bits_after(&self, prefix: &str) -> Option<Size> {
        let bits: u64 = self.first.strip_prefix(prefix)?.parse().ok()?;
        Size::from_bytes(bits / 8).filter(|_| bits.is_multiple_of(8))
    }
}

/// Operations.
impl Parser<'_> {
    /// An operation without its facts of a call.
    pub(super) fn op(&mut self) -> Parsed<Op> {
        let word = self.any_word("an operation")?;
        let name = Name::of(word);
        match self.number_op(&name).or_else(|| self.memory_op(&name)).or_else(|| self.other_op(&name)) {
            Some(op) => op,
            None => Err(self.error(ParseCause::UnknownOperation(word.to_owned()))),
        }
    }

    /// Operations on numbers; `None` if it is none.
    fn number_op(&mut self, name: &Name<'_>) -> Option<Parsed<Op>> {
        match name.first {
            "zext" => return Some(self.value().map(|arg| Op::ZeroExtend { arg })),
            "trunc" => return Some(self.value().map(|arg| Op::Truncate { arg })),
            _ => {}
        }
        let ty = name.last_type()?;
        if let Some((op, _)) = BinaryOp::NAMES.iter().find(|(_, known)| *known == name.first) {
            return Some(self.values().map(|args| Op::Binary { op: *op, ty, args }));
        }
        if let Some(size) = name.bits_after("swap") {
            return Some(self.value().map(|arg| Op::Swap { size, ty, arg }));
        }
        if let Some(from) = name.bits_after("sext") {
            return Some(self.value().map(|arg| Op::SignExtend { from, ty, arg }));
        }
        match name.first {
            "const" => Some(self.constant(ty)),
            "neg" => Some(self.value().map(|arg| Op::Neg { ty, arg })),
            "compare" => {
                let condition = name.condition()?;
                Some(self.values().map(|args| Op::Compare { condition, ty, args }))
            }
            _ => None,
        }
    }

    fn constant(&mut self, ty: Type) -> Parsed<Op> {
        let value = match ty {
            Type::I32 => self.number::<i32>()? as u64,
            Type::I64 => self.number::<i64>()?.cast_unsigned(),
        };
        Ok(Op::constant(ty, value))
    }

    /// Operations on memory; `None` if it is none.
    fn memory_op(&mut self, name: &Name<'_>) -> Option<Parsed<Op>> {
        let known = ATOMICS.iter().find(|(_, known)| Some(*known) == name.second);
        Some(match (name.first, name.size(), name.unsigned(), known, name.last_type()) {
            ("load", Some((size, signed)), ..) => self.place().and_then(|(region, base, offset)| {
                Ok(Op::Load { size, signed, base, offset, access: self.access(region)? })
            }),
            ("load_acquire", _, Some(size), ..) => self.place().and_then(|(region, base, offset)| {
                Ok(Op::LoadAcquire { size, base, offset, access: self.access(region)? })
            }),
            ("store", _, Some(size), ..) => self.stored().and_then(|(region, base, offset, value)| {
                Ok(Op::Store { size, base, offset, value, access: self.access(region)? })
            }),
            ("store_release", _, Some(size), ..) => {
                self.stored().and_then(|(region, base, offset, value)| {
                    Ok(Op::StoreRelease { size, base, offset, value, access: self.access(region)? })
                })
            }
            ("atomic", _, _, Some((op, _)), Some(ty)) => {
                self.stored().and_then(|(region, base, offset, value)| {
                    let expected = if self.takes(",") { Some(self.value()?) } else { None };
                    let access = self.access(region)?;
                    Ok(Op::Atomic { op: *op, width: ty.width(), base, offset, value, expected, access })
                })
            }
            ("context_load", Some((size, signed)), ..) => self
                .value()
                .and_then(|context| Ok(Op::ContextLoad { size, signed, context, offset: self.number()? })),
            ("context_store", _, Some(size), ..) => self.value().and_then(|context| {
                let offset = self.number()?;
                self.comma()?;
                Ok(Op::ContextStore { size, context, offset, value: self.value()? })
            }),
            ("packet_load", _, Some(size), ..) => self.packet_load(size),
            _ => return None,
        })
    }

    /// The place of a store, and its value.
    fn stored(&mut self) -> Parsed<(Region, Value, i32, Value)> {
        let (region, base, offset) = self.place()?;
        self.comma()?;
        Ok((region, base, offset, self.value()?))
    }

    fn packet_load(&mut self, size: Size) -> Parsed<Op> {
        let context = self.value()?;
        self.comma()?;
        let indexed = matches!(self.peek(), Some(TokenKind::Word(_)));
        let index = if indexed { Some(self.value()?) } else { None };
        Ok(Op::PacketLoad { size, context, index, offset: self.number()? })
    }

    /// Addresses and calls; `None` if it is none.
    fn other_op(&mut self, name: &Name<'_>) -> Option<Parsed<Op>> {
        Some(match name.first {
            "map_address" => self.number().map(|map| Op::Address(Address::Map(map))),
            "value_address" => self
                .number()
                .and_then(|map| Ok(Op::Address(Address::MapValue { map, offset: self.number()? }))),
            "function_address" => self.function().map(|function| Op::Address(Address::Function(function))),
            "stack_address" => self.number().map(|offset| Op::StackAddress { offset }),
            "tail_call" => self.call(Callee::TailCall),
            "run_program" => self.call(Callee::Program),
            "begin" => {
                self.number().map(|program| Op::Run(RunOp::Begin { program, area: self.takes_word("area") }))
            }
            "count" => self.number().map(|counter| Op::Run(RunOp::Count { counter })),
            "finish" => Ok(Op::Run(RunOp::Finish)),
            "fault" => Ok(Op::Run(RunOp::Fault)),
            "call" => self.callee().and_then(|callee| self.call(callee)),
            _ => return None,
        })
    }

    fn function(&mut self) -> Parsed<FuncId> {
        self.number::<u16>().map(|number| FuncId::new(number.into()))
    }

    fn callee(&mut self) -> Parsed<Callee> {
        Ok(match self.any_word("what is called")? {
            "function" => Callee::Function(self.function()?),
            "helper" => Callee::Helper(self.number()?),
            "look_up" => Callee::LookUp { map: self.number()? },
            "kfunc" => {
                let index = self.number()?;
                Callee::Kfunc { index, module: if self.takes(":") { self.number()? } else { 0 } }
            }
            name => match Helper::from_name(name) {
                Some(helper) => Callee::Helper(helper.id.imm()),
                None => return Err(self.error(ParseCause::UnknownHelper(name.to_owned()))),
            },
        })
    }

    fn call(&mut self, callee: Callee) -> Parsed<Op> {
        let values = self.list()?;
        let args = Args::new(&values).ok_or_else(|| self.error(ParseCause::TooManyArguments))?;
        Ok(Op::Call { callee, args })
    }
}
