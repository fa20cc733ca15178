//! libxdp's dispatcher as an ordinary program: programs are linked in place of the stubs that the kernel's `freplace` would
//! replace, and the configuration is as libxdp writes it (`lib/libxdp/protocol.org` in xdp-tools).

use paceline::Object;
use paceline::chain::Actions;
use paceline_btf::{Btf, Type};
use paceline_isa::RawInsn;
use paceline_spec::{FunctionInfo, InitialValue, Linkage, MapSpec, ProgramSpec};

/// Path in Debian's libxdp1.
pub const OBJECT: &str = "/usr/lib/x86_64-linux-gnu/bpf/xdp-dispatcher.o";

/// Its main program.
pub const PROGRAM: &str = "xdp_dispatcher";

/// Number of slots (`MAX_DISPATCHER_ACTIONS`).
pub const SLOTS: usize = 10;

/// Return value of a stub, after which the dispatcher always continues (`XDP_DISPATCHER_RETVAL`).
pub const EMPTY: u32 = 31;

const MAGIC: u32 = 236;
const VERSION: u32 = 2;

/// Opcode of a call; `src` 1 means a subprogram.
const CALL: u8 = 0x85;
/// Opcode of the first slot of a 64-bit immediate; `src` is its kind.
const LOAD_IMM64: u8 = 0x18;
const MAP_INDEX: u8 = 5;
const MAP_VALUE_INDEX: u8 = 6;
const FUNCTION: u8 = 4;

/// A program for a slot.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// The program.
    pub program: &'a ProgramSpec,
    /// The maps that it references by index.
    pub maps: &'a [MapSpec],
    /// The verdicts after which the dispatcher continues.
    pub actions: Actions,
    /// Its run priority, written to the configuration for tools that read it.
    pub priority: u32,
}

/// Why programs do not fit into a dispatcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DispatcherError {
    /// There are more programs than slots.
    #[error("{0} programs for {SLOTS} slots")]
    TooMany(usize),
    /// The dispatcher is not compiled as expected.
    #[error("the dispatcher has no {0}")]
    Missing(&'static str),
}

/// A function of the dispatcher, or of a component.
struct Part {
    info: FunctionInfo,
    insns: Vec<RawInsn>,
    /// Indices of the parts for the functions of its program.
    callees: Vec<usize>,
    /// Slots of the functions of its program.
    starts: Vec<usize>,
    /// Offset added to its map indices.
    maps: i32,
}

