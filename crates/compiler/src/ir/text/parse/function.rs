//! Functions and blocks.

use paceline_isa::Reg;

use super::cursor::{Parsed, Parser};
use super::error::ParseCause;
use super::op::Name;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Def, Function, Terminator, ValueData};
use crate::ir::op::Op;
use crate::ir::text::lex::TokenKind;
use crate::ir::types::{CallFacts, Kind, Type};

/// A function that is being read.
pub(super) struct FunctionParser<'p, 'a> {
    parser: &'p mut Parser<'a>,
    function: Function,
}

impl<'p, 'a> FunctionParser<'p, 'a> {
    /// Reads a function after its number.
    pub(super) fn read(parser: &'p mut Parser<'a>) -> Parsed<Function> {
        Self { parser, function: Function::default() }.whole()
    }

    fn whole(mut self) -> Parsed<Function> {
        let Some(TokenKind::Text(name)) = self.parser.peek() else {
            return Err(self.parser.expected("a name"));
        };
        self.function.name.clone_from(name);
        self.parser.advance();
        self.attributes()?;
        while !self.parser.takes("}") {
            self.block()?;
        }
        Ok(self.function)
    }

    fn attributes(&mut self) -> Parsed<()> {
        let (parser, function) = (&mut *self.parser, &mut self.function);
        parser.sign("(")?;
        while !parser.takes(")") {
            if !function.arguments.is_empty() {
                parser.comma()?;
            }
            let number = match parser.peek() {
                Some(TokenKind::Word(word)) => word.strip_prefix('r').and_then(|number| number.parse().ok()),
                _ => None,
            };
            let reg = number.filter(|number| (1..=5).contains(number)).and_then(Reg::new);
            let Some(reg) = reg else { return Err(parser.expected("one of r1 to r5")) };
            parser.advance();
            function.arguments.push(reg);
        }
        if parser.takes_word("slot") {
            function.slot = parser.number()?;
        }
        if parser.takes_word("stack") {
            function.stack = parser.number()?;
        }
        if parser.takes_word("zeroed") {
            function.zeroed = parser.number()?;
        }
        if parser.takes_word("shared") {
            function.shared = parser.number()?;
        }
        function.prints = parser.takes_word("prints");
        function.is_callback = parser.takes_word("callback");
        parser.sign("{")
    }

    /// Defines a value.
    fn define(&mut self, value: Value, data: ValueData) -> Parsed<()> {
        self.function.reserve_value(value);
        if self.function.value(value).def != Def::Nothing {
            return Err(self.parser.error(ParseCause::DefinedTwice(value.to_string())));
        }
        self.function.define_value(value, data);
        Ok(())
    }

    /// Makes sure that the values that are used so far have data.
    fn reserve(&mut self, values: impl IntoIterator<Item = Value>) {
        values.into_iter().for_each(|value| self.function.reserve_value(value));
    }

    fn block(&mut self) -> Parsed<()> {
        let block = self.parser.block()?;
        self.function.reserve_block(block);
        if self.function.block(block).terminator != Terminator::Unset {
            return Err(self.parser.error(ParseCause::DefinedTwice(block.to_string())));
        }
        self.function.layout.push(block);
        if self.parser.takes("(") {
            while !self.parser.takes(")") {
                if !self.function.block(block).params.is_empty() {
                    self.parser.comma()?;
                }
                self.param(block)?;
            }
        }
        self.parser.sign(":")?;
        while !self.terminator(block)? {
            self.inst(block)?;
        }
        Ok(())
    }

    fn param(&mut self, block: Block) -> Parsed<()> {
        let value = self.parser.value()?;
        self.parser.sign(":")?;
        let ty = match self.parser.peek() {
            Some(TokenKind::Word(word)) if word == "i32" => Type::I32,
            Some(TokenKind::Word(word)) if word == "i64" => Type::I64,
            _ => return Err(self.parser.expected("i32 or i64")),
        };
        self.parser.advance();
        let has_kind = matches!(self.parser.peek(), Some(TokenKind::Word(_)));
        let kind = if has_kind { self.parser.kind()? } else { Kind::Unknown };
        self.define(value, ValueData { ty, def: Def::Param(block), kind })?;
        self.function.block_mut(block).params.push(value);
        Ok(())
    }

    /// Reads the end of a block, if it is next.
    fn terminator(&mut self, block: Block) -> Parsed<bool> {
        let Some(TokenKind::Word(word)) = self.parser.peek() else { return Ok(false) };
        let name = Name::of(word);
        let parser = &mut *self.parser;
        let terminator = match (name.first, name.condition(), name.last_type()) {
            ("jump", ..) => {
                parser.advance();
                Terminator::Jump(parser.target()?)
            }
            ("branch", Some(condition), Some(ty)) => {
                parser.advance();
                let args = parser.values()?;
                parser.comma()?;
                Terminator::Branch { condition, ty, args, targets: parser.two_targets()? }
            }
            ("may_goto", ..) => {
                parser.advance();
                Terminator::MayGoto(parser.two_targets()?)
            }
            ("return", ..) => {
                parser.advance();
                Terminator::Return(parser.value()?)
            }
            ("stop", ..) => {
                parser.advance();
                Terminator::Stop
            }
            _ => return Ok(false),
        };
        let slot = parser.slot()?;
        let mut used: Vec<Value> =
            terminator.targets().iter().flat_map(|target| target.args.clone()).collect();
        terminator.operands(|value, _| used.push(value));
        self.reserve(used);
        terminator.targets().iter().for_each(|target| self.function.reserve_block(target.block));
        self.function.terminate(block, terminator, slot);
        Ok(true)
    }

    fn inst(&mut self, block: Block) -> Parsed<()> {
        let parser = &mut *self.parser;
        let is_value = |word: &String| word.starts_with('v') && word[1..].parse::<usize>().is_ok();
        let named = matches!(parser.peek(), Some(TokenKind::Word(word)) if is_value(word));
        let mut kind = Kind::Unknown;
        let mut result = None;
        if named {
            result = Some(parser.value()?);
            if parser.takes(":") {
                kind = parser.kind()?;
            }
            parser.sign("=")?;
        }
        let op = parser.op()?;
        let facts = if matches!(op, Op::Call { .. }) { parser.call_facts()? } else { CallFacts::default() };
        if op.result().is_some() != result.is_some() {
            return Err(parser.error(ParseCause::Result(op.result().is_some())));
        }
        let slot = parser.slot()?;
        let mut used = Vec::new();
        op.operands(|value, _| used.push(value));
        self.reserve(used);
        let inst = self.function.create_with(op, slot, result);
        if let (Some(value), Some(ty)) = (result, op.result()) {
            self.define(value, ValueData { ty, def: Def::Result(inst), kind })?;
        }
        if facts != CallFacts::default() {
            self.function.calls[inst] = facts;
        }
        self.function.block_mut(block).insts.push(inst);
        Ok(())
    }
}
