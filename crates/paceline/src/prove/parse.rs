//! Texts of properties, read to expressions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use paceline_analysis::symbolic::Moment;
use paceline_capture::packet::{Protocol, places};
use paceline_frame::Verdict;

use super::error::{Problem, PropertyError};
use super::property::{Comparison, Expr, Form, Property, Value};
use super::token::{Kind, Token, tokens};

/// Most parentheses and negations within each other.
const DEEPEST: usize = 64;

/// The greatest offset in a packet.
const FARTHEST: usize = 65_535;

impl FromStr for Property {
    type Err = PropertyError;

    fn from_str(text: &str) -> Result<Self, PropertyError> {
        Ok(Self { text: text.to_owned(), root: parse(text)? })
    }
}

fn parse(text: &str) -> Result<Expr, PropertyError> {
    let mut parser = Parser { text: text.to_owned(), tokens: tokens(text)?, at: 0, depth: 0 };
    let expr = parser.implies()?;
    match parser.peek().kind {
        Kind::End => Ok(expr),
        _ => Err(parser.expected("an operator, or the end,")),
    }
}

struct Parser {
    text: String,
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

/// A value, or a word that becomes one by what it is compared with.
enum Operand {
    Value(Value),
    Verdict,
    Word(String, usize),
}

const fn failed<T>(column: usize, problem: Problem) -> Result<T, PropertyError> {
    Err(PropertyError { column, problem })
}

impl Parser {
    /// The next token; the last one is the end.
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn expected(&self, expected: &'static str) -> PropertyError {
        let found = match &self.peek().kind {
            Kind::Word(word) => format!("`{word}`"),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::End => "the end".to_owned(),
        };
        PropertyError { column: self.peek().column, problem: Problem::Expected { expected, found } }
    }

    /// Takes the next token if it is one of some marks or words.
    fn takes(&mut self, forms: &[&str]) -> Option<String> {
        let text = match &self.peek().kind {
            Kind::Word(word) => word.clone(),
            Kind::Mark(mark) => (*mark).to_owned(),
            Kind::End => return None,
        };
        forms.contains(&text.as_str()).then(|| {
            self.at += 1;
            text
        })
    }

    fn takes_mark(&mut self, mark: &'static str, expected: &'static str) -> Result<(), PropertyError> {
        self.takes(&[mark]).map(drop).ok_or_else(|| self.expected(expected))
    }

    fn implies(&mut self) -> Result<Expr, PropertyError> {
        let start = self.peek().column;
        let left = self.or()?;
        let end = self.peek().column;
        if self.takes(&["implies", "=>"]).is_none() {
            return Ok(left);
        }
        let premise: String = self.text.chars().skip(start - 1).take(end - start).collect();
        let right = self.nested(Self::implies)?;
        Ok(Expr::Implies(Box::new(left), Box::new(right), premise.trim_end().to_owned()))
    }

