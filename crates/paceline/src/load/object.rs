//! Object files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use paceline_btf::Btf;
use paceline_classic::{
    CheckError, ConvertError, ConvertOptions, Filter, Purpose, Returns, SockFilter, text,
};
use paceline_isa::RawInsn;
use paceline_object::{DataPointer, Needs, Object as ObjectSpecs, ObjectOptions, SkippedProgram};
use paceline_spec::{InitialValue, MapSpec, ProgramSpec};

#[cfg(feature = "analysis")]
use super::counters::Plans;

/// A file is not an object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Invalid object.
    #[error(transparent)]
    Parse(#[from] paceline_object::LoadError),
}

/// A text is not a classic filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterTextError {
    /// Not a classic program.
    #[error(transparent)]
    Text(#[from] text::TextError),
    /// The kernel would not take it.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The conversion fails.
    #[error(transparent)]
    Convert(#[from] ConvertError),
}

/// The programs and maps of an object file, as specs: nothing is made yet.
#[derive(Clone, Debug)]
pub struct Object {
    inner: ObjectSpecs,
    #[cfg(feature = "analysis")]
    pub(crate) coverage: Option<Arc<Plans>>,
}

impl Object {
    /// Reads an object file.
    ///
    /// # Errors
    /// [`OpenError`]; it does not repeat the path.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::parse(&fs::read(path)?)
    }

    /// Reads an object from memory.
    ///
    /// # Errors
    /// [`OpenError::Parse`].
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        Ok(Self::of_specs(ObjectSpecs::parse(bytes)?))
    }

    /// Reads an object from memory, with what it may ask of a kernel, and what its loader gives it.
    ///
    /// # Errors
    /// [`OpenError::Parse`].
    pub fn parse_with(bytes: &[u8], options: &ObjectOptions<'_>) -> Result<Self, OpenError> {
        Ok(Self::of_specs(ObjectSpecs::parse_with(bytes, options)?))
    }

    fn of_specs(inner: ObjectSpecs) -> Self {
        Self {
            inner,
            #[cfg(feature = "analysis")]
            coverage: None,
        }
    }

    /// The parts of a kernel that an object uses.
    ///
    /// # Errors
    /// [`OpenError::Parse`].
    pub fn needs(bytes: &[u8]) -> Result<Needs, OpenError> {
        Ok(ObjectSpecs::needs(bytes)?)
    }

    /// The object without some of its maps, and without the programs that name one of them; those come with the indices of theirs.
    pub(crate) fn without_maps(
        &self,
        gone: impl Fn(usize) -> bool,
    ) -> (Self, Vec<(ProgramSpec, BTreeSet<usize>)>) {
        let mut object = self.clone();
        let kept: Vec<usize> = (0..self.maps().len()).filter(|map| !gone(*map)).collect();
        let specs = &mut object.inner;
        let mut without = Vec::new();
        for program in std::mem::take(&mut specs.programs) {
            let named: BTreeSet<usize> = maps_of(&program.insns).filter(|map| gone(*map)).collect();
            match named.is_empty() {
                true => specs.programs.push(program),
                false => without.push((program, named)),
            }
        }
        let renumber = |map: usize| kept.binary_search(&map).unwrap_or(map);
        for program in &mut specs.programs {
            renumber_maps(&mut program.insns, renumber);
            if let Some(counters) = &mut program.counters {
                let counters = Arc::make_mut(counters);
                counters.map = renumber(counters.map);
            }
        }
        specs.maps = kept.iter().filter_map(|map| self.maps().get(*map)).cloned().collect();
        for (_, value) in specs.maps.iter_mut().flat_map(|spec| &mut spec.contents) {
            if let InitialValue::Map(map) = value {
                *map = renumber(*map);
            }
        }
        (object, without)
    }

    /// An object of one program, without maps and types.
    #[must_use]
    pub fn of_program(program: ProgramSpec) -> Self {
        let license = program.license.clone();
        let inner = ObjectSpecs {
            programs: vec![program],
            maps: Vec::new(),
            btf: None,
            license,
            skipped: Vec::new(),
            data_pointers: Vec::new(),
        };
        Self::of_specs(inner)
    }

    /// A classic filter, in any of its forms as text (what `tcpdump -d`, `-dd` and `-ddd` print), as an XDP program of
    /// this name that passes what matches and drops the rest: a link of a chain.
    ///
    /// # Errors
    /// [`FilterTextError`].
    pub fn of_filter(name: &str, text: &str) -> Result<Self, FilterTextError> {
        Self::of_classic(name, text::parse(text)?)
    }

    /// A classic filter from its instructions, such as those of [`Libpcap::compile`](crate::filter::Libpcap::compile), with the
    /// rules of socket filters: the length is the captured one.
    ///
    /// # Errors
    /// [`FilterTextError::Check`] and [`FilterTextError::Convert`].
    pub fn of_classic(name: &str, insns: Vec<SockFilter>) -> Result<Self, FilterTextError> {
        let filter = Filter::new(insns, Purpose::Socket)?;
        let options = ConvertOptions::default().returns(Returns::PASS_OR_DROP);
        Ok(Self::of_program(filter.to_xdp(name, &options)?))
    }

    /// Its programs of the types that Paceline runs, in the order of the file.
    #[must_use]
    pub fn programs(&self) -> &[ProgramSpec] {
        &self.inner.programs
    }

    /// Its maps; programs refer to them by index.
    #[must_use]
    pub fn maps(&self) -> &[MapSpec] {
        &self.inner.maps
    }

    /// The program of a name.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<&ProgramSpec> {
        self.inner.program(name)
    }

    /// The map of a name.
    #[must_use]
    pub fn map(&self, name: &str) -> Option<&MapSpec> {
        self.inner.map(name)
    }

    /// Its types, if it was compiled with them, with the sizes of data sections and the places of variables in them filled in.
    #[must_use]
    pub fn btf(&self) -> Option<&Btf> {
        self.inner.btf.as_deref()
    }

    /// A shared reference to the same types.
    #[must_use]
    pub fn shared_btf(&self) -> Option<Arc<Btf>> {
        self.inner.btf.clone()
    }

    /// Its licence; empty if it declares none.
    #[must_use]
    pub fn license(&self) -> &str {
        &self.inner.license
    }

    /// Programs of other types, and those that need not load and cannot.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedProgram] {
        &self.inner.skipped
    }

    /// Addresses in its data, of which programs read the offsets, as with libbpf; at most the first 1024.
    #[must_use]
    pub fn data_pointers(&self) -> &[DataPointer] {
        &self.inner.data_pointers
    }

    /// The specs, to change before the object is loaded.
    pub fn specs_mut(&mut self) -> &mut ObjectSpecs {
        &mut self.inner
    }
}

