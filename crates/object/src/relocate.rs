//! Relocation of a function's code: references to maps, variables, other functions and the kernel.

use paceline_isa::RawInsn;
use paceline_spec::kfunc::Kfunc;
use paceline_spec::{KfuncRef, Poison};

use super::error::LoadError;
use crate::core::CoreRelocations;
use crate::elf_file::{ElfFile, Place, Relocation, Section, Symbol, SymbolKind, reloc};
use crate::externs::{Extern, Externs};
use crate::function::{Function, Functions, decode_slots};
use crate::maps::Maps;

/// Opcode of a two-slot load of a 64-bit immediate.
const LD_IMM64: u8 = 0x18;
/// Opcode of a call.
const CALL: u8 = 0x85;

/// Values of the `src` field (`BPF_PSEUDO_*` in the UAPI header).
mod pseudo {
    pub(super) const CALL: u8 = 1;
    pub(super) const KFUNC_CALL: u8 = 2;
    pub(super) const FUNC: u8 = 4;
    pub(super) const MAP_IDX: u8 = 5;
    pub(super) const MAP_IDX_VALUE: u8 = 6;
}

/// Relocated code of a function, except for references to other functions, whose positions are not yet known.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) insns: Vec<RawInsn>,
    /// Slots whose immediate becomes the relative position of a function, with the function's index.
    pub(crate) links: Vec<(usize, usize)>,
    /// Slots that call kernel functions.
    pub(crate) kfuncs: Vec<(usize, KfuncRef)>,
    /// Poisoned slots, which could not be resolved.
    pub(crate) poisoned: Vec<Poison>,
}

/// Targets of relocations.
#[derive(Debug)]
pub(crate) struct Relocator<'a> {
    pub(crate) elf: &'a ElfFile<'a>,
    pub(crate) functions: &'a Functions<'a>,
    pub(crate) maps: &'a Maps,
    pub(crate) externs: &'a Externs<'a>,
    /// CO-RE relocations, if any.
    pub(crate) core: Option<CoreRelocations<'a>>,
    /// Names of additional kernel functions.
    pub(crate) kfuncs: &'a [&'a str],
}

impl Relocator<'_> {
    /// Relocates the code of a function.
    pub(crate) fn relocate(&self, function: &Function<'_>) -> Result<Body, LoadError> {
        let mut body =
            Body { insns: Vec::new(), links: Vec::new(), kfuncs: Vec::new(), poisoned: Vec::new() };
        let Some(section) = self.elf.sections.get(function.section) else { return Ok(body) };
        body.insns = decode_slots(section.data, function);
        if let Some(core) = &self.core {
            body.poisoned = core.apply(section.name, function, &mut body.insns)?;
        }
        let start = function.start * RawInsn::BYTES;
        let end = function.end * RawInsn::BYTES;
        let first = section.relocations.partition_point(|r| r.offset < start as u64);
        let relocations = section.relocations.iter().skip(first).take_while(|r| r.offset < end as u64);
        let mut relocated = vec![false; body.insns.len()];
        for relocation in relocations.filter(|r| r.kind != reloc::NONE) {
            let site = self.site(section, function, relocation, &body)?;
            if let Some(done) = relocated.get_mut(site.slot) {
                *done = true;
            }
            site.apply(&mut body)?;
        }
        self.link_local_calls(section, function, &relocated, &mut body)?;
        Ok(body)
    }

    fn site<'s>(
        &'s self,
        section: &'s Section<'s>,
        function: &Function<'_>,
        relocation: &'s Relocation,
        body: &Body,
    ) -> Result<Site<'s>, LoadError> {
        let nowhere = || LoadError::RelocationNowhere {
            section: section.name.to_owned(),
            offset: relocation.offset,
            symbol: relocation.symbol,
        };
        let bytes = RawInsn::BYTES as u64;
        let slot = usize::try_from(relocation.offset / bytes).ok().map(|slot| slot - function.start);
        let slot = slot.filter(|_| relocation.offset.is_multiple_of(bytes)).ok_or_else(nowhere)?;
        let insn = *body.insns.get(slot).ok_or_else(nowhere)?;
        let symbol = self.elf.symbols.get(relocation.symbol as usize).ok_or_else(nowhere)?;
        Ok(Site { from: self, section, relocation, symbol, slot, insn })
    }

    /// Calls without a relocation are relative within the section.
    fn link_local_calls(
        &self,
        section: &Section<'_>,
        function: &Function<'_>,
        relocated: &[bool],
        body: &mut Body,
    ) -> Result<(), LoadError> {
        let mut second_half = false;
        for (slot, insn) in body.insns.iter().enumerate() {
            let is_call = insn.opcode == CALL && insn.src == pseudo::CALL && !second_half;
            second_half = insn.opcode == LD_IMM64 && !second_half;
            if !is_call || relocated.get(slot) == Some(&true) {
                continue;
            }
            let place = function.start + slot;
            let target = i64::try_from(place).unwrap_or(i64::MAX).saturating_add(i64::from(insn.imm) + 1);
            let callee = self.functions.starting_at(function.section, target).ok_or_else(|| {
                LoadError::NoFunction {
                    section: section.name.to_owned(),
                    offset: (place * RawInsn::BYTES) as u64,
                    target_section: section.name.to_owned(),
                    target: target.saturating_mul(8),
                }
            })?;
            body.links.push((slot, callee));
        }
        Ok(())
    }
}

