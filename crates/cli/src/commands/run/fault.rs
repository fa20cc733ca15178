//! A fault of a program, with everything that helps to find it.

use std::fmt;
use std::sync::Arc;

use paceline::diagnosis::Symbols;
use paceline::isa::disassemble;
use paceline::{Fault, FaultKind, LineInfo, Object, ProgramSpec};

use crate::common::failure::CommandError;
use crate::common::packets::{When, processed};

/// A fault, its time and its place in the program.
#[derive(Debug)]
pub(super) struct FaultReport {
    object: String,
    capture: String,
    when: When,
    program: String,
    /// The program that the instruction is of, where that is another one.
    tail_called: Option<String>,
    function: String,
    line: Option<LineInfo>,
    insn: Option<String>,
    fault: Fault,
    /// The reason why loading the object replaced the instruction, if it did.
    poison: Option<Arc<str>>,
}

impl FaultReport {
    pub(super) fn new(object: &Object, spec: &ProgramSpec, when: When, fault: Fault) -> Self {
        let slot = fault.slot;
        let run = spec;
        let tail_called = fault.tail_called.clone();
        let spec = tail_called.as_deref().unwrap_or(run);
        let symbols = Symbols::new(object, spec);
        let insn = disassemble(&spec.insns).into_iter().find(|line| line.slot == slot);
        Self {
            object: String::new(),
            capture: String::new(),
            when,
            program: run.name.clone(),
            tail_called: tail_called.as_ref().map(|spec| spec.name.clone()),
            function: spec.function_of(slot).map_or_else(|| spec.name.clone(), |f| f.name.clone()),
            line: spec.line_of(slot).cloned(),
            insn: insn.map(|line| symbols.text(&line)),
            poison: spec.poison_at(slot).map(|poison| poison.reason.clone()),
            fault,
        }
    }

    pub(super) fn of(self, object: &str, capture: &str) -> Self {
        Self { object: object.to_owned(), capture: capture.to_owned(), ..self }
    }
}

impl std::error::Error for FaultReport {}

impl CommandError for FaultReport {
    fn hint(&self) -> Option<String> {
        let first = match self.fault.kind {
            FaultKind::Budget(_) => "--budget N lets it run for longer; ",
            _ => "",
        };
        processed(self.when.done()).map(|text| format!("{first}{text}"))
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, program, when, capture, .. } = self;
        write!(f, "{object}: program {program}, {when} of {capture}: ")?;
        match &self.poison {
            Some(reason) => write!(f, "reached an instruction that could not be relocated: {reason}")?,
            None => write!(f, "{}", self.fault.kind)?,
        }
        write!(f, "\n  in function {}", self.function)?;
        if let Some(program) = &self.tail_called {
            write!(f, " of program {program}, by a tail call")?;
        }
        if let Some(LineInfo { file, line, text, .. }) = &self.line {
            write!(f, "\n  at {file}:{line}: {}", text.trim())?;
        }
        write!(f, "\n  by instruction {}", self.fault.slot)?;
        self.insn.as_ref().map_or(Ok(()), |insn| write!(f, ": {insn}"))
    }
}
