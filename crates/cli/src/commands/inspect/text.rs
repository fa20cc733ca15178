//! A survey as text.

use std::io::{self, Write};

use paceline::{Linkage, MapSpec, ProgramKind};

use super::program::{ProgramSurvey, attach_name};
use super::survey::{Survey, memory, type_name};
use super::table;

/// Writes a survey.
pub(crate) fn write(out: &mut dyn Write, survey: &Survey<'_>) -> io::Result<()> {
    let object = survey.object;
    let license = if object.license().is_empty() { "none" } else { object.license() };
    let btf = if object.btf().is_some() { "BTF" } else { "no BTF" };
    let lines = if survey.has_lines() { "source lines" } else { "no source lines" };
    writeln!(out, "{}: license {license}, {btf}, {lines}", survey.name)?;
    survey.programs.iter().try_for_each(|program| write_program(out, program))?;
    write_maps(out, survey)?;
    if !object.skipped().is_empty() {
        writeln!(out, "\nskipped, because they are no programs that run here")?;
        let row = |name: &str, section: &str| vec![name.to_owned(), format!("section {section}")];
        let rows: Vec<_> = object.skipped().iter().map(|s| row(&s.name, &s.section)).collect();
        table::write(out, &rows)?;
    }
    match (survey.programs.as_slice(), survey.missing.as_slice()) {
        ([], []) => return writeln!(out, "\nthere is no program in it that runs here"),
        (_, []) => return writeln!(out, "\nPaceline has everything that it needs"),
        _ => {}
    }
    for (title, unsupported) in [("needs what Paceline does not have", true), ("cannot be loaded", false)] {
        let those = survey.missing.iter().filter(|missing| missing.unsupported == unsupported);
        let rows: Vec<_> = those.map(|missing| row(&missing.user, missing.what.clone())).collect();
        if !rows.is_empty() {
            writeln!(out, "\n{title}")?;
            table::write(out, &rows)?;
        }
    }
    Ok(())
}

fn write_program(out: &mut dyn Write, program: &ProgramSurvey<'_>) -> io::Result<()> {
    let spec = program.spec;
    writeln!(out, "\nprogram {}", spec.name)?;
    let mut rows = vec![row("section", spec.section.clone()), row("type", kind(spec.kind))];
    rows.push(row("instructions", program.insns.to_string()));
    rows.push(row("functions", functions(program)));
    rows.push(row("helpers", list(program.helpers.iter().map(|helper| helper.name.to_owned()))));
    if !program.unknown_helpers.is_empty() {
        rows.push(row("unknown helpers", list(program.unknown_helpers.iter().map(i32::to_string))));
    }
    if !program.kfuncs.is_empty() {
        let name = |name: &str, weak| if weak { format!("{name} (weak)") } else { name.to_owned() };
        rows.push(row("kernel functions", list(program.kfuncs.iter().map(|k| name(&k.name, k.weak)))));
    }
    rows.push(row("maps", list(program.maps.iter().map(|spec| spec.name.clone()))));
    if !spec.poisoned.is_empty() {
        let reasons = spec.poisoned.iter().map(|p| format!("instruction {} ({})", p.slot, p.reason));
        rows.push(row("not relocated", format!("{}, which fails if reached", list(reasons))));
    }
    if !spec.autoload {
        rows.push(row("autoload", "no".to_owned()));
    }
    table::write(out, &rows)
}

fn row(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn kind(kind: ProgramKind) -> String {
    match kind {
        ProgramKind::Xdp { attach, frags } => {
            let frags = if frags { ", packets in several buffers" } else { "" };
            format!("xdp, for {} {}{frags}", article(attach_name(attach)), attach_name(attach))
        }
        other => other.rules().name.replace('_', " "),
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with('i') { "an" } else { "a" }
}

/// `main (280 slots), parse (32 slots, static)`
fn functions(program: &ProgramSurvey<'_>) -> String {
    list(program.functions().map(|(function, slots)| {
        let linkage = if function.linkage == Linkage::Static { ", static" } else { "" };
        format!("{} ({slots} slots{linkage})", function.name)
    }))
}

fn write_maps(out: &mut dyn Write, survey: &Survey<'_>) -> io::Result<()> {
    if survey.object.maps().is_empty() {
        return Ok(());
    }
    writeln!(out, "\nmaps")?;
    let heading = ["name", "type", "key", "value", "entries", "bytes", "flags"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(survey.object.maps().iter().map(|spec| map_row(survey, spec)));
    table::write(out, &rows)
}

fn map_row(survey: &Survey<'_>, spec: &MapSpec) -> Vec<String> {
    let btf = survey.object.btf();
    let typed = |size: u32, ty| match type_name(btf, ty) {
        Some(name) => format!("{name} ({size})"),
        None => size.to_string(),
    };
    vec![
        spec.name.clone(),
        spec.kind.to_string(),
        typed(spec.key_size, spec.key_type),
        typed(spec.value_size, spec.value_type),
        spec.max_entries.to_string(),
        memory(spec).to_string(),
        if spec.flags.0 == 0 { String::new() } else { format!("{:#x}", spec.flags.0) },
    ]
}
