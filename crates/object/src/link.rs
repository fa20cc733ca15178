//! Linking of programs: a main function followed by the subprograms it reaches.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use paceline_isa::RawInsn;
use paceline_spec::{FunctionInfo, Poison, ProgramSpec, Variable};

use super::error::LoadError;
use crate::debug_info::DebugInfo;
use crate::function::Function;
use crate::relocate::{Body, Relocator};
use crate::section::ProgramSection;
use crate::variables::Variables;

/// Maximum number of slots of one program: the kernel verifies no more (`BPF_COMPLEXITY_LIMIT_INSNS`).
const PROGRAM_LIMIT: usize = 1_000_000;
/// Maximum number of slots, and bytes of names, of all programs of an object. A file of one megabyte with overlapping functions
/// could otherwise require many gigabytes; the largest objects in use have some hundred thousand.
const OBJECT_LIMIT: usize = 1 << 21;

/// Links programs; shared functions are relocated once.
pub(crate) struct Linker<'a> {
    pub(crate) relocator: Relocator<'a>,
    pub(crate) debug: Option<DebugInfo>,
    pub(crate) variables: Variables,
    pub(crate) license: &'a str,
    bodies: HashMap<usize, Rc<Body>>,
    /// Slots and bytes of names of all bodies and programs so far.
    spent: usize,
}

impl<'a> Linker<'a> {
    pub(crate) fn new(
        relocator: Relocator<'a>,
        debug: Option<DebugInfo>,
        variables: Variables,
        license: &'a str,
    ) -> Self {
        Self { relocator, debug, variables, license, bodies: HashMap::new(), spent: 0 }
    }

    /// Links the program with the main function `main`.
    pub(crate) fn link(
        &mut self,
        main: usize,
        function: &Function<'a>,
        section: ProgramSection,
    ) -> Result<ProgramSpec, LoadError> {
        let mut program = ProgramSpec {
            section: self.relocator.elf.section_name(function.section).to_owned(),
            functions: Vec::new(),
            license: self.license.to_owned(),
            autoload: section.autoload,
            ..ProgramSpec::new(function.name, section.kind, Vec::new())
        };
        let placed = self.place_all(main, &mut program)?;
        let mut kfuncs = HashMap::new();
        for (callee, slot) in &placed {
            let Some(body) = self.bodies.get(callee).map(Rc::clone) else { continue };
            patch_links(&body, *slot, &placed, &mut program.insns);
            for (at, kfunc) in &body.kfuncs {
                let index = match kfuncs.get(&kfunc.name) {
                    Some(index) => *index,
                    None => {
                        self.spend(function, kfunc.name.len())?;
                        kfuncs.insert(kfunc.name.clone(), kfuncs.len());
                        program.kfuncs.push(kfunc.clone());
                        kfuncs.len() - 1
                    }
                };
                if let Some(insn) = program.insns.get_mut(slot + at) {
                    insn.imm = i32::try_from(index).unwrap_or(0);
                }
            }
        }
        Ok(program)
    }

    /// Appends `main` and all functions it reaches in libbpf's order: each callee at its first call, depth first. Returns the slot
    /// of each function.
    fn place_all(
        &mut self,
        main: usize,
        program: &mut ProgramSpec,
    ) -> Result<BTreeMap<usize, usize>, LoadError> {
        let mut placed = BTreeMap::new();
        self.place(main, program, &mut placed)?;
        // Functions whose calls are being followed, with the index of the next call.
        let mut stack = vec![(main, 0)];
        while let Some((function, next)) = stack.last_mut() {
            let Some(&(_, callee)) = self.bodies.get(function).and_then(|body| body.links.get(*next)) else {
                stack.pop();
                continue;
            };
            *next += 1;
            if !placed.contains_key(&callee) {
                self.place(callee, program, &mut placed)?;
                stack.push((callee, 0));
            }
        }
        Ok(placed)
    }

    /// Appends one function.
    fn place(
        &mut self,
        index: usize,
        program: &mut ProgramSpec,
        placed: &mut BTreeMap<usize, usize>,
    ) -> Result<(), LoadError> {
        let Some(function) = self.relocator.functions.get(index) else { return Ok(()) };
        let body = self.body(index, function)?;
        let start = program.insns.len();
        self.spend(function, body.insns.len() + function.name.len())?;
        if start + body.insns.len() > PROGRAM_LIMIT {
            return Err(too_large(function, PROGRAM_LIMIT));
        }
        placed.insert(index, start);
        program.insns.extend_from_slice(&body.insns);
        let section = self.relocator.elf.section_name(function.section);
        let mut btf_id = 0;
        if let Some(debug) = &self.debug {
            btf_id = debug.function_type(section, function);
            debug.append_lines(section, function, start, &mut program.lines);
        }
        let variables = self.variables.of(function);
        program.variables.extend(variables.iter().map(|variable| placed_at(variable, function, start)));
        let held = variables.len();
        self.spend(function, held)?;
        program.functions.push(FunctionInfo {
            start,
            name: function.name.to_owned(),
            linkage: function.linkage,
            btf_id,
        });
        let moved = |p: &Poison| Poison { slot: start + p.slot, reason: Arc::clone(&p.reason) };
        program.poisoned.extend(body.poisoned.iter().map(moved));
        Ok(())
    }

    fn body(&mut self, index: usize, function: &Function<'_>) -> Result<Rc<Body>, LoadError> {
        if let Some(body) = self.bodies.get(&index) {
            return Ok(Rc::clone(body));
        }
        self.spend(function, function.end - function.start)?;
        let mut body = self.relocator.relocate(function)?;
        body.links.sort_by_key(|(slot, _)| *slot);
        body.poisoned.sort_by_key(|p| p.slot);
        let body = Rc::new(body);
        self.bodies.insert(index, Rc::clone(&body));
        Ok(body)
    }

    fn spend(&mut self, function: &Function<'_>, amount: usize) -> Result<(), LoadError> {
        self.spent = self.spent.saturating_add(amount);
        if self.spent > OBJECT_LIMIT { Err(too_large(function, OBJECT_LIMIT)) } else { Ok(()) }
    }
}

/// A variable of a function that was placed at a slot.
fn placed_at(variable: &Variable, function: &Function<'_>, start: usize) -> Variable {
    let slot = |slot: usize| start + slot.min(function.end).saturating_sub(function.start);
    Variable { slots: slot(variable.slots.start)..slot(variable.slots.end), ..variable.clone() }
}

fn too_large(function: &Function<'_>, limit: usize) -> LoadError {
    LoadError::TooLarge { function: function.name.to_owned(), limit }
}

/// Writes relative call targets into a function placed at `start`.
fn patch_links(body: &Body, start: usize, placed: &BTreeMap<usize, usize>, insns: &mut [RawInsn]) {
    for (slot, callee) in &body.links {
        let at = start + slot;
        let (Some(insn), Some(target)) = (insns.get_mut(at), placed.get(callee)) else { continue };
        // Both are less than PROGRAM_LIMIT.
        insn.imm = i32::try_from(*target as i64 - at as i64 - 1).unwrap_or(0);
    }
}
