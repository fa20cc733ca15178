//! Function and source line information of instructions.

use std::collections::HashMap;
use std::sync::Arc;

use paceline_btf::{Btf, BtfExt, ExtRecords, FuncRecord, LineRecord, Type, TypeId};
use paceline_isa::RawInsn;
use paceline_spec::LineInfo;

use crate::function::Function;

/// The records of `.BTF.ext` by section, sorted by offset.
#[derive(Debug, Default)]
pub(crate) struct DebugInfo {
    functions: HashMap<String, Vec<FuncRecord>>,
    lines: HashMap<String, Vec<LineRecord>>,
    /// Functions by name, for sections without records.
    names: HashMap<String, TypeId>,
    /// Strings, shared between lines.
    texts: HashMap<u32, Arc<str>>,
}

impl DebugInfo {
    pub(crate) fn new(btf: &Btf, ext: &BtfExt) -> Self {
        let mut info = Self {
            functions: by_section(btf, &ext.functions, |r| r.offset),
            lines: by_section(btf, &ext.lines, |r| r.offset),
            names: function_names(btf),
            texts: HashMap::new(),
        };
        // Line 0 marks code that compilers generated; the preceding line describes it best.
        info.lines.values_mut().for_each(|lines| lines.retain(|l| l.line != 0));
        for line in info.lines.values().flatten() {
            for offset in [line.file, line.text] {
                info.texts.entry(offset).or_insert_with(|| btf.text(offset).unwrap_or_default().into());
            }
        }
        info
    }

    /// BTF id of a function, 0 if unknown.
    pub(crate) fn function_type(&self, section: &str, function: &Function<'_>) -> TypeId {
        let offset = (function.start * RawInsn::BYTES) as u64;
        let records = self.functions.get(section).map(Vec::as_slice).unwrap_or_default();
        let record = records.binary_search_by_key(&offset, |r| u64::from(r.offset)).ok();
        match record.and_then(|i| records.get(i)) {
            Some(record) => record.ty,
            None => self.names.get(function.name).copied().unwrap_or(0),
        }
    }

    /// Appends the source lines of a function that was placed at `slot`.
    pub(crate) fn append_lines(
        &self,
        section: &str,
        function: &Function<'_>,
        slot: usize,
        lines: &mut Vec<LineInfo>,
    ) {
        let bytes = RawInsn::BYTES as u64;
        let (start, end) = (function.start as u64 * bytes, function.end as u64 * bytes);
        let records = self.lines.get(section).map(Vec::as_slice).unwrap_or_default();
        let first = records.partition_point(|r| u64::from(r.offset) < start);
        let text = |offset| self.texts.get(&offset).cloned().unwrap_or_default();
        for record in records.iter().skip(first).take_while(|r| u64::from(r.offset) < end) {
            let at = slot + usize::try_from((u64::from(record.offset) - start) / bytes).unwrap_or(0);
            let (file, text) = (text(record.file), text(record.text));
            lines.push(LineInfo { slot: at, file, text, line: record.line, column: record.column });
        }
    }
}

fn function_names(btf: &Btf) -> HashMap<String, TypeId> {
    let functions = btf.types().filter(|(_, t)| matches!(t, Type::Func { .. }));
    functions.map(|(id, _)| (btf.type_name(id).to_owned(), id)).collect()
}

/// Records by section name, sorted by offset, at most one per slot.
pub(crate) fn by_section<T: Copy>(
    btf: &Btf,
    records: &[ExtRecords<T>],
    offset: impl Fn(&T) -> u32,
) -> HashMap<String, Vec<T>> {
    let mut sections: HashMap<String, Vec<T>> = HashMap::new();
    for part in records {
        sections.entry(btf.name(part.section).to_owned()).or_default().extend_from_slice(&part.records);
    }
    for records in sections.values_mut() {
        records.sort_by_key(&offset);
        // One record per slot, so that hostile records cannot exceed the size of the code.
        records.dedup_by_key(|r| offset(r) / RawInsn::BYTES as u32);
    }
    sections
}
