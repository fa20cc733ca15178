//! A program as text and as JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;

use paceline::btf::{Btf, Type};
use paceline::diagnosis::Symbols;
use paceline::isa::{Line, RawInsn, disassemble};
use paceline::{FunctionInfo, LineInfo, Linkage, Object, ProgramSpec};
use serde_json::{Value as Json, json};

use super::native::{Function, Native};

/// A program with all that its listing needs.
pub(crate) struct Listing<'a> {
    spec: &'a ProgramSpec,
    btf: Option<&'a Btf>,
    symbols: Symbols<'a>,
    lines: Vec<Line>,
    native: Option<&'a Native>,
    /// The slice that runs ahead of bursts.
    slice: Option<Box<Self>>,
    /// Why there is none, if that is told.
    no_slice: Option<String>,
    /// The feature without native code because of which the program is interpreted, if native code was requested.
    lack: Option<String>,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(object: &'a Object, spec: &'a ProgramSpec, native: Option<&'a Native>) -> Self {
        let symbols = Symbols::new(object, spec);
        Self {
            spec,
            btf: object.btf(),
            symbols,
            lines: disassemble(&spec.insns),
            native,
            slice: None,
            no_slice: None,
            lack: None,
        }
    }

    /// The same with a slice that runs ahead of bursts.
    pub(crate) fn with_slice(self, slice: Self) -> Self {
        Self { slice: Some(Box::new(slice)), ..self }
    }

    /// The same with the reason why there is no slice.
    pub(crate) fn without_slice(self, reason: String) -> Self {
        Self { no_slice: Some(reason), ..self }
    }

    /// The same without native code, and the reason.
    pub(crate) fn without_native(self, lack: Option<String>) -> Self {
        Self { lack, ..self }
    }

    /// Instructions, with native code if compiled, and their source lines.
    pub(crate) fn write_text(&self, out: &mut dyn Write, opcodes: bool) -> io::Result<()> {
        if let Some(slice) = &self.slice {
            slice.write_text(out, opcodes)?;
            writeln!(out, "\n; that runs over a burst before {}: look-ups ahead", self.spec.name)?;
        }
        if let Some(reason) = &self.no_slice {
            writeln!(out, "\n; no look-ups ahead of {}: {reason}", self.spec.name)?;
        }
        if let Some(lack) = &self.lack {
            writeln!(out, "\n; no native code of {}, which is interpreted: {lack}", self.spec.name)?;
        }
        match self.native {
            Some(native) => self.write_native(out, native, opcodes),
            None => self.write_bpf(out, opcodes),
        }
    }

    /// Everything but instructions and labels is in comments, so that the assembler reads it.
    fn write_bpf(&self, out: &mut dyn Write, opcodes: bool) -> io::Result<()> {
        let spec = self.spec;
        let plural = if spec.insns.len() == 1 { "" } else { "s" };
        let (name, section) = (&spec.name, &spec.section);
        writeln!(
            out,
            "\n; program {name}, section {section}, {} instruction slot{plural}",
            spec.insns.len()
        )?;
        let mut shown = None;
        for line in &self.lines {
            if let Some(function) = self.function_at(line.slot) {
                shown = None;
                writeln!(out, "\n; {}\n<{}>:", self.prototype(function), function.name)?;
            }
            if let Some(label) = self.symbols.label(line.slot) {
                writeln!(out, "{label}:")?;
            }
            if let Some(source) = self.source_at(line.slot)
                && shown != Some((&source.file, source.line))
            {
                shown = Some((&source.file, source.line));
                writeln!(out, "; {} @ {}:{}", source.text.trim(), source.file, source.line)?;
            }
            self.write_insn(out, line, opcodes)?;
        }
        Ok(())
    }

    fn write_insn(&self, out: &mut dyn Write, line: &Line, opcodes: bool) -> io::Result<()> {
        write!(out, "{:6}: ", line.slot)?;
        if opcodes {
            let bytes: Vec<_> = self.bytes(line).iter().map(|byte| format!("{byte:02x}")).collect();
            write!(out, "{:<23}  ", bytes.join(" "))?;
        }
        write!(out, "{}", self.symbols.text(line))?;
        match self.symbols.remark(line) {
            Some(remark) => writeln!(out, "  ; {remark}"),
            None => writeln!(out),
        }
    }

    /// Everything but native code is in comments.
    fn write_native(&self, out: &mut dyn Write, native: &Native, opcodes: bool) -> io::Result<()> {
        let (spec, Native { len, .. }) = (self.spec, native);
        let plural = if spec.insns.len() == 1 { "" } else { "s" };
        let (name, section, slots) = (&spec.name, &spec.section, spec.insns.len());
        writeln!(
            out,
            "\n; program {name}, section {section}, {slots} instruction slot{plural}, {len} bytes of native code"
        )?;
        // The main program has its code twice, the second time in the loop over a burst.
        let others = |name: &str| -> Vec<Range<usize>> {
            let own = name.strip_suffix(".burst").unwrap_or(name);
            let named = native.functions.iter().filter(|function| function.name != own);
            named.filter_map(|function| self.slots_of(&function.name)).collect()
        };
        native
            .functions
            .iter()
            .try_for_each(|function| self.write_function(out, function, &others(&function.name), opcodes))
    }

    /// The slots of a function of the program.
    fn slots_of(&self, name: &str) -> Option<Range<usize>> {
        let function = self.spec.functions.iter().find(|function| function.name == name)?;
        Some(function.start..self.end_behind(function.start))
    }

    /// The slot after the last one of the function that a slot is in.
    fn end_behind(&self, slot: usize) -> usize {
        let starts = self.spec.functions.iter().map(|function| function.start);
        starts.filter(|&start| start > slot).min().unwrap_or(self.spec.insns.len())
    }

    /// Code of a function and of those that are a part of it, which is all that have no code among the others.
    fn write_function(
        &self,
        out: &mut dyn Write,
        native: &Function,
        others: &[Range<usize>],
        opcodes: bool,
    ) -> io::Result<()> {
        let function = self.spec.functions.iter().find(|function| function.name == native.name);
        match function {
            Some(function) => writeln!(out, "\n; {}\n<{}>:", self.prototype(function), function.name)?,
            None => writeln!(out, "\n<{}>:", native.name)?,
        }
        let start = function.map_or(0, |function| function.start);
        let with_code: BTreeSet<usize> = native.insns.iter().filter_map(|insn| insn.slot).collect();
        let elsewhere =
            |slot: &usize| with_code.contains(slot) || others.iter().any(|other| other.contains(slot));
        // The next slot to show, where the code follows the order of the program; parts of it may lie behind.
        let (mut next, mut now, mut source) = (start, None, None);
        for insn in &native.insns {
            if insn.slot != now {
                now = insn.slot;
                let slot = now.unwrap_or(next);
                self.write_without_code(out, next..slot, elsewhere, &mut source)?;
                if let Some(line) = self.lines.iter().find(|line| now == Some(line.slot)) {
                    self.write_origin(out, line, &mut source, "")?;
                    next = next.max(slot + line.insn.map_or(1, |insn| insn.slots()));
                }
            }
            insn.write(out, opcodes)?;
        }
        let end = self.end_behind(start.max(next.saturating_sub(1)));
        self.write_without_code(out, next..end, elsewhere, &mut source)
    }

    /// Instructions that became part of others, or that nothing reaches.
    fn write_without_code(
        &self,
        out: &mut dyn Write,
        slots: Range<usize>,
        elsewhere: impl Fn(&usize) -> bool,
        source: &mut Option<&'a LineInfo>,
    ) -> io::Result<()> {
        let mut lines = self.lines.iter().filter(|line| slots.contains(&line.slot) && !elsewhere(&line.slot));
        lines.try_for_each(|line| self.write_origin(out, line, source, "  ; no code of its own"))
    }

    /// The instruction that native code is made from; source lines where they change.
    fn write_origin(
        &self,
        out: &mut dyn Write,
        line: &Line,
        shown: &mut Option<&'a LineInfo>,
        remark: &str,
    ) -> io::Result<()> {
        if let Some(source) = self.spec.line_of(line.slot)
            && shown.is_none_or(|shown| (&shown.file, shown.line) != (&source.file, source.line))
        {
            *shown = Some(source);
            writeln!(out, "; {} @ {}:{}", source.text.trim(), source.file, source.line)?;
        }
        writeln!(out, ";{:6}: {}{remark}", line.slot, self.symbols.text(line))
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut program = self.bpf_to_json();
        if let Some(native) = self.native {
            program["native"] = native.to_json();
        }
        if let Some(lack) = &self.lack {
            program["lack"] = json!(lack);
        }
        if let Some(reason) = &self.no_slice {
            program["no_slice"] = json!(reason);
        }
        if let Some(slice) = &self.slice {
            program["slice"] = slice.to_json();
        }
        program
    }

    fn bpf_to_json(&self) -> Json {
        let function =
            |f: &FunctionInfo| json!({ "name": f.name, "slot": f.start, "type": self.prototype(f) });
        json!({
            "name": self.spec.name,
            "section": self.spec.section,
            "functions": self.spec.functions.iter().map(function).collect::<Json>(),
            "instructions": self.lines.iter().map(|line| self.insn_to_json(line)).collect::<Json>(),
        })
    }

    fn insn_to_json(&self, line: &Line) -> Json {
        let bytes: String = self.bytes(line).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut insn = json!({ "slot": line.slot, "bytes": bytes, "text": self.symbols.text(line) });
        let target =
            line.insn.as_ref().ok().and_then(|i| i.jump_target(line.slot).or(i.subprogram_target(line.slot)));
        if let Some(target) = target {
            insn["target"] = target.into();
        }
        if let Some(remark) = self.symbols.remark(line) {
            insn["remark"] = remark.into();
        }
        if let Some(LineInfo { file, line, column, text, .. }) = self.spec.line_of(line.slot) {
            insn["source"] = json!({ "file": **file, "line": line, "column": column, "text": text.trim() });
        }
        insn
    }

    /// The 8 bytes of the instruction, 16 if it takes two slots.
    fn bytes(&self, line: &Line) -> Vec<u8> {
        let slots = line.insn.map_or(1, |insn| insn.slots());
        let raw = self.spec.insns.get(line.slot..line.slot + slots).unwrap_or_default();
        raw.iter().copied().flat_map(RawInsn::to_le_bytes).collect()
    }

    fn function_at(&self, slot: usize) -> Option<&'a FunctionInfo> {
        self.spec.functions.iter().find(|f| f.start == slot)
    }

    fn source_at(&self, slot: usize) -> Option<&'a LineInfo> {
        self.spec.line_of(slot).filter(|line| line.slot == slot)
    }

    /// A function's declaration, as far as it is known.
    fn prototype(&self, function: &FunctionInfo) -> String {
        let linkage = if function.linkage == Linkage::Static { "static " } else { "" };
        let known = self.btf.and_then(|btf| prototype(btf, function));
        known.map_or_else(|| format!("{linkage}{}()", function.name), |text| format!("{linkage}{text}"))
    }
}

fn prototype(btf: &Btf, function: &FunctionInfo) -> Option<String> {
    let Type::Func { proto, .. } = btf.get(function.btf_id)? else { return None };
    let Type::FuncProto { result, params } = btf.get(*proto)? else { return None };
    let params: Vec<_> =
        params.iter().map(|param| declaration(btf, param.ty, btf.name(param.name))).collect();
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    Some(format!("{}({params})", declaration(btf, *result, &function.name)))
}

/// `struct xdp_md *ctx`
fn declaration(btf: &Btf, ty: u32, name: &str) -> String {
    let ty = btf.c_name(ty);
    let space = if ty.ends_with('*') || name.is_empty() { "" } else { " " };
    format!("{ty}{space}{name}")
}
