//! The programs of a collection, verified and bound to its maps, and the tables of `bpf_tail_call`: the programs that the object gives
//! to program arrays, and changes while traffic runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use paceline_engine::{EngineError, InstallError, LookAhead, Program};
use paceline_isa::{Imm64, Insn};
use paceline_maps::Map;
use paceline_spec::{Errno, ProgramSpec};

use super::collection::Collection;
use super::error::{EntryError, ProgramError};
use super::tables::UnfilledEntry;
use super::verify::VerifiedProgram;

impl Collection {
    /// A program, verified and bound to the maps; the only one if no name is given. Programs of one collection share
    /// its maps.
    ///
    /// The programs that the object gives to the program arrays it uses are loaded and put there, unless they are
    /// already or the entry was changed.
    ///
    /// # Errors
    /// [`ProgramError`] says which there are, or why the program, or one that it may tail call, may not run.
    pub fn program(&self, name: Option<&str>) -> Result<VerifiedProgram, ProgramError> {
        let program = self.load(self.program_spec(name)?, self.look_ahead)?;
        // Programs that are tail called run no bursts.
        let target = |spec: &ProgramSpec| Ok(self.load(spec, LookAhead::Never)?.into_program());
        self.fill_tables(program.program(), &target)?;
        Ok(program)
    }

    /// A program without a proof: the plain interpreter checks every operation at run time, also of the
    /// programs that it tail calls.
    ///
    /// # Errors
    /// [`ProgramError`] says which there are, or what no engine can run.
    pub fn program_unverified(&self, name: Option<&str>) -> Result<Program, ProgramError> {
        let program = self.bind(self.program_spec(name)?)?;
        self.fill_tables(&program, &|spec| self.bind(spec))?;
        Ok(program)
    }

    fn load(&self, spec: &ProgramSpec, look_ahead: LookAhead) -> Result<VerifiedProgram, ProgramError> {
        let start = Instant::now();
        let verified =
            self.object.verify(spec).map_err(|refused| ProgramError::Refused(Box::new(refused)))?;
        let time = start.elapsed();
        let program = Program::load_with(&verified, self.maps.clone(), self.engine, look_ahead);
        let program = program.map_err(|error| {
            let name = spec.name.clone();
            match error {
                EngineError::Program(source) => ProgramError::Malformed { name, source },
                source => ProgramError::Engine { name, engine: self.engine, source },
            }
        })?;
        let program = VerifiedProgram::new(program.with_budget(self.budget), verified, time);
        Ok(program.with_btf(self.object.shared_btf()))
    }

    /// The spec of a program, which need not be safe; the only one if no name is given.
    ///
    /// # Errors
    /// [`ProgramError`] says which there are, or which maps it lacks.
    pub fn program_spec(&self, name: Option<&str>) -> Result<&ProgramSpec, ProgramError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.only_name()?,
        };
        if let Some(program) = self.object.program(&name) {
            return Ok(program);
        }
        let missing = self.missing.iter().filter(|missing| missing.programs.contains(&name));
        let sources: Vec<_> = missing.map(|missing| Arc::clone(&missing.error)).collect();
        if !sources.is_empty() {
            return Err(ProgramError::Maps { name, sources });
        }
        Err(self.object.no_program(&name, self.names.to_vec()))
    }

    /// The name of the program where there is only one.
    fn only_name(&self) -> Result<String, ProgramError> {
        match &*self.names {
            [] => Err(self.object.without_programs()),
            [only] => Ok(only.clone()),
            names => Err(ProgramError::Several(names.to_vec())),
        }
    }

    fn bind(&self, spec: &ProgramSpec) -> Result<Program, ProgramError> {
        Program::new(Arc::new(spec.clone()), self.maps.clone())
            .map(|program| program.with_budget(self.budget))
            .map_err(|source| ProgramError::Malformed { name: spec.name.clone(), source })
    }
}

/// Whether a program needs what no engine has: an engine that another one could replace is no reason to leave an entry empty.
fn lacks_support(error: &ProgramError) -> bool {
    error.is_unsupported() && !matches!(error, ProgramError::Engine { .. })
}

impl Collection {
    /// Puts a program into an entry of a program array, from where programs that run now tail call it from the next call
    /// on. It may be of another collection, and on another engine.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline::{Burst, FrameMeta, Host, LoadOptions, Object, Verdict};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/protocols.o");
    /// let collection = Object::open(path)?.load(&LoadOptions::default())?;
    /// let dispatch = collection.program(Some("dispatch"))?;
    /// let drop = collection.program(Some("drop"))?;
    /// collection.install("protocols", 17, drop.program())?; // UDP is dropped from now on
    /// # let mut udp = [0; 60];
    /// # udp[12..14].copy_from_slice(&[8, 0]);
    /// # udp[14] = 0x45;
    /// # udp[23] = 17;
    /// # let mut burst = Burst::default();
    /// # burst.push(&udp, FrameMeta::default())?;
    /// # dispatch.run_burst(&mut burst, &mut Host::default())?;
    /// # assert_eq!(burst.frame(0).verdict(), Verdict::Drop);
    /// assert!(collection.uninstall("protocols", 17)?); // and no more
    /// # dispatch.run_burst(&mut burst, &mut Host::default())?;
    /// # assert_eq!(burst.frame(0).verdict(), Verdict::Pass);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`EntryError::NoMap`], or [`EntryError::Install`]: the map is no program array or used by programs of another
    /// type, or the index is past its end.
    pub fn install(&self, map: &str, index: u32, program: &Program) -> Result<(), EntryError> {
        let (position, map) = self.table(map)?;
        self.tables.change(position, index, |_| Ok(self.tables.put((position, map), index, program)?))
    }

