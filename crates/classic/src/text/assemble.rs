//! The assembler for the language of the kernel's `tools/bpf/bpf_asm`.

use std::collections::HashMap;

use super::super::ancillary::Ancillary;
use super::super::insn::{MAX_INSNS, SockFilter};
use super::super::table::{Form, Row, rows};
use super::error::{Problem, TextError};
use super::lexer::{Cursor, Kind, Token};

/// Parses assembly, such as `ldh [12]`, `jne #0x800, drop`, `drop: ret #0`. Jumps name labels; `jeq`, `jgt`, `jge` and `jset` take
/// two labels, or only that of the taken branch; `jne`, `jlt` and `jle` take one label, and become `jeq`, `jge` and `jgt` with a
/// label for the branch that is not taken.
///
/// # Errors
/// The first syntax error, with its position.
pub fn assemble(text: &str) -> Result<Vec<SockFilter>, TextError> {
    let mut assembler = Assembler {
        cursor: Cursor::new(text)?,
        insns: Vec::new(),
        labels: HashMap::new(),
        jumps: Vec::new(),
    };
    while assembler.cursor.peek().kind != Kind::End {
        assembler.statement()?;
    }
    assembler.resolve()
}

/// The field of a jump that holds a label's distance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Always,
    True,
    False,
}

struct Assembler<'a> {
    cursor: Cursor<'a>,
    insns: Vec<SockFilter>,
    labels: HashMap<&'a str, usize>,
    jumps: Vec<(usize, Way, Token<'a>, &'a str)>,
}

impl<'a> Assembler<'a> {
    fn statement(&mut self) -> Result<(), TextError> {
        let (token, word) = self.cursor.word("an instruction or label")?;
        if self.cursor.accept(Kind::Punctuation(':')) {
            return match self.labels.insert(word, self.insns.len()) {
                Some(_) => Err(token.error(Problem::LabelTwice(word.to_owned()))),
                None => Ok(()),
            };
        }
        if self.insns.len() == MAX_INSNS {
            return Err(token.error(Problem::TooLong));
        }
        let insn = self.instruction(token, word)?;
        self.insns.push(insn);
        Ok(())
    }

    fn instruction(&mut self, token: Token<'a>, word: &str) -> Result<SockFilter, TextError> {
        let (name, only_false) = match word {
            "jmp" => ("ja", false),
            "jne" | "jneq" => ("jeq", true),
            "jlt" => ("jge", true),
            "jle" => ("jgt", true),
            "ldi" => ("ld", false),
            "ldxi" => ("ldx", false),
            word => (word, false),
        };
        if !rows().any(|row| row.name == name) {
            return Err(token.error(Problem::Instruction(word.to_owned())));
        }
        if matches!(word, "ldi" | "ldxi") {
            self.cursor.accept(Kind::Punctuation('#'));
            let k = self.cursor.constant()?;
            return Ok(SockFilter::new(code(name, Form::Hex).unwrap_or_default(), k));
        }
        let (form, k) = self.operand(name)?;
        // `ldx` accepts the header length operand of `ldxb`.
        let name = if form == Form::HeaderLength { "ldxb" } else { name };
        let code = code(name, form).ok_or_else(|| token.unexpected(wanted(name)))?;
        if name.starts_with('j') {
            self.targets(name, only_false)?;
        }
        Ok(SockFilter::new(code, k))
    }

    /// Parses the operand of an instruction with this name.
    fn operand(&mut self, name: &str) -> Result<(Form, u32), TextError> {
        let forms: Vec<Form> = rows().filter(|row| row.name == name).map(|row| row.form).collect();
        let has = |form: Form| forms.contains(&form);
        let token = self.cursor.peek();
        if has(Form::None) {
            return Ok((Form::None, 0));
        }
        if has(Form::Target) {
            return Ok((Form::Target, 0));
        }
        let fail = || token.unexpected(wanted(name));
        match token.kind {
            Kind::Punctuation('#') => {
                self.cursor.next();
                if let Kind::Word(word) = self.cursor.peek().kind {
                    return self.extension(word, has(Form::Length)).ok_or_else(fail);
                }
                let form = [Form::Decimal, Form::Hex].into_iter().find(|form| has(*form)).ok_or_else(fail)?;
                Ok((form, self.cursor.constant()?))
            }
            Kind::Punctuation('[') if has(Form::Absolute) => self.packet(),
            Kind::Punctuation('%') => {
                self.cursor.next();
                self.register(&forms).ok_or_else(fail)
            }
            Kind::Word("x" | "a") => self.register(&forms).ok_or_else(fail),
            Kind::Word("M") if has(Form::Memory) => {
                self.cursor.next();
                self.cursor.expect('[', "`[`")?;
                let k = self.cursor.constant()?;
                self.cursor.expect(']', "`]`")?;
                Ok((Form::Memory, k))
            }
            Kind::Word(word) => self.extension(word, has(Form::Length)).ok_or_else(fail),
            Kind::Number(_) if matches!(name, "ldx" | "ldxb") => self.header_length(),
            _ => Err(fail()),
        }
    }

