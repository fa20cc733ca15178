//! The whole walk, instruction by instruction.

use std::io::{self, Write};

use paceline::diagnosis::Symbols;
use paceline::isa::{Insn, Reg, disassemble};
use paceline::verifier::state::State;
use paceline::verifier::{Observer, PathEnd};
use paceline::{Object, ProgramSpec};

/// Writes each instruction with the values of the registers that it reads.
pub(super) struct Log<'a> {
    out: &'a mut dyn Write,
    spec: &'a ProgramSpec,
    symbols: Symbols<'a>,
    lines: Vec<paceline::isa::Line>,
    /// The source line shown last.
    shown: Option<(&'a str, u32)>,
    /// Slots of the branches that wait.
    waiting: Vec<usize>,
    /// The first error of writing; nothing is written after it.
    ended: io::Result<()>,
}

impl<'a> Log<'a> {
    pub(super) fn new(object: &'a Object, spec: &'a ProgramSpec, out: &'a mut dyn Write) -> Self {
        Self {
            out,
            spec,
            symbols: Symbols::new(object, spec),
            lines: disassemble(&spec.insns),
            shown: None,
            waiting: Vec::new(),
            ended: Ok(()),
        }
    }

    /// Whether all could be written.
    pub(super) fn finish(self) -> io::Result<()> {
        self.ended
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        if self.ended.is_ok() {
            self.ended = self.out.write_fmt(text);
        }
    }

    fn write_source(&mut self, slot: usize) {
        let Some(line) = self.spec.line_of(slot) else { return };
        let place = (&*line.file, line.line);
        if self.shown != Some(place) {
            self.shown = Some(place);
            self.write(format_args!("; {} @ {}:{}\n", line.text.trim(), line.file, line.line));
        }
    }

    fn name_of(&self, slot: usize) -> &'a str {
        self.spec.function_of(slot).map_or(&self.spec.name, |function| &function.name)
    }
}

impl Observer for Log<'_> {
    fn function(&mut self, slot: usize, _state: &State) {
        (self.shown, self.waiting) = (None, Vec::new());
        let name = self.name_of(slot);
        self.write(format_args!("\n; function {name}\n"));
    }

    fn instruction(&mut self, slot: usize, state: &State) {
        self.write_source(slot);
        let at = self.lines.partition_point(|line| line.slot < slot);
        let Some(line) = self.lines.get(at) else { return };
        let text = self.symbols.text(line);
        let known = line.insn.map_or_else(|_| String::new(), |insn| known(&insn, state));
        match known.is_empty() {
            true => self.write(format_args!("{slot:6}: {text}\n")),
            false => self.write(format_args!("{slot:6}: {text:<32}  ; {known}\n")),
        }
    }

    fn branch(&mut self, slot: usize, _target: usize) {
        self.waiting.push(slot);
    }

    fn path_ends(&mut self, slot: usize, why: PathEnd) {
        match why {
            PathEnd::Exit => self.write(format_args!("        the path ends\n")),
            PathEnd::Covered => {
                self.write(format_args!(
                    "        the path ends: what is known at {slot} was covered before\n"
                ));
            }
        }
    }

    fn resume(&mut self, slot: usize) {
        self.shown = None;
        let from = self.waiting.pop().unwrap_or_default();
        self.write(format_args!("\nfrom {from} to {slot}\n"));
    }

    fn retry(&mut self, slot: usize) {
        self.shown = None;
        self.write(format_args!("\nat {slot} again: the state is no longer covered\n"));
    }
}

/// The values of the registers that an instruction reads.
fn known(insn: &Insn, state: &State) -> String {
    let reads = insn.reads();
    let known = reads.iter().filter(|&reg| reg != Reg::R10 && !state.get(reg).is_unset());
    let known: Vec<_> = known.map(|reg| format!("{reg} is {}", state.get(reg))).collect();
    known.join("; ")
}