    /// Empties an entry of a program array, so that tail calls to it fail; false if it was empty.
    ///
    /// # Errors
    /// [`EntryError::NoMap`]; [`EntryError::Install`] for a map that is no program array, and an index past its end.
    pub fn uninstall(&self, map: &str, index: u32) -> Result<bool, EntryError> {
        let (position, map) = self.table(map)?;
        let entries = map.for_programs().prog_array().ok_or(InstallError::NoProgramArray)?.len();
        if index as usize >= entries {
            return Err(InstallError::Index { index, entries }.into());
        }
        self.tables.change(position, index, |is_waiting| match map.delete(&index.to_ne_bytes()) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(is_waiting),
            Err(errno) => Err(EntryError::Remove(errno)),
        })
    }

    /// The name of the program in an entry of a program array, if it came there through this collection.
    #[must_use]
    pub fn installed(&self, map: &str, index: u32) -> Option<String> {
        let (position, map) = self.table(map).ok()?;
        let id = map.for_programs().prog_array()?.program(index)?;
        let installed = self.tables.installed.lock().unwrap_or_else(PoisonError::into_inner);
        installed.get(&(position, index)).filter(|(known, _)| *known == id).map(|(_, name)| name.clone())
    }

    fn table(&self, name: &str) -> Result<(usize, &Arc<Map>), EntryError> {
        let found = self.maps().iter().enumerate().find(|(_, map)| map.spec().name == name);
        found.ok_or_else(|| EntryError::NoMap {
            name: name.to_owned(),
            names: self.maps().iter().map(|map| map.spec().name.clone()).collect(),
        })
    }

    /// Loads the programs that the object gives to the arrays that a program uses, and those that they use, and puts
    /// them there.
    pub(crate) fn fill_tables(
        &self,
        program: &Program,
        load: &dyn Fn(&ProgramSpec) -> Result<Program, ProgramError>,
    ) -> Result<(), ProgramError> {
        let mut loaded = BTreeMap::from([(program.spec().name.clone(), program.clone())]);
        let mut todo: Vec<usize> = self.used_by(program.spec()).collect();
        let mut done = BTreeSet::new();
        while let Some(map) = todo.pop() {
            if !done.insert(map) {
                continue;
            }
            for (index, name) in self.tables.waiting(map) {
                let target = match loaded.get(&name) {
                    Some(target) => Ok(target.clone()),
                    None => self.program_spec(Some(&name)).and_then(load),
                };
                let target = match target {
                    Ok(target) => target,
                    Err(error) if self.tables.leaves_unsupported && lacks_support(&error) => {
                        self.leave_empty(map, index, name, error)?;
                        continue;
                    }
                    Err(error) => return Err(self.entry_error(map, index, error.into())),
                };
                todo.extend(self.used_by(target.spec()));
                self.fill_entry(map, index, &target)?;
                loaded.insert(name, target);
            }
        }
        Ok(())
    }

    fn leave_empty(
        &self,
        map: usize,
        index: u32,
        program: String,
        error: ProgramError,
    ) -> Result<(), ProgramError> {
        let left = self.tables.change(map, index, |_| Ok::<_, ProgramError>(()));
        let name = self.maps().get(map).map(|map| map.spec().name.clone()).unwrap_or_default();
        let entry = UnfilledEntry { map: name, index, program, error: Arc::new(error) };
        self.tables.unfilled.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
        left
    }

    /// The entries of program arrays that stay empty, in the order in which programs asked for them
    /// ([`LoadOptions::leaving_unsupported`](crate::LoadOptions::leaving_unsupported)).
    #[must_use]
    pub fn unfilled(&self) -> Vec<UnfilledEntry> {
        self.tables.unfilled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fill_entry(&self, map: usize, index: u32, program: &Program) -> Result<(), ProgramError> {
        let Some(array) = self.maps().get(map) else { return Ok(()) };
        self.tables
            // Somebody may have changed the entry meanwhile.
            .change(map, index, |is_waiting| {
                if is_waiting { self.tables.put((map, array), index, program) } else { Ok(()) }
            })
            .map_err(|error| self.entry_error(map, index, error.into()))
    }

    fn entry_error(&self, map: usize, index: u32, source: EntryError) -> ProgramError {
        let map = self.maps().get(map).map(|map| map.spec().name.clone()).unwrap_or_default();
        ProgramError::Entry { map, index, source: Box::new(source) }
    }

    /// The program arrays that a program names.
    fn used_by(&self, spec: &ProgramSpec) -> impl Iterator<Item = usize> {
        let code = paceline_isa::decode(&spec.insns).ok();
        let named = code.iter().flat_map(|code| code.iter()).filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => usize::try_from(*index).ok(),
            _ => None,
        });
        let is_table = |map: &usize| self.maps().get(*map).is_some_and(|m| m.spec().kind.holds_programs());
        named.filter(is_table).collect::<BTreeSet<_>>().into_iter()
    }
}
