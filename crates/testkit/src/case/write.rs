//! Writes generated programs as text cases.

use std::fmt::Write;

use paceline_isa::disassemble;
use paceline_spec::{InitialValue, KfuncRef, MapFlags, MapSpec, ProgramKind, ProgramSpec};

use crate::Contents;

/// A case with one map whose initial contents are in its spec; `after` is the value of key 0 after the run.
#[must_use]
pub fn write_case(name: &str, map: &MapSpec, program: &ProgramSpec, after: Option<&[u8]>) -> String {
    let mut text = format!("case: {name}\n");
    let maps = [(0, map.clone())];
    write_map(&mut text, map, &maps);
    write_program(&mut text, program, "program:", &maps);
    if let Some(after) = after {
        let _ = writeln!(
            text,
            "after: {}\n    {} = {}",
            map.name,
            hex(&vec![0; map.key_size as usize]),
            hex(after)
        );
    }
    text
}

/// A packet of a case, and the expected result.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun<'a> {
    /// The packet.
    pub data: &'a [u8],
    /// Metadata before it.
    pub meta: &'a [u8],
    /// Return value of the program, if known.
    pub r0: Option<u64>,
    /// The packet afterwards.
    pub output: &'a [u8],
    /// The metadata afterwards.
    pub output_meta: &'a [u8],
}

/// A case with several maps by index, with their initial contents, and programs of which all but the first are in the
/// program array; `after` has the contents of the maps after the last run, in the same order.
#[must_use]
pub fn write_cases(
    name: &str,
    maps: &[(usize, MapSpec)],
    programs: &[&ProgramSpec],
    runs: &[CaseRun<'_>],
    after: &[Option<Contents>],
) -> String {
    let mut text = format!("case: {name}\n");
    let kind = programs.first().map(|program| program.kind);
    let other = kind.filter(|kind| !matches!(kind, ProgramKind::Xdp { .. }));
    if let Some(kind) = other {
        let _ = writeln!(text, "type: {}", kind.rules().name);
    }
    write_types(&mut text, programs);
    maps.iter().for_each(|(_, map)| write_map(&mut text, map, maps));
    for (index, program) in programs.iter().enumerate() {
        let directive = if index == 0 { "program:".to_owned() } else { format!("program: target_{index}") };
        write_program(&mut text, program, &directive, maps);
    }
    for run in runs {
        let _ = writeln!(text, "packet: {}", hex(run.data));
        if !run.meta.is_empty() && other.is_none() {
            let _ = writeln!(text, "meta: {}", hex(run.meta));
        }
        if let Some(r0) = run.r0 {
            let _ = writeln!(text, "r0: {r0:#x}");
        }
        let _ = writeln!(
            text,
            "output: {}",
            if run.output == run.data { "same".to_owned() } else { hex(run.output) }
        );
        if run.output_meta != run.meta && other.is_none() {
            let _ = writeln!(text, "output_meta: {}", hex(run.output_meta));
        }
    }
    for ((_, map), contents) in maps.iter().zip(after) {
        // Records of a ring buffer are not elements.
        let Some(contents) = contents.as_ref().filter(|_| crate::has_byte_contents(map.kind)) else {
            continue;
        };
        let _ = writeln!(text, "after: {}", map.name);
        for (key, value) in contents {
            let _ = writeln!(text, "    {} = {}", hex(key), hex(value));
        }
    }
    text
}

/// Declarations of the kernel functions that random programs call.
const KFUNCS: [&str; 8] = [
    "int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)",
    "int *bpf_iter_num_next(struct bpf_iter_num *it)",
    "void bpf_iter_num_destroy(struct bpf_iter_num *it)",
    "int bpf_dynptr_from_xdp(struct xdp_md *ctx, u64 flags, struct bpf_dynptr *ptr)",
    "void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, u32 offset, void *buffer, u32 buffer__szk)",
    "void *bpf_dynptr_slice_rdwr(const struct bpf_dynptr *ptr, u32 offset, void *buffer, u32 buffer__szk)",
    "u64 bpf_dynptr_size(const struct bpf_dynptr *ptr)",
    "int bpf_dynptr_adjust(struct bpf_dynptr *ptr, u32 start, u32 end)",
];

fn write_types(text: &mut String, programs: &[&ProgramSpec]) {
    let called = |declaration: &&&str| {
        let is_named = |kfunc: &KfuncRef| declaration.contains(&format!("{}(", kfunc.name));
        programs.iter().any(|program| program.kfuncs.iter().any(is_named))
    };
    let declarations: Vec<&&str> = KFUNCS.iter().filter(called).collect();
    if !declarations.is_empty() {
        text.push_str("types:\n");
    }
    for declaration in declarations {
        let _ = writeln!(text, "    extern {declaration} __ksym;");
    }
}

fn write_map(text: &mut String, map: &MapSpec, maps: &[(usize, MapSpec)]) {
    let MapSpec { name, kind, key_size, value_size, max_entries, flags, .. } = map;
    let _ = write!(text, "map: {name} {kind} key {key_size} value {value_size} entries {max_entries}");
    if *flags != MapFlags::default() {
        let _ = write!(text, " flags {:#x}", flags.0);
    }
    let is_like = |inner: &MapSpec, map: &MapSpec| {
        let shape = |map: &MapSpec| (map.kind, map.key_size, map.value_size, map.max_entries, map.flags);
        shape(inner) == shape(map)
    };
    if let Some(inner) = &map.inner
        && let Some((_, like)) = maps.iter().find(|(_, map)| is_like(inner, map))
    {
        let _ = write!(text, " inner {}", like.name);
    }
    text.push_str(if map.frozen { " frozen\n" } else { "\n" });
    for (key, value) in &map.contents {
        match value {
            InitialValue::Bytes(value) => drop(writeln!(text, "    {} = {}", hex(key), hex(value))),
            InitialValue::Map(index) => {
                let inner = maps.iter().find(|(at, _)| at == index).map_or("", |(_, map)| map.name.as_str());
                let _ = writeln!(text, "    {} = map {inner}", hex(key));
            }
            InitialValue::Program(_) => {}
        }
    }
}

/// Generated programs have no labels: jump distances are in slots, as the disassembler prints them.
fn write_program(text: &mut String, program: &ProgramSpec, directive: &str, maps: &[(usize, MapSpec)]) {
    let _ = writeln!(text, "{directive}");
    for function in program.functions.iter().skip(1) {
        let _ = writeln!(
            text,
            "    # slot {}: {:?} function, type {}",
            function.start, function.linkage, function.btf_id
        );
    }
    for line in disassemble(&program.insns) {
        match line.insn {
            Ok(insn) => {
                let named = maps
                    .iter()
                    .fold(insn.to_string(), |insn, (index, map)| with_name(&insn, *index, &map.name));
                let kfuncs = program.kfuncs.iter().enumerate();
                let named = kfuncs.fold(named, |insn, (index, kfunc)| {
                    insn.replace(&format!("kfunc[{index}, 0]"), &kfunc.name)
                });
                let _ = writeln!(text, "    {named}");
            }
            Err(error) => drop(writeln!(text, "    # slot {}: {error}", line.slot)),
        }
    }
}

/// The disassembler prints maps by index.
fn with_name(insn: &str, index: usize, map: &str) -> String {
    insn.replace(&format!("map_value[{index}]"), &format!("map_value[{map}]"))
        .replace(&format!("map[{index}]"), &format!("map[{map}]"))
}

fn hex(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(8).map(word).collect::<Vec<_>>().join(" ")
}