    fn register(&mut self, forms: &[Form]) -> Option<(Form, u32)> {
        let form = match self.cursor.next().kind {
            Kind::Word("x") => Form::X,
            Kind::Word("a") => Form::A,
            _ => return None,
        };
        forms.contains(&form).then_some((form, 0))
    }

    /// Parses the length or an ancillary word.
    fn extension(&mut self, word: &str, has_length: bool) -> Option<(Form, u32)> {
        self.cursor.next();
        if has_length && matches!(word, "len" | "pktlen") {
            return Some((Form::Length, 0));
        }
        Some((Form::Absolute, Ancillary::from_name(word)?.offset()))
    }

    /// `[12]`, `[x + 12]`
    fn packet(&mut self) -> Result<(Form, u32), TextError> {
        self.cursor.expect('[', "`[`")?;
        self.cursor.accept(Kind::Punctuation('%'));
        let form = if self.cursor.accept(Kind::Word("x")) {
            let token = self.cursor.peek();
            if !matches!(token.kind, Kind::Punctuation('+' | '-')) {
                return Err(token.unexpected("`+`"));
            }
            // Another sign may follow, as in libpcap's syntax of negative offsets.
            if token.kind == Kind::Punctuation('+') {
                self.cursor.next();
            }
            Form::Indirect
        } else {
            Form::Absolute
        };
        let k = self.cursor.constant()?;
        self.cursor.expect(']', "`]`")?;
        Ok((form, k))
    }

    /// `4*([14]&0xf)`
    fn header_length(&mut self) -> Result<(Form, u32), TextError> {
        self.cursor.number(4, 4)?;
        let token = self.cursor.peek();
        if !self.cursor.accept_all("*([") {
            return Err(token.unexpected("`*([`"));
        }
        let k = self.cursor.constant()?;
        let token = self.cursor.peek();
        if !self.cursor.accept_all("]&") {
            return Err(token.unexpected("`]&`"));
        }
        self.cursor.number(0xf, 0xf)?;
        self.cursor.expect(')', "`)`")?;
        Ok((Form::HeaderLength, k))
    }

    fn targets(&mut self, name: &str, only_false: bool) -> Result<(), TextError> {
        if name == "ja" {
            return self.target(Way::Always);
        }
        self.cursor.expect(',', "`,` and a label")?;
        if only_false {
            return self.target(Way::False);
        }
        self.target(Way::True)?;
        if self.cursor.accept(Kind::Punctuation(',')) { self.target(Way::False) } else { Ok(()) }
    }

    fn target(&mut self, way: Way) -> Result<(), TextError> {
        let (token, label) = self.cursor.word("a label")?;
        self.jumps.push((self.insns.len(), way, token, label));
        Ok(())
    }

    fn resolve(mut self) -> Result<Vec<SockFilter>, TextError> {
        for (index, way, token, label) in self.jumps {
            let target = *self
                .labels
                .get(label)
                .ok_or_else(|| token.error(Problem::UnknownLabel(label.to_owned())))?;
            let distance = target
                .checked_sub(index + 1)
                .ok_or_else(|| token.error(Problem::Backward(label.to_owned())))?;
            let Some(insn) = self.insns.get_mut(index) else { continue };
            if way == Way::Always {
                insn.k = distance as u32;
                continue;
            }
            let near = u8::try_from(distance)
                .map_err(|_| token.error(Problem::TooFar { label: label.to_owned(), distance }))?;
            if way == Way::True {
                insn.jt = near;
            } else {
                insn.jf = near;
            }
        }
        Ok(self.insns)
    }
}

fn code(name: &str, form: Form) -> Option<u16> {
    let found = |row: &&Row| row.name == name && row.form == form;
    rows().find(found).map(|row| row.code)
}

/// Description of an instruction's operands.
fn wanted(name: &str) -> &'static str {
    match name {
        "ld" => "`#` and a number, `#len`, `[12]`, `[x + 12]`, `M[3]` or an ancillary word such as `#proto`",
        "ldh" | "ldb" => "`[12]`, `[x + 12]` or an ancillary word such as `#proto`",
        "ldx" => "`#` and a number, `#len`, `M[3]` or `4*([14]&0xf)`",
        "ldxb" => "`4*([14]&0xf)`",
        "st" | "stx" => "`M[3]`",
        "ret" => "`#` and a number, or `a`",
        _ => "`#` and a number, or `x`",
    }
}
