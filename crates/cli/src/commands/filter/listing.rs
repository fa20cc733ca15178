//! Programs as tcpdump prints them, beside the converted instructions, and as source code.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use paceline::filter::text::{Language, filter_source, program_source, to_c_array, to_decimal, to_listing};
use paceline::filter::{Converted, Returns};
use paceline::isa::{Callee, Insn, disassemble};

use super::args::{FilterArgs, Form};
use super::error::FilterError;
use super::wanted::Compiled;
use crate::common::failure::Failure;
use crate::common::report;

pub(super) fn print(args: &FilterArgs, compiled: &Compiled) -> Result<ExitCode, Failure> {
    let insns = compiled.filter.insns();
    let Some(form) = args.form else {
        let text = match args.dump {
            0 | 1 => to_listing(insns),
            2 => to_c_array(insns),
            _ => to_decimal(insns),
        };
        return report::print(|out| out.write_all(text.as_bytes()));
    };
    let options = compiled.options().returns(Returns::PASS_OR_DROP);
    let converted = compiled
        .filter
        .to_xdp_insns(&options)
        .map_err(|error| FilterError::Program { name: compiled.title(), source: Box::new(error.into()) })?;
    report::print(|out| match form {
        Form::Listing => write_side_by_side(out, compiled, &converted),
        Form::C => write_source(out, compiled, &converted, Language::C),
        Form::Rust => write_source(out, compiled, &converted, Language::Rust),
    })
}

/// The filter and the program, as arrays.
pub(super) fn write_source(
    out: &mut dyn Write,
    compiled: &Compiled,
    converted: &Converted,
    language: Language,
) -> io::Result<()> {
    let (filter, program) = match language {
        Language::C => ("filter", "program"),
        Language::Rust => ("FILTER", "PROGRAM"),
    };
    if let Some(expression) = compiled.expression() {
        writeln!(out, "// {expression}")?;
    }
    let text = filter_source(compiled.filter.insns(), language, filter);
    writeln!(out, "// Classic: for sockets.\n{text}")?;
    if let Some(function) = converted.kfuncs.first() {
        let name = &function.name;
        return writeln!(
            out,
            "// No XDP program is the same elsewhere: it calls {name}, which only Paceline lets it."
        );
    }
    let text = program_source(&converted.insns, language, program);
    write!(out, "// The same as an XDP program, which passes what matches and drops the rest.\n{text}")
}

/// The name of a function that a converted program calls.
fn called(converted: &Converted, index: i32) -> &str {
    let function = usize::try_from(index).ok().and_then(|index| converted.kfuncs.get(index));
    function.map_or("?", |function| &function.name)
}

/// The listing of `tcpdump -d` on the left, and the converted instructions on the right.
pub(super) fn write_side_by_side(
    out: &mut dyn Write,
    compiled: &Compiled,
    converted: &Converted,
) -> io::Result<()> {
    let classic = to_listing(compiled.filter.insns());
    let classic: Vec<String> = classic.lines().map(|line| line.trim_end().replace('\t', "  ")).collect();
    let width = classic.iter().map(String::len).max().unwrap_or(0) + 4;
    let lines = disassemble(&converted.insns);
    let mut ends: Vec<usize> = converted.places.iter().flatten().copied().collect();
    ends.push(lines.len());
    let mut written = 0;
    let mut write = |left: &str, until: usize| -> io::Result<()> {
        let mut left = Some(left).filter(|left| !left.is_empty());
        while left.is_some() || written < until {
            let mut line = format!("{:<width$}", left.take().unwrap_or_default());
            if let Some(insn) = lines.get(written).filter(|_| written < until) {
                let _ = match &insn.insn {
                    Ok(Insn::Call(Callee::Kfunc { btf_id, .. })) => {
                        write!(line, "{:4}: call {}", insn.slot, called(converted, *btf_id))
                    }
                    Ok(text) => write!(line, "{:4}: {text}", insn.slot),
                    Err(error) => write!(line, "{:4}: <{error}>", insn.slot),
                };
                written += 1;
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    };
    let mut ends = ends.into_iter();
    write("", ends.next().unwrap_or(0))?;
    for (left, place) in classic.iter().zip(&converted.places) {
        match place {
            Some(_) => write(left, ends.next().unwrap_or(lines.len()))?,
            None => write(left, 0)?,
        }
    }
    Ok(())
}