/// Opcode of a two-slot load of a 64-bit immediate.
const LD_IMM64: u8 = 0x18;

/// The slots whose immediate is the index of a map.
fn map_slots(insns: &[RawInsn]) -> impl Iterator<Item = usize> {
    let mut second = false;
    let names_map = move |(slot, insn): (usize, &RawInsn)| {
        let is_load = insn.opcode == LD_IMM64 && !second;
        second = is_load;
        // BPF_PSEUDO_MAP_IDX and BPF_PSEUDO_MAP_IDX_VALUE.
        (is_load && matches!(insn.src, 5 | 6)).then_some(slot)
    };
    insns.iter().enumerate().filter_map(names_map)
}

/// The maps that a program names, by index: those that there must be, as in the kernel, whether a path leads there or not.
fn maps_of(insns: &[RawInsn]) -> impl Iterator<Item = usize> {
    map_slots(insns).filter_map(|slot| usize::try_from(insns.get(slot)?.imm).ok())
}

fn renumber_maps(insns: &mut [RawInsn], renumber: impl Fn(usize) -> usize) {
    for slot in map_slots(insns).collect::<Vec<_>>() {
        if let Some(insn) = insns.get_mut(slot)
            && let Ok(map) = usize::try_from(insn.imm)
        {
            insn.imm = i32::try_from(renumber(map)).unwrap_or(insn.imm);
        }
    }
}
