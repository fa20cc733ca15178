//! Seccomp programs over recorded system calls.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use paceline::Host;
use paceline::filter::{Action, Filter, Purpose, Seccomp, SystemCall, text};
use serde_json::json;

use super::error::{CallError, FilterError};
use super::wanted::read_text;
use crate::common::failure::Failure;
use crate::common::report;

/// Prints the action of a program on each call of a file.
pub(super) fn run(program: &Path, calls: &Path, json: bool) -> Result<ExitCode, Failure> {
    let (name, source) = read_text(program)?;
    let insns = text::parse(&source).map_err(|error| FilterError::Text { name: name.clone(), error })?;
    let filter = Filter::new(insns, Purpose::Seccomp)
        .map_err(|source| FilterError::Check { name: name.clone(), source })?;
    let seccomp = Seccomp::new(&filter)
        .map_err(|error| FilterError::Program { name: name.clone(), source: Box::new(error.into()) })?;
    let (calls_name, source) = read_text(calls)?;
    let calls = parse(&source).map_err(|(line, column, source)| FilterError::SystemCall {
        name: calls_name,
        line,
        column,
        source,
    })?;
    let mut host = Host::default();
    let action = |call: SystemCall| match seccomp.action(&call, &mut host) {
        Ok(action) => Ok((call, action)),
        Err(fault) => Err(FilterError::Fault { name: name.clone(), fault }),
    };
    let actions: Vec<(SystemCall, Action)> = calls.into_iter().map(action).collect::<Result<_, _>>()?;
    report::print(|out| if json { write_json(out, &actions) } else { write_text(out, &actions) })
}

/// Counts of actions, by their text.
fn totals(actions: &[(SystemCall, Action)]) -> BTreeMap<String, usize> {
    let mut totals = BTreeMap::new();
    for (_, action) in actions {
        *totals.entry(action.to_string()).or_default() += 1;
    }
    totals
}

fn write_text(out: &mut dyn Write, actions: &[(SystemCall, Action)]) -> io::Result<()> {
    for (call, action) in actions {
        let arguments: Vec<_> = call.arguments.iter().map(|argument| format!("{argument:#x}")).collect();
        let arch =
            if call.arch == SystemCall::X86_64 { String::new() } else { format!(" of {:#x}", call.arch) };
        writeln!(out, "{:<16} {}({}){arch}", action.to_string(), call.number, arguments.join(", "))?;
    }
    let plural = if actions.len() == 1 { "" } else { "s" };
    writeln!(out, "\n{} system call{plural}", actions.len())?;
    for (action, count) in totals(actions) {
        writeln!(out, "  {action:<16} {count:>12}")?;
    }
    Ok(())
}

fn write_json(out: &mut dyn Write, actions: &[(SystemCall, Action)]) -> io::Result<()> {
    let call = |(call, action): &(SystemCall, Action)| {
        json!({
            "number": call.number,
            "arch": call.arch,
            "instruction_pointer": call.instruction_pointer,
            "arguments": call.arguments,
            "action": action.to_string(),
        })
    };
    let calls: Vec<_> = actions.iter().map(call).collect();
    writeln!(out, "{}", json!({ "calls": calls, "totals": totals(actions) }))
}

/// The calls in a text, or line and column of the error.
pub(super) fn parse(text: &str) -> Result<Vec<SystemCall>, (usize, usize, CallError)> {
    let mut calls = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split('#').next().unwrap_or_default();
        let words = words(code);
        if words.is_empty() {
            continue;
        }
        let call = parse_call(&words).map_err(|(at, error)| {
            let column = code.get(..at).map_or(at, |before| before.chars().count()) + 1;
            (number, column, error)
        })?;
        calls.push(call);
    }
    Ok(calls)
}

/// Words with their places.
fn words(line: &str) -> Vec<(usize, &str)> {
    let place = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    line.split_whitespace().map(|word| (place(word), word)).collect()
}

fn parse_call(words: &[(usize, &str)]) -> Result<SystemCall, (usize, CallError)> {
    const WORDS: usize = 9;
    if let Some((at, _)) = words.get(WORDS) {
        return Err((*at, CallError::TooMany));
    }
    let value = |index: usize, bits: u32| match words.get(index) {
        None => Ok(None),
        Some(&(at, word)) => parse_number(word, bits).map(Some).map_err(|error| (at, error)),
    };
    let mut call = SystemCall {
        number: (value(0, 32)?.unwrap_or(0) as u32).cast_signed(),
        arch: value(1, 32)?.map_or(SystemCall::X86_64, |arch| arch as u32),
        instruction_pointer: value(2, 64)?.unwrap_or(0),
        ..SystemCall::default()
    };
    for (index, argument) in call.arguments.iter_mut().enumerate() {
        *argument = value(3 + index, 64)?.unwrap_or(0);
    }
    Ok(call)
}

fn parse_number(word: &str, bits: u32) -> Result<u64, CallError> {
    let (digits, radix) = match word.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (word, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(CallError::Number(word.to_owned()));
    }
    let value = u64::from_str_radix(digits, radix).ok();
    let fits = |value: &u64| bits == 64 || value >> bits == 0;
    value.filter(fits).ok_or_else(|| CallError::TooLarge { text: word.to_owned(), bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbers_in_a_row() {
        let calls = parse("# a comment\n257 0xc000003e 16 0xffffff9c 1 # open\n\n 60\n").unwrap();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[0].arguments, [0xffff_ff9c, 1, 0, 0, 0, 0]);
        assert_eq!((calls[0].number, calls[0].instruction_pointer), (257, 16));
        assert_eq!((calls[1].number, calls[1].arch), (60, SystemCall::X86_64));
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        let wrong = |text: &str| parse(text).unwrap_err();
        assert_eq!(wrong("1\n2 open"), (2, 3, CallError::Number("open".to_owned())));
        assert_eq!(wrong("+1"), (1, 1, CallError::Number("+1".to_owned())));
        assert_eq!(wrong("0x"), (1, 1, CallError::Number("0x".to_owned())));
        let too_large = CallError::TooLarge { text: "4294967296".to_owned(), bits: 32 };
        assert_eq!(wrong("4294967296"), (1, 1, too_large));
        assert_eq!(wrong("1 2 3 4 5 6 7 8 9 10"), (1, 19, CallError::TooMany));
    }
}