/// A relocation with its context.
struct Site<'a> {
    from: &'a Relocator<'a>,
    section: &'a Section<'a>,
    relocation: &'a Relocation,
    symbol: &'a Symbol<'a>,
    /// Slot in the function.
    slot: usize,
    insn: RawInsn,
}

impl Site<'_> {
    fn apply(&self, body: &mut Body) -> Result<(), LoadError> {
        match (self.insn.opcode, self.relocation.kind) {
            (CALL, reloc::R_64_32 | reloc::R_64_64) => self.apply_call(body),
            // LLVM before version 13 used the number of R_BPF_64_64 for 64-bit data as well.
            (LD_IMM64, reloc::R_64_64 | reloc::R_64_ABS64) if self.has_second_half(body) => {
                self.apply_load(body)
            }
            _ => Err(self.not_applicable()),
        }
    }

    fn has_second_half(&self, body: &Body) -> bool {
        body.insns.get(self.slot + 1).is_some_and(|second| second.opcode == 0)
    }

    fn apply_call(&self, body: &mut Body) -> Result<(), LoadError> {
        match self.symbol.place {
            Place::Section(section) => {
                // Against a function symbol `imm` is -1, against a section symbol it is the function's slot minus one: one formula
                // covers both.
                let slot = self.slot_of_symbol()?.saturating_add(i64::from(self.insn.imm) + 1);
                self.link(section, slot, body)
            }
            Place::Undefined => self.apply_extern_call(body),
            Place::Common | Place::Other => Err(self.not_applicable()),
        }
    }

    fn apply_load(&self, body: &mut Body) -> Result<(), LoadError> {
        let section = match self.symbol.place {
            Place::Section(section) => section,
            Place::Undefined => return self.apply_extern_load(body),
            Place::Common => {
                return Err(LoadError::Common {
                    section: self.section.name.to_owned(),
                    offset: self.relocation.offset,
                    name: self.symbol.name.to_owned(),
                });
            }
            Place::Other => return Err(self.not_applicable()),
        };
        if self.from.elf.sections.get(section).is_some_and(Section::is_code) {
            let offset = i64::from(self.insn.imm);
            if offset % RawInsn::BYTES as i64 != 0 {
                return Err(self.no_function(section, offset));
            }
            let slot = self.slot_of_symbol()?.saturating_add(offset / RawInsn::BYTES as i64);
            self.set_load(body, pseudo::FUNC, 0, 0);
            return self.link(section, slot, body);
        }
        if let Some(map) = self.from.maps.of_section(section) {
            let value = u32::try_from(self.symbol.value).map_err(|_| self.not_a_target(section))?;
            let offset = value.cast_signed().wrapping_add(self.insn.imm);
            return self.set_map(body, pseudo::MAP_IDX_VALUE, map, offset);
        }
        if !self.from.maps.defined_in(section) {
            return Err(self.not_a_target(section));
        }
        // Static maps are referenced by section symbol and offset.
        let is_section = self.symbol.kind == SymbolKind::Section;
        let addend = if is_section { self.insn.imm.cast_unsigned() } else { 0 };
        let at = self.symbol.value.saturating_add(u64::from(addend));
        match self.from.maps.at(section, at) {
            Some(map) => self.set_map(body, pseudo::MAP_IDX, map, 0),
            None => Err(LoadError::NoMap {
                section: self.section.name.to_owned(),
                offset: self.relocation.offset,
                target: self.from.elf.section_name(section).to_owned(),
                at,
            }),
        }
    }

    fn apply_extern_load(&self, body: &mut Body) -> Result<(), LoadError> {
        match self.from.externs.get(self.symbol.name) {
            Some(Extern::Config(offset)) => {
                let map = self.from.maps.config.ok_or_else(|| self.undefined(""))?;
                self.set_map(body, pseudo::MAP_IDX_VALUE, map, offset.cast_signed())
            }
            // The address is only compared with null: whether the function exists.
            Some(Extern::Kfunc(kfunc)) if self.knows(kfunc) => {
                self.set_load(body, 0, 1, 0);
                Ok(())
            }
            Some(Extern::Kfunc(kfunc)) if !kfunc.weak => Err(self.undefined(NO_KFUNC)),
            Some(Extern::Kfunc(_) | Extern::Null) => {
                self.set_load(body, 0, 0, 0);
                Ok(())
            }
            Some(Extern::Missing(hint)) => Err(self.undefined(hint)),
            None => Err(self.undefined("")),
        }
    }

    fn apply_extern_call(&self, body: &mut Body) -> Result<(), LoadError> {
        match self.from.externs.get(self.symbol.name) {
            // A strong one remains a call by name, so that the object can be inspected; the engine refuses it.
            Some(Extern::Kfunc(kfunc)) if !kfunc.weak || self.knows(kfunc) => {
                self.set_call(body, pseudo::KFUNC_CALL, 0);
                body.kfuncs.push((self.slot, kfunc.clone()));
                Ok(())
            }
            Some(Extern::Kfunc(_) | Extern::Null) => {
                self.set_call(body, 0, Poison::HELPER);
                let reason = format!("calls `{}`, which is declared __weak and not there", self.symbol.name);
                body.poisoned.push(Poison { slot: self.slot, reason: reason.into() });
                Ok(())
            }
            Some(Extern::Missing(hint)) => Err(self.undefined(hint)),
            Some(Extern::Config(_)) | None => Err(self.undefined("")),
        }
    }

    fn knows(&self, kfunc: &KfuncRef) -> bool {
        Kfunc::from_name(&kfunc.name).is_some() || self.from.kfuncs.contains(&kfunc.name.as_str())
    }

    fn slot_of_symbol(&self) -> Result<i64, LoadError> {
        let value = i64::try_from(self.symbol.value).map_err(|_| self.not_applicable())?;
        let bytes = RawInsn::BYTES as i64;
        if value % bytes == 0 { Ok(value / bytes) } else { Err(self.not_applicable()) }
    }

    fn link(&self, section: usize, slot: i64, body: &mut Body) -> Result<(), LoadError> {
        let function = self.from.functions.starting_at(section, slot);
        let function = function.ok_or_else(|| self.no_function(section, slot.saturating_mul(8)))?;
        body.links.push((self.slot, function));
        Ok(())
    }

    fn set_call(&self, body: &mut Body, src: u8, imm: i32) {
        if let Some(insn) = body.insns.get_mut(self.slot) {
            *insn = RawInsn { src, imm, ..self.insn };
        }
    }

    fn set_load(&self, body: &mut Body, src: u8, low: i32, high: i32) {
        if let Some(insn) = body.insns.get_mut(self.slot) {
            *insn = RawInsn { src, imm: low, ..self.insn };
        }
        if let Some(second) = body.insns.get_mut(self.slot + 1) {
            second.imm = high;
        }
    }

    fn set_map(&self, body: &mut Body, src: u8, map: usize, offset: i32) -> Result<(), LoadError> {
        let index = i32::try_from(map).map_err(|_| self.not_applicable())?;
        self.set_load(body, src, index, offset);
        Ok(())
    }

    fn not_applicable(&self) -> LoadError {
        LoadError::Relocation {
            section: self.section.name.to_owned(),
            offset: self.relocation.offset,
            kind: self.relocation.kind,
            symbol: self.from.elf.symbol_label(self.symbol).to_owned(),
            opcode: self.insn.opcode,
        }
    }

    fn not_a_target(&self, section: usize) -> LoadError {
        LoadError::RelocationTarget {
            section: self.section.name.to_owned(),
            offset: self.relocation.offset,
            symbol: self.from.elf.symbol_label(self.symbol).to_owned(),
            target: self.from.elf.section_name(section).to_owned(),
        }
    }

    fn no_function(&self, section: usize, target: i64) -> LoadError {
        LoadError::NoFunction {
            section: self.section.name.to_owned(),
            offset: self.relocation.offset,
            target_section: self.from.elf.section_name(section).to_owned(),
            target,
        }
    }

    fn undefined(&self, hint: &'static str) -> LoadError {
        LoadError::Undefined {
            section: self.section.name.to_owned(),
            offset: self.relocation.offset,
            name: self.symbol.name.to_owned(),
            hint,
        }
    }
}

const NO_KFUNC: &str = "; it is a function of the kernel that this engine does not have";
