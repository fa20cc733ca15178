//! Objects of programs and maps that come from elsewhere than a file: from a compiler in the process, or a test.

use std::sync::Arc;

use paceline::btf::Btf;
use paceline::isa::RawInsn;
use paceline::{
    FunctionInfo, InitialValue, KfuncRef, Linkage, MapFlags, MapKind, MapSpec, Object, ProgramKind,
    ProgramSpec,
};

use crate::call;
use crate::handles::Table;
use crate::object::{Opened, program_kind};
use crate::opaque::{paceline_builder, paceline_object};
use crate::raw::{Bytes, Given, List, Text, given};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// Programs, maps and types so far.
struct Draft {
    btf: Option<Arc<Btf>>,
    programs: Vec<ProgramSpec>,
    maps: Vec<MapSpec>,
}

static BUILDERS: Table<Draft, paceline_builder> = Table::new();

/// An instruction: struct bpf_insn of linux/bpf.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_instruction {
    /// Operation.
    pub code: u8,
    /// Destination register in the low four bits and source register in the high ones, on little-endian machines; the reverse on others.
    pub registers: u8,
    /// Offset.
    pub offset: i16,
    /// Immediate. A 64-bit load of a map has its index, in the order in which maps were added: BPF_PSEUDO_MAP_IDX (5) in the source
    /// register, or BPF_PSEUDO_MAP_IDX_VALUE (6) for the address of its value. A call of a kernel function (source register 2) has
    /// the index of its name in `kernel_functions`.
    pub immediate: i32,
}

/// A function of a program: struct bpf_func_info of linux/bpf.h, with its name.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_function {
    /// sizeof(struct paceline_function)
    pub size: usize,
    /// Its name.
    pub name: Text,
    /// Slot of its first instruction.
    pub slot: u32,
    /// Its BTF type; 0 without.
    pub type_id: u32,
    /// Not 0 for a global function, which is verified once, on its own.
    pub is_global: u32,
    /// 0.
    pub reserved: u32,
}

/// A program to add.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_program_spec {
    /// sizeof(struct paceline_program_spec)
    pub size: usize,
    /// Its name.
    pub name: Text,
    /// Its licence, such as "GPL", which some helpers need; null for none.
    pub license: Text,
    /// Its instructions.
    pub instructions: List<paceline_instruction>,
    /// Slots of them.
    pub instruction_count: usize,
    /// One of enum paceline_program_type.
    pub program_type: u32,
    /// Not 0 if an XDP program takes packets in several buffers (xdp.frags).
    pub frags: u32,
    /// Its functions, by rising slot: the program itself first. Null if there is only that.
    pub functions: Given<paceline_function>,
    /// Number of functions.
    pub function_count: usize,
    /// Names of the kernel functions that it calls.
    pub kernel_functions: List<Text>,
    /// Number of names.
    pub kernel_function_count: usize,
}

/// A map to add.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_map_spec {
    /// sizeof(struct paceline_map_spec)
    pub size: usize,
    /// Its name.
    pub name: Text,
    /// Number of its kind in enum bpf_map_type of linux/bpf.h.
    pub kind: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of elements.
    pub max_entries: u32,
    /// BPF_F_ flags.
    pub flags: u32,
    /// BTF type of keys; 0 without.
    pub key_type: u32,
    /// BTF type of values; 0 without. Its bpf_spin_lock, bpf_timer and the like are found by it.
    pub value_type: u32,
    /// Not 0 if the map is frozen once its first elements are there.
    pub frozen: u32,
    /// map_extra.
    pub extra: u64,
    /// For a map of maps: the map added earlier that inner maps are like, counted from 1; 0 for others.
    pub inner: u32,
    /// 0.
    pub reserved: u32,
}

given!(paceline_function, paceline_program_spec, paceline_map_spec);

/// A new builder of an object. `types` is BTF for its functions, keys and values; null and 0 without. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_new(
    types: Bytes,
    types_length: usize,
    error: ErrorOut,
) -> *mut paceline_builder {
    call::handle(error, || {
        let types = types.slice(types_length)?;
        let wrong = |error| Failure::new(paceline_status::Object, format!("types: {error}"));
        let btf = if types.is_empty() { None } else { Some(Arc::new(Btf::parse(types).map_err(wrong)?)) };
        BUILDERS.give(Draft { btf, programs: Vec::new(), maps: Vec::new() })
    })
}

/// Frees a builder. Objects that it made stay. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_free(builder: *mut paceline_builder) -> paceline_status {
    call::plain_status(|| BUILDERS.free(builder))
}

/// Adds a map.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_add_map(
    builder: *mut paceline_builder,
    map: Given<paceline_map_spec>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut draft = BUILDERS.lock(builder)?;
        let map = draft.map(&map.required()?)?;
        draft.maps.push(map);
        Ok(())
    })
}

