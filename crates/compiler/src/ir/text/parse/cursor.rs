//! Tokens one after the other, and the parts that functions and operations have in common.

use paceline_verifier::state::MapRef;
use paceline_verifier::{CallbackFact, KeyFact, MapFact, StackFact};

use super::error::{ParseCause, ParseError};
use crate::ir::arena::Key;
use crate::ir::entity::{Block, Value};
use crate::ir::function::{Target, ValueList};
use crate::ir::text::lex::{Token, TokenKind};
use crate::ir::text::names::{NUMBERS, REGIONS};
use crate::ir::types::{Access, CallFacts, Kind, Region, Span};

pub(super) type Parsed<T> = Result<T, ParseError>;

/// Tokens, and what they stand for.
pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    /// The line of the last token.
    line: usize,
    /// Numbers of values and blocks are below it, so that text of a few bytes takes no more memory than that.
    limit: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        // A function has no more values than its text has words.
        Self { tokens, line: 1, limit: tokens.len().max(NUMBERS) }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn error(&self, cause: ParseCause) -> ParseError {
        ParseError { line: self.line, cause }
    }

    /// The next token is not what was expected.
    pub(super) fn expected(&self, expected: &'static str) -> ParseError {
        let next = self.tokens.first();
        let found = next.map_or_else(|| "the end".to_owned(), |token| token.kind.to_string());
        let line = next.map_or(self.line, |token| token.line);
        ParseError { line, cause: ParseCause::Expected { expected, found } }
    }

    pub(super) fn peek(&self) -> Option<&'a TokenKind> {
        self.tokens.first().map(|token| &token.kind)
    }

    pub(super) fn advance(&mut self) {
        if let Some((token, rest)) = self.tokens.split_first() {
            (self.line, self.tokens) = (token.line, rest);
        }
    }

    /// Takes a sign, if it is the next token.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Sign(next)) if *next == sign);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn sign(&mut self, sign: &'static str) -> Parsed<()> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(sign)) }
    }

    /// Takes a word, if it is the next token.
    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(TokenKind::Word(next)) if next == word);
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn word(&mut self, word: &'static str) -> Parsed<()> {
        if self.takes_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    pub(super) fn any_word(&mut self, expected: &'static str) -> Parsed<&'a str> {
        match self.peek() {
            Some(TokenKind::Word(word)) => {
                self.advance();
                Ok(word)
            }
            _ => Err(self.expected(expected)),
        }
    }

    pub(super) fn number<T: TryFrom<i128>>(&mut self) -> Parsed<T> {
        let Some(TokenKind::Number(number)) = self.peek() else { return Err(self.expected("a number")) };
        self.advance();
        T::try_from(*number).map_err(|_| self.error(ParseCause::OutOfRange(*number)))
    }

    /// A number, or `None` for a question mark.
    pub(super) fn known<T: TryFrom<i128>>(&mut self) -> Parsed<Option<T>> {
        if self.takes("?") { Ok(None) } else { self.number().map(Some) }
    }

    /// A word of a prefix and a number.
    pub(super) fn numbered<K: Key>(&mut self, prefix: &str, expected: &'static str) -> Parsed<K> {
        let number = match self.peek() {
            Some(TokenKind::Word(word)) => word.strip_prefix(prefix).and_then(|number| number.parse().ok()),
            _ => None,
        };
        let Some(number) = number.filter(|number| *number < self.limit) else {
            return Err(self.expected(expected));
        };
        self.advance();
        Ok(K::new(number))
    }

    pub(super) fn value(&mut self) -> Parsed<Value> {
        self.numbered("v", "a value")
    }

    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.numbered("block", "a block")
    }

    pub(super) fn comma(&mut self) -> Parsed<()> {
        self.sign(",")
    }

    pub(super) fn values<const N: usize>(&mut self) -> Parsed<[Value; N]> {
        let mut values = [Value::new(0); N];
        for (at, value) in values.iter_mut().enumerate() {
            if at > 0 {
                self.comma()?;
            }
            *value = self.value()?;
        }
        Ok(values)
    }

    /// Values in parentheses.
    pub(super) fn list(&mut self) -> Parsed<ValueList> {
        self.sign("(")?;
        let mut values = ValueList::new();
        while !self.takes(")") {
            if !values.is_empty() {
                self.comma()?;
            }
            values.push(self.value()?);
        }
        Ok(values)
    }

    pub(super) fn target(&mut self) -> Parsed<Target> {
        let block = self.block()?;
        let has_args = matches!(self.peek(), Some(TokenKind::Sign("(")));
        Ok(Target { block, args: if has_args { self.list()? } else { ValueList::new() } })
    }

    pub(super) fn two_targets(&mut self) -> Parsed<[Target; 2]> {
        let first = self.target()?;
        self.comma()?;
        Ok([first, self.target()?])
    }

    pub(super) fn kind(&mut self) -> Parsed<Kind> {
        let found = match self.peek() {
            Some(TokenKind::Word(word)) => Kind::NAMES.iter().find(|(_, name)| name == word),
            _ => None,
        };
        let (kind, _) = found.ok_or_else(|| self.expected("what the value points to"))?;
        self.advance();
        Ok(*kind)
    }

    pub(super) fn slot(&mut self) -> Parsed<Option<u32>> {
        if self.takes("@") { self.number().map(Some) } else { Ok(None) }
    }

    pub(super) fn map(&mut self) -> Parsed<MapRef> {
        let index = self.number()?;
        Ok(MapRef { index, inner: self.takes_word("inner") })
    }

    /// Region, base and offset of an access.
    pub(super) fn place(&mut self) -> Parsed<(Region, Value, i32)> {
        let Some(TokenKind::Word(word)) = self.peek() else { return Err(self.expected("a region")) };
        if self.takes_word("constant") {
            self.sign("(")?;
            let region = Region::Constant(self.map()?);
            self.sign(")")?;
            return Ok((region, self.value()?, self.number()?));
        }
        let Some((mut region, _)) = REGIONS.iter().copied().find(|(_, name)| name == word) else {
            return Err(self.expected("a region"));
        };
        self.advance();
        if region == Region::SomeMapValue && self.takes("(") {
            region = Region::MapValue(self.map()?);
            self.sign(")")?;
        }
        Ok((region, self.value()?, self.number()?))
    }

    /// The facts of an access.
    pub(super) fn access(&mut self, region: Region) -> Parsed<Access> {
        let mut access = Access::to(region);
        if self.takes_word("in") {
            let min = self.number()?;
            self.sign("..")?;
            access.span = Some(Span { min, max: self.number()? });
        }
        if self.takes_word("of") {
            access.packet_bytes = Some(self.number()?);
        }
        Ok(access)
    }

    pub(super) fn call_facts(&mut self) -> Parsed<CallFacts> {
        let mut facts = CallFacts::default();
        if self.takes_word("map") {
            let known = if self.takes("?") { None } else { Some(self.map()?) };
            facts.map = Some(known.map_or(MapFact::Different, MapFact::Always));
        }
        if self.takes_word("key") {
            facts.key = Some(self.known()?.map_or(KeyFact::Different, KeyFact::Always));
        }
        if self.takes_word("callback") {
            facts.callback = Some(self.known()?.map_or(CallbackFact::Different, CallbackFact::Always));
        }
        if self.takes_word("reads") {
            let start = self.number()?;
            self.sign("..")?;
            facts.stack_read = Some(StackFact { start, end: self.number()? });
        }
        Ok(facts)
    }
}