    fn or(&mut self) -> Result<Expr, PropertyError> {
        let mut left = self.and()?;
        while self.takes(&["or", "||"]).is_some() {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, PropertyError> {
        let mut left = self.not()?;
        while self.takes(&["and", "&&"]).is_some() {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, PropertyError> {
        if self.takes(&["not", "!"]).is_some() {
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        if self.takes(&["("]).is_some() {
            let inner = self.nested(Self::implies)?;
            self.takes_mark(")", "`)`")?;
            return Ok(inner);
        }
        self.predicate()
    }

    /// Reads what is within something else.
    fn nested(
        &mut self,
        read: impl Fn(&mut Self) -> Result<Expr, PropertyError>,
    ) -> Result<Expr, PropertyError> {
        if self.depth >= DEEPEST {
            return failed(self.peek().column, Problem::Deep(DEEPEST));
        }
        self.depth += 1;
        let expr = read(self);
        self.depth -= 1;
        expr
    }

    /// A comparison, a header, or a change of a map.
    fn predicate(&mut self) -> Result<Expr, PropertyError> {
        const RELATIONS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        if let Some(changes) = self.changes()? {
            return Ok(changes);
        }
        let start = self.peek().column;
        let left = self.sum()?;
        let column = self.peek().column;
        let relation = self.takes(&RELATIONS.map(|(mark, _)| mark));
        let relation = RELATIONS.into_iter().find(|(mark, _)| relation.as_deref() == Some(*mark));
        let Some((_, comparison)) = relation else {
            return match left {
                Operand::Word(word, column) => match header(&word) {
                    Some((moment, protocol)) => has(moment, protocol, column),
                    None if literal(&word).is_none() => failed(column, Problem::Header(word)),
                    None => Err(self.expected("a comparison such as `==`")),
                },
                _ => Err(self.expected("a comparison such as `==`")),
            };
        };
        let second = self.peek().column;
        let right = self.sum()?;
        compare(comparison, (left, start), (right, second), column)
    }

    fn changes(&mut self) -> Result<Option<Expr>, PropertyError> {
        if self.takes(&["changes"]).is_none() {
            return Ok(None);
        }
        self.takes_mark("(", "`(` and the name of a map")?;
        let Token { kind: Kind::Word(name), column } = self.next() else {
            self.at -= 1;
            return Err(self.expected("the name of a map"));
        };
        self.takes_mark(")", "`)`")?;
        Ok(Some(Expr::Changes(name, column)))
    }

    fn sum(&mut self) -> Result<Operand, PropertyError> {
        let start = self.peek().column;
        let mut left = self.both()?;
        while let Some(mark) = self.takes(&["+", "-"]) {
            let column = self.peek().column;
            let right = Box::new(number(self.both()?, column)?);
            let first = Box::new(number(left, start)?);
            left = Operand::Value(match mark.as_str() {
                "+" => Value::Sum(first, right),
                _ => Value::Difference(first, right),
            });
        }
        Ok(left)
    }

    fn both(&mut self) -> Result<Operand, PropertyError> {
        let start = self.peek().column;
        let mut left = self.operand()?;
        while self.takes(&["&"]).is_some() {
            let column = self.peek().column;
            let right = Box::new(number(self.operand()?, column)?);
            left = Operand::Value(Value::Both(Box::new(number(left, start)?), right));
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Operand, PropertyError> {
        let Token { kind: Kind::Word(word), column } = self.next() else {
            self.at -= 1;
            return Err(self.expected("a value"));
        };
        let value = match word.as_str() {
            "verdict" => return Ok(Operand::Verdict),
            "returns" => Value::Returned,
            "in.len" => Value::Length(Moment::In),
            "out.len" => Value::Length(Moment::Out),
            "in" => self.range(Moment::In)?,
            "out" => self.range(Moment::Out)?,
            _ => match field(&word, column)? {
                Some(field) => field,
                None => return Ok(Operand::Word(word, column)),
            },
        };
        Ok(Operand::Value(value))
    }

    /// `[12]`, `[0:6]`, `[14:]`
    fn range(&mut self, moment: Moment) -> Result<Value, PropertyError> {
        self.takes_mark("[", "`[` and offsets of bytes")?;
        let (column, mut text) = (self.peek().column, String::new());
        loop {
            match &self.peek().kind {
                Kind::Word(word) => text += word,
                Kind::Mark(mark) if *mark != "]" => text += mark,
                Kind::Mark(_) | Kind::End => break,
            }
            self.at += 1;
        }
        self.takes_mark("]", "`]`")?;
        let offset = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<usize>().ok().filter(|offset| is_number && *offset <= FARTHEST)
        };
        let range = match text.split_once(':') {
            None => offset(&text).map(|first| (first, Some(first + 1))),
            Some((first, "")) => offset(first).map(|first| (first, None)),
            Some((first, end)) => offset(first).zip(offset(end)).map(|(first, end)| (first, Some(end))),
        };
        match range.filter(|(first, end)| end.is_none_or(|end| *first < end)) {
            Some((first, end)) => Ok(Value::Bytes(moment, first, end)),
            None => failed(column, Problem::Range { text, most: FARTHEST }),
        }
    }
}

/// `in.` or `out.`, and the rest of a word; packets are those that come in where neither is said.
fn moment(word: &str) -> (Moment, &str) {
    match (word.strip_prefix("in."), word.strip_prefix("out.")) {
        (Some(rest), _) => (Moment::In, rest),
        (_, Some(rest)) => (Moment::Out, rest),
        _ => (Moment::In, word),
    }
}

fn header(word: &str) -> Option<(Moment, &'static Protocol)> {
    let (moment, name) = moment(word);
    Protocol::named(name).map(|protocol| (moment, protocol))
}

fn has(moment: Moment, protocol: &'static Protocol, column: usize) -> Result<Expr, PropertyError> {
    match places(protocol).is_empty() {
        true => failed(column, Problem::Tunnel(protocol.name)),
        false => Ok(Expr::Has(moment, protocol)),
    }
}

/// A field by its path; `None` for words that are no path.
fn field(word: &str, column: usize) -> Result<Option<Value>, PropertyError> {
    let (moment, path) = moment(word);
    let Some((name, field)) = path.split_once('.') else { return Ok(None) };
    let Some(protocol) = Protocol::named(name) else {
        // What begins with a digit is to be a number or an address.
        let is_value = word.starts_with(|first: char| first.is_ascii_digit()) || word.contains(':');
        return if is_value { Ok(None) } else { failed(column, Problem::Protocol(name.to_owned())) };
    };
    let Some(found) = protocol.field(field) else {
        return failed(column, Problem::Field { protocol: protocol.name, name: field.to_owned() });
    };
    if found.bits == 0 {
        return failed(column, Problem::Variable { protocol: protocol.name, name: found.name });
    }
    has(moment, protocol, column)?;
    Ok(Some(Value::Field(moment, protocol, found)))
}

/// A number by itself: decimal, hexadecimal, or an address.
fn literal(word: &str) -> Option<u128> {
    let is_digits =
        |digits: &str, radix| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    if let Some(digits) = word.strip_prefix("0x") {
        return is_digits(digits, 16).then(|| u128::from_str_radix(digits, 16).ok()).flatten();
    }
    if is_digits(word, 10) {
        return word.parse().ok();
    }
    if let Ok(address) = word.parse::<Ipv4Addr>() {
        return Some(address.to_bits().into());
    }
    let parts: Vec<_> = word.split(':').collect();
    let is_mac = parts.len() == 6 && parts.iter().all(|part| part.len() == 2 && is_digits(part, 16));
    match is_mac {
        true => u128::from_str_radix(&parts.concat(), 16).ok(),
        false => word.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
    }
}

fn word(word: String, column: usize) -> Result<Value, PropertyError> {
    literal(&word).map(Value::Number).ok_or(PropertyError { column, problem: Problem::Word(word) })
}

/// A value of at most 64 bits.
fn number(operand: Operand, column: usize) -> Result<Value, PropertyError> {
    let value = match operand {
        Operand::Value(value) => value,
        Operand::Verdict => return failed(column, Problem::VerdictOrder),
        Operand::Word(text, column) => word(text, column)?,
    };
    match value {
        Value::Number(number) if number > u64::MAX.into() => failed(column, Problem::Number(8)),
        value if value.form() == Form::Number => Ok(value),
        _ => failed(column, Problem::Wide),
    }
}

/// A comparison of two operands, each with its column, at a column.
fn compare(
    comparison: Comparison,
    (left, first): (Operand, usize),
    (right, second): (Operand, usize),
    column: usize,
) -> Result<Expr, PropertyError> {
    let (left, right) = match (left, right) {
        (Operand::Verdict, Operand::Word(name, column)) | (Operand::Word(name, column), Operand::Verdict) => {
            return verdict(comparison, name, column);
        }
        (Operand::Verdict, _) => return failed(second, not_a_verdict()),
        (_, Operand::Verdict) => return failed(first, not_a_verdict()),
        (Operand::Value(left), Operand::Value(right)) => (left, right),
        (Operand::Value(left), Operand::Word(text, column)) => {
            let right = beside(&left, text, column)?;
            (left, right)
        }
        (Operand::Word(text, column), Operand::Value(right)) => (beside(&right, text, column)?, right),
        (Operand::Word(left, first), Operand::Word(right, second)) => {
            (word(left, first)?, word(right, second)?)
        }
    };
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let forms = (left.form(), right.form());
    let fits = |value: &Value, bytes: usize| match value {
        Value::Number(number) => bytes >= 16 || number >> (bytes * 8) == 0,
        _ => false,
    };
    match forms {
        (Form::Number, Form::Number) => {
            for (value, other, column) in [(&left, &right, first), (&right, &left, second)] {
                let bytes = other.bytes();
                if matches!(value, Value::Number(_)) && !fits(value, bytes) {
                    return failed(column, Problem::Number(bytes));
                }
            }
        }
        _ if !is_equality => return failed(column, Problem::Wide),
        (Form::Rest, Form::Rest) => {}
        (Form::Rest, _) | (_, Form::Rest) => return failed(column, Problem::Rest),
        (Form::Wide(left), Form::Wide(right)) if left == right => {}
        (Form::Wide(bytes), Form::Number) if bytes <= 16 && fits(&right, bytes) => {}
        (Form::Number, Form::Wide(bytes)) if bytes <= 16 && fits(&left, bytes) => {}
        (left, right) => {
            let bytes = |form| if let Form::Wide(bytes) = form { bytes } else { 8 };
            return failed(column, Problem::Sizes { left: bytes(left), right: bytes(right) });
        }
    }
    Ok(Expr::Compare(comparison, left, right))
}

fn verdict(comparison: Comparison, name: String, column: usize) -> Result<Expr, PropertyError> {
    let Some(verdict) = Verdict::ALL.into_iter().find(|verdict| verdict.name() == name) else {
        return failed(column, Problem::Verdict(name));
    };
    match comparison {
        Comparison::Equal => Ok(Expr::Verdict(verdict)),
        Comparison::NotEqual => Ok(Expr::Not(Box::new(Expr::Verdict(verdict)))),
        _ => failed(column, Problem::VerdictOrder),
    }
}

fn not_a_verdict() -> Problem {
    Problem::Expected { expected: "a verdict", found: "another value".to_owned() }
}

/// A word as it is read where it is compared with a value.
fn beside(value: &Value, text: String, column: usize) -> Result<Value, PropertyError> {
    let Value::Field(_, protocol, field) = value else { return word(text, column) };
    match field.read(&text) {
        Some(number) => Ok(Value::Number(number)),
        None => {
            let (protocol, name, form) = (protocol.name, field.name, field.form());
            failed(column, Problem::Value { protocol, name, form, value: text })
        }
    }
}
