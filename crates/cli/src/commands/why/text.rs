//! Explanations as text.

use std::io::{self, Write};

use paceline::explain::{At, Event, Explanation};
use paceline::packet::{differences, to_text};

use super::explained::Explained;
use crate::common::console::shown;
use crate::subject::Subject;

/// Most characters of a packet's layers on the first line.
const LAYERS: usize = 200;

/// One sentence for each packet.
pub(super) fn write_brief(out: &mut dyn Write, explained: &[Explained]) -> io::Result<()> {
    explained.iter().try_for_each(|packet| {
        writeln!(out, "packet {}: {}", packet.number, shown(&packet.explanation.sentence()))
    })
}

/// The way of each packet, with the sentence, and with all causes if they are wanted.
pub(super) fn write(
    out: &mut dyn Write,
    subject: &Subject,
    explained: &[Explained],
    all: bool,
) -> io::Result<()> {
    for (index, packet) in explained.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_packet(out, subject, packet, all)?;
    }
    Ok(())
}

fn write_packet(out: &mut dyn Write, subject: &Subject, packet: &Explained, all: bool) -> io::Result<()> {
    let layers = to_text(&packet.bytes);
    let layers = match layers.char_indices().nth(LAYERS) {
        Some((end, _)) => format!("{}...", layers.get(..end).unwrap_or_default()),
        None => layers,
    };
    writeln!(out, "packet {}, {} bytes: {layers}", packet.number, packet.bytes.len())?;
    for (node, explanation, _) in &packet.explanation.steps {
        if subject.is_chain {
            let name = subject.programs.get(node.index()).map_or("", |program| program.name.as_str());
            writeln!(out, "  {}: {}", shown(name), explanation.outcome.verdict.name())?;
        }
        write_events(out, explanation)?;
    }
    for change in differences(&packet.bytes, &packet.explanation.outcome.bytes) {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        writeln!(out, "  changed: {} {} -> {}", change.name, value(&change.before), value(&change.after))?;
    }
    writeln!(out, "{}", packet.explanation.sentence())?;
    let Some((_, last, _)) = packet.explanation.steps.last() else { return Ok(()) };
    if let Some(otherwise) = &last.otherwise {
        writeln!(out, "  otherwise {}", shown(otherwise))?;
    }
    if all {
        for cause in last.causes.iter().skip(1) {
            let line = last.line(cause.at).map_or("", |line| line.text.trim());
            let reason = last.reason(cause).unwrap_or_else(|| format!("of `{line}`"));
            writeln!(
                out,
                "  which depends on the decision {}, because {}",
                last.place_of(cause),
                shown(&reason)
            )?;
        }
    }
    Ok(())
}

fn write_events(out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
    let (mut file, mut last) = (None, String::new());
    for (index, event) in explanation.events.iter().enumerate() {
        match event {
            Event::Line(at) => {
                last.clear();
                write_line(out, explanation, *at, &mut file)?;
            }
            Event::Branch(branch) => {
                let facts = branch.facts.iter().chain(&branch.variables);
                let facts: Vec<_> = facts.map(ToString::to_string).collect();
                let facts = shown(&facts.join(", "));
                match decides(explanation, index) {
                    true => writeln!(out, "             {facts}  <- decides")?,
                    // A switch compares one value again and again.
                    false if facts.is_empty() || facts == last => {}
                    false => writeln!(out, "             {facts}")?,
                }
                last = facts;
            }
            Event::Call(call) => {
                let element = call.element.as_ref().map(|element| format!(" {element}")).unwrap_or_default();
                let result = match (&call.element, call.result) {
                    (Some(_), Some(0)) => " = 0".to_owned(),
                    // Addresses say nothing.
                    (Some(_), Some(_)) | (_, None) => String::new(),
                    (None, Some(value)) => format!(" = {}", value.cast_signed()),
                };
                writeln!(out, "             {}{}{result}", call.name, shown(&element))?;
            }
            Event::TailCall { to, .. } => {
                let name = explanation.programs.get(*to).map_or("", |program| program.name.as_str());
                let mark = if decides(explanation, index) { "  <- decides" } else { "" };
                writeln!(out, "             continues in {}{mark}", shown(name))?;
                file = None;
            }
            _ => {}
        }
    }
    if explanation.truncated {
        writeln!(out, "    ... and more")?;
    }
    Ok(())
}

/// Whether an event belongs to the decision that made the outcome.
fn decides(explanation: &Explanation, event: usize) -> bool {
    explanation.cause().is_some_and(|cause| cause.events.contains(&event))
}

fn write_line(
    out: &mut dyn Write,
    explanation: &Explanation,
    at: At,
    file: &mut Option<String>,
) -> io::Result<()> {
    let Some(line) = explanation.line(at) else { return Ok(()) };
    if file.as_deref() != Some(&*line.file) {
        *file = Some(line.file.to_string());
        writeln!(out, "  {}", shown(&line.file))?;
    }
    writeln!(out, "    {:>5}  {}", line.line, shown(line.text.trim()))
}