/// The dispatcher with components in its slots, in this order.
///
/// # Errors
/// [`DispatcherError`].
pub fn fill_slots(dispatcher: &Object, components: &[Component<'_>]) -> Result<Object, DispatcherError> {
    if components.len() > SLOTS {
        return Err(DispatcherError::TooMany(components.len()));
    }
    let mut object = dispatcher.clone();
    let btf = dispatcher.shared_btf().ok_or(DispatcherError::Missing("types"))?;
    let config = configuration(&btf, components)?;
    let specs = object.specs_mut();
    let rodata = specs.maps.iter_mut().find(|map| map.name == ".rodata");
    rodata.ok_or(DispatcherError::Missing(".rodata"))?.contents =
        vec![(vec![0; 4], InitialValue::Bytes(config))];
    let program = specs.programs.iter_mut().find(|program| program.name == PROGRAM);
    let program = program.ok_or(DispatcherError::Missing("program"))?;
    let mut parts = parts(program, 0, 0);
    for (slot, component) in components.iter().enumerate() {
        let stub = format!("prog{slot}");
        let at = parts.iter().position(|part| part.info.name == stub);
        let at = at.ok_or(DispatcherError::Missing("stub"))?;
        let first = parts.len();
        let maps = i32::try_from(specs.maps.len()).unwrap_or(i32::MAX);
        specs.maps.extend(component.maps.iter().cloned());
        let mut own = self::parts(component.program, first, maps);
        // The main function replaces the stub; the other functions follow at the end.
        let mut main = own.remove(0);
        main.info = FunctionInfo { btf_id: parts[at].info.btf_id, name: stub, ..main.info };
        let moved = |callee: &usize| if *callee == first { at } else { callee - 1 };
        for part in own.iter_mut().chain([&mut main]) {
            part.callees = part.callees.iter().map(moved).collect();
        }
        parts[at] = main;
        parts.extend(
            own.into_iter()
                .map(|part| Part { info: FunctionInfo { linkage: Linkage::Static, ..part.info }, ..part }),
        );
    }
    link(program, parts);
    Ok(object)
}

/// Splits a program into its functions. Their indices start at `first`, those of their maps at `maps`.
fn parts(program: &ProgramSpec, first: usize, maps: i32) -> Vec<Part> {
    let starts: Vec<usize> = program.functions.iter().map(|function| function.start).collect();
    let ends = starts.iter().skip(1).copied().chain([program.insns.len()]);
    let functions = program.functions.iter().zip(ends);
    functions
        .map(|(info, end)| Part {
            info: info.clone(),
            insns: program.insns[info.start..end].to_vec(),
            callees: (first..first + starts.len()).collect(),
            starts: starts.clone(),
            maps,
        })
        .collect()
}

/// Concatenates the functions and relocates calls and map indices.
fn link(program: &mut ProgramSpec, parts: Vec<Part>) {
    let mut starts = Vec::new();
    let mut length = 0;
    for part in &parts {
        starts.push(length);
        length += part.insns.len();
    }
    program.insns.clear();
    program.functions.clear();
    // Types of the stubs would be wrong, and the kernel requires types for all functions or none.
    program.lines.clear();
    for (index, part) in parts.into_iter().enumerate() {
        let old_start = part.info.start;
        program.functions.push(FunctionInfo { start: starts[index], ..part.info });
        let mut is_second = false;
        for (slot, mut insn) in part.insns.into_iter().enumerate() {
            if !is_second {
                let to_function = (insn.opcode == CALL && insn.src == 1)
                    || (insn.opcode == LOAD_IMM64 && insn.src == FUNCTION);
                if to_function {
                    // Relative to the next slot.
                    let target = (old_start + slot + 1).wrapping_add_signed(insn.imm as isize);
                    let callee = part.starts.iter().position(|start| *start == target);
                    let target = starts[part.callees[callee.expect("calls lead to functions")]];
                    let here = starts[index] + slot + 1;
                    insn.imm = i32::try_from(target as i64 - here as i64).expect("programs are short");
                }
                if insn.opcode == LOAD_IMM64 && matches!(insn.src, MAP_INDEX | MAP_VALUE_INDEX) {
                    insn.imm += part.maps;
                }
            }
            is_second = !is_second && insn.opcode == LOAD_IMM64;
            program.insns.push(insn);
        }
    }
}

/// `struct xdp_dispatcher_config`, by its type in the object.
fn configuration(btf: &Btf, components: &[Component<'_>]) -> Result<Vec<u8>, DispatcherError> {
    let missing = DispatcherError::Missing("configuration");
    let id = btf.find("xdp_dispatcher_config", |ty| matches!(ty, Type::Struct(_))).ok_or(missing.clone())?;
    let Some(Type::Struct(config)) = btf.get(id) else { return Err(missing) };
    let mut bytes = vec![0; config.size as usize];
    let count = u32::try_from(components.len()).unwrap_or(u32::MAX);
    let actions = components.iter().map(|component| component.actions.bits() | 1 << EMPTY).collect();
    let priorities = components.iter().map(|component| component.priority).collect();
    let fields: [(&str, usize, Vec<u32>); 5] = [
        ("magic", 1, vec![MAGIC]),
        ("dispatcher_version", 1, vec![VERSION]),
        ("num_progs_enabled", 1, vec![count]),
        ("chain_call_actions", 4, actions),
        ("run_prios", 4, priorities),
    ];
    for (name, size, values) in fields {
        let member = config.members.iter().find(|member| btf.name(member.name) == name);
        let offset =
            member.ok_or(DispatcherError::Missing("member of its configuration"))?.bit_offset as usize / 8;
        for (index, value) in values.iter().enumerate() {
            let start = offset + index * size;
            let field = bytes.get_mut(start..start + size).ok_or(DispatcherError::Missing("room"))?;
            field.copy_from_slice(&value.to_ne_bytes()[..size]);
        }
    }
    Ok(bytes)
}
