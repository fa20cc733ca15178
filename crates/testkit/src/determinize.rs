//! Makes programs depend only on packets and maps, so that two engines can be compared.
//!
//! Each call of a helper that reads a clock or draws a random number is replaced by a call of a short subprogram that takes
//! the next value of a sequence in a map. The sequence is the same on every engine; its values still differ between calls,
//! and those of clocks increase slowly.

use paceline_btf::{Btf, Int, IntEncoding, SymbolLinkage, Type, TypeId};
use paceline_isa::{AluOp, Callee, Imm64, Insn, Operand, Reg, Size, Width, decode, encode_all};
use paceline_spec::helper::Helper;
use paceline_spec::{FunctionInfo, Linkage, MapKind, MapSpec, ProgramSpec};

/// Helpers whose results differ between two runs.
const CLOCKS: &[&str] = &[
    "bpf_ktime_get_ns",
    "bpf_ktime_get_boot_ns",
    "bpf_ktime_get_coarse_ns",
    "bpf_ktime_get_tai_ns",
    "bpf_jiffies64",
];
const RANDOM: &str = "bpf_get_prandom_u32";

/// Name of the map that holds the sequence.
pub const SEQUENCE_MAP: &str = "sequence";

/// Replaces the calls, adds the map if there were any, and the types of the new subprograms if the program has types.
/// Returns the names of the replaced helpers.
pub fn determinize<'a>(
    programs: impl IntoIterator<Item = &'a mut ProgramSpec>,
    maps: &mut Vec<MapSpec>,
    mut btf: Option<&mut Btf>,
) -> Vec<&'static str> {
    let index = i32::try_from(maps.len()).unwrap_or(i32::MAX);
    let mut replaced = Vec::new();
    for program in programs {
        replaced.extend(replace_calls(program, index, btf.as_deref_mut()));
    }
    replaced.sort_unstable();
    replaced.dedup();
    if !replaced.is_empty() {
        maps.push(sequence_map());
    }
    replaced
}

fn replace_calls(program: &mut ProgramSpec, map: i32, mut btf: Option<&mut Btf>) -> Vec<&'static str> {
    // The engine refuses programs that do not decode.
    let Ok(code) = decode(&program.insns) else { return Vec::new() };
    let calls: Vec<(usize, &'static Helper)> =
        code.iter().filter_map(|(slot, insn)| Some((slot, varying(insn)?))).collect();
    let (Some(random), Some(clock)) = (body(map, true), body(map, false)) else { return Vec::new() };
    for (is_random, body) in [(true, random), (false, clock)] {
        let mine: Vec<usize> = calls
            .iter()
            .filter(|(_, helper)| (helper.name == RANDOM) == is_random)
            .map(|(slot, _)| *slot)
            .collect();
        if mine.is_empty() {
            continue;
        }
        let start = program.insns.len();
        for slot in mine {
            let distance = i32::try_from(start - slot - 1).unwrap_or(i32::MAX);
            if let (Some(place), Ok(slots)) =
                (program.insns.get_mut(slot), encode_all(&[Insn::Call(Callee::Subprogram(distance))]))
            {
                *place = slots.first().copied().unwrap_or(*place);
            }
        }
        let name = if is_random { "next_random" } else { "next_time" };
        program.functions.push(FunctionInfo {
            start,
            name: name.to_owned(),
            linkage: Linkage::Static,
            btf_id: btf.as_deref_mut().map_or(0, |btf| function_type(btf, name)),
        });
        program.insns.extend(body);
    }
    calls.iter().map(|(_, helper)| helper.name).collect()
}

/// `static unsigned long NAME(void)`
fn function_type(btf: &mut Btf, name: &str) -> TypeId {
    let int = Int {
        name: btf.add_name("unsigned long"),
        size: 8,
        encoding: IntEncoding::Unsigned,
        bit_offset: 0,
        bits: 64,
    };
    let result = btf.add(Type::Int(int));
    let proto = btf.add(Type::FuncProto { result, params: Box::default() });
    let name = btf.add_name(name);
    btf.add(Type::Func { name, proto, linkage: SymbolLinkage::Static })
}

fn varying(insn: &Insn) -> Option<&'static Helper> {
    let Insn::Call(Callee::Helper(id)) = insn else { return None };
    let helper = Helper::from_imm(*id)?;
    (helper.name == RANDOM || CLOCKS.contains(&helper.name)).then_some(helper)
}

/// Knuth's linear congruential generator in the first word of the map, or a clock of 1 microsecond steps in the second.
fn body(map: i32, random: bool) -> Option<Vec<paceline_isa::RawInsn>> {
    const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
    let offset = if random { 0 } else { 8 };
    let alu = |op, dst, src| Insn::Alu { width: Width::W64, op, dst, src };
    let mut insns = vec![
        Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapValueIndex { index: map, offset } },
        Insn::Load { size: Size::Dw, signed: false, dst: Reg::R0, base: Reg::R1, offset: 0 },
    ];
    if random {
        insns.push(Insn::LoadImm64 { dst: Reg::R2, value: Imm64::Value(MULTIPLIER) });
        insns.push(alu(AluOp::Mul, Reg::R0, Operand::Reg(Reg::R2)));
    }
    insns.push(alu(AluOp::Add, Reg::R0, Operand::Imm(1001)));
    insns.push(Insn::Store { size: Size::Dw, base: Reg::R1, offset: 0, src: Operand::Reg(Reg::R0) });
    if random {
        insns.push(alu(AluOp::Rsh, Reg::R0, Operand::Imm(32)));
    }
    insns.push(Insn::Exit);
    encode_all(&insns).ok()
}

fn sequence_map() -> MapSpec {
    MapSpec::new(SEQUENCE_MAP, MapKind::Array, 4, 16, 1)
}