/// Gives a map an element that it has from the start. A value that is shorter than the map's is filled with zeros. `map` is counted from
/// 0.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_set(
    builder: *mut paceline_builder,
    map: u32,
    key: Bytes,
    key_length: usize,
    value: Bytes,
    value_length: usize,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut draft = BUILDERS.lock(builder)?;
        let value = InitialValue::Bytes(value.slice(value_length)?.to_vec());
        let key = key.slice(key_length)?.to_vec();
        let map = draft.maps.get_mut(map as usize).ok_or_else(|| no_map(map))?;
        map.contents.push((key, value));
        Ok(())
    })
}

/// Adds a program.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_add_program(
    builder: *mut paceline_builder,
    program: Given<paceline_program_spec>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut draft = BUILDERS.lock(builder)?;
        let program = program_of(&program.required()?)?;
        draft.programs.push(program);
        Ok(())
    })
}

/// The object of all that was added so far. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_builder_object(
    builder: *const paceline_builder,
    error: ErrorOut,
) -> *mut paceline_object {
    call::handle(error, || {
        let draft = BUILDERS.lock(builder)?;
        Opened::give(draft.object())
    })
}

impl Draft {
    fn map(&self, given: &paceline_map_spec) -> Result<MapSpec, Failure> {
        let kind = MapKind::from_number(given.kind);
        let kind =
            kind.ok_or_else(|| Failure::argument(format!("{} is no enum bpf_map_type", given.kind)))?;
        let name = given.name.required("the name of a map")?;
        let mut map = MapSpec::new(name, kind, given.key_size, given.value_size, given.max_entries);
        map.flags = MapFlags(given.flags);
        map.extra = given.extra;
        (map.key_type, map.value_type) = (given.key_type, given.value_type);
        map.frozen = given.frozen != 0;
        if let Some(inner) = given.inner.checked_sub(1) {
            let inner = self.maps.get(inner as usize).ok_or_else(|| no_map(inner))?;
            map.inner = Some(Box::new(MapSpec { contents: Vec::new(), frozen: false, ..inner.clone() }));
        }
        if let Some(btf) = &self.btf {
            map.find_special_fields(btf);
        }
        Ok(map)
    }

    fn object(&self) -> Object {
        // The specs of an object are public: one of a program is emptied and filled.
        let none = ProgramSpec::new("", ProgramKind::SocketFilter, Vec::new());
        let mut object = Object::of_program(none);
        let specs = object.specs_mut();
        specs.programs.clone_from(&self.programs);
        specs.maps.clone_from(&self.maps);
        specs.btf.clone_from(&self.btf);
        specs.license = self.programs.first().map(|program| program.license.clone()).unwrap_or_default();
        object
    }
}

fn program_of(given: &paceline_program_spec) -> Result<ProgramSpec, Failure> {
    let name = given.name.required("the name of a program")?;
    let mut kind = program_kind(given.program_type)?;
    if let ProgramKind::Xdp { frags, .. } = &mut kind {
        *frags = given.frags != 0;
    }
    let slots = given.instructions.slice(given.instruction_count)?;
    let mut program = ProgramSpec::new(name, kind, slots.iter().map(paceline_instruction::raw).collect());
    given.license.optional()?.unwrap_or_default().clone_into(&mut program.license);
    if given.function_count > 0 {
        program.functions.clear();
        given.functions.each(given.function_count, |_, function| {
            program.functions.push(function_of(&function)?);
            Ok(())
        })?;
        check_functions(&program)?;
    }
    for name in given.kernel_functions.slice(given.kernel_function_count)? {
        let name = name.required("the name of a kernel function")?.to_owned();
        program.kfuncs.push(KfuncRef { name, weak: false, btf_id: 0, converted: false });
    }
    Ok(program)
}

fn function_of(given: &paceline_function) -> Result<FunctionInfo, Failure> {
    Ok(FunctionInfo {
        start: given.slot as usize,
        name: given.name.required("the name of a function")?.to_owned(),
        linkage: if given.is_global != 0 { Linkage::Global } else { Linkage::Static },
        btf_id: given.type_id,
    })
}

/// Rules of all programs of a file: functions are in order of their slots, begin at 0 and lie within the instructions.
fn check_functions(program: &ProgramSpec) -> Result<(), Failure> {
    let starts: Vec<usize> = program.functions.iter().map(|function| function.start).collect();
    let rising = starts.is_sorted_by(|a, b| a < b) && starts.first() == Some(&0);
    if rising && starts.last().is_some_and(|last| *last < program.insns.len()) {
        Ok(())
    } else {
        Err(Failure::argument(format!(
            "program {}: functions must begin at rising slots, the first at 0",
            program.name
        )))
    }
}

fn no_map(index: u32) -> Failure {
    Failure::argument(format!("no map {index} was added"))
}

impl paceline_instruction {
    fn raw(&self) -> RawInsn {
        let (low, high) = (self.registers & 0xf, self.registers >> 4);
        let (dst, src) = if cfg!(target_endian = "little") { (low, high) } else { (high, low) };
        RawInsn { opcode: self.code, dst, src, offset: self.offset, imm: self.immediate }
    }
}
