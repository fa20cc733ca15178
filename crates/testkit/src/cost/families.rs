//! Families of programs that are expensive to verify or compile, in any size.

use std::fmt::Write;

use fastrand::Rng;
use paceline_btf::{Btf, Int, IntEncoding, Param, SymbolLinkage, Type};
use paceline_isa::assemble;
use paceline_spec::{FunctionInfo, Linkage, MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

/// A program with the inputs of its verification.
#[derive(Debug)]
pub struct Item {
    /// The program.
    pub program: ProgramSpec,
    /// Its maps.
    pub maps: Vec<MapSpec>,
    /// Its types.
    pub btf: Option<Btf>,
}

/// A family of programs.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// The smallest measured size; the others are two and four times as large.
    pub size: usize,
    generate: fn(usize, &mut Rng) -> Item,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self { name: "call_layers", size: 9, generate: call_layers },
        Self { name: "call_random", size: 60, generate: call_random },
        Self { name: "tail_call_chain", size: 60, generate: tail_call_chain },
        Self { name: "tail_calls_beyond", size: 2_000, generate: tail_call_chain },
        Self { name: "global_calls", size: 8_000, generate: global_calls },
        Self { name: "type_chains", size: 60, generate: type_chains },
        Self { name: "back_jumps", size: 2_000, generate: back_jumps },
        Self { name: "random_jumps", size: 4_000, generate: random_jumps },
        Self { name: "straight", size: 50_000, generate: straight },
        Self { name: "wide_join", size: 1_000, generate: wide_join },
        Self { name: "joins", size: 500, generate: joins },
        Self { name: "precision_chain", size: 10_000, generate: precision_chain },
        Self { name: "deep_spills", size: 10, generate: deep_spills },
        Self { name: "nested_loops", size: 60, generate: nested_loops },
        Self { name: "unsettled", size: 15, generate: unsettled },
        Self { name: "callbacks", size: 10, generate: callbacks },
        Self { name: "map_values", size: 1_000, generate: map_values },
    ];

    /// The family of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name == name)
    }

    /// The program of a size.
    ///
    /// # Panics
    /// If the text of the program does not assemble, which is an error of the family.
    #[must_use]
    pub fn item(&self, size: usize, seed: u64) -> Item {
        (self.generate)(size, &mut Rng::with_seed(seed))
    }
}

fn item(text: &str) -> Item {
    let code = assemble(text, &()).unwrap_or_else(|error| panic!("{error}"));
    let insns = code.encode().unwrap_or_else(|error| panic!("{error}"));
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    Item { program: ProgramSpec::new("cost", kind, insns), maps: Vec::new(), btf: None }
}

/// Concatenates lines made by `line` for each number.
fn lines(count: usize, mut line: impl FnMut(&mut String, usize)) -> String {
    let mut text = String::new();
    (0..count).for_each(|i| {
        line(&mut text, i);
        text.push('\n');
    });
    text
}

/// Writes to a string, which cannot fail.
macro_rules! put {
    ($text:expr, $($args:tt)*) => { write!($text, $($args)*).unwrap_or_default() };
}

/// Seven layers of functions, each of which calls all functions of the next layer, on unreachable paths.
fn call_layers(width: usize, _: &mut Rng) -> Item {
    let mut text = "r0 = 0\nif r0 == 0 goto out\n".to_owned();
    text += &lines(width, |text, i| put!(text, "call f0_{i}"));
    text += "out: r0 = 0\nexit\n";
    for (layer, i) in (0..7).flat_map(|layer| (0..width).map(move |i| (layer, i))) {
        put!(text, "f{layer}_{i}: r0 = 0\n");
        if layer < 6 {
            text += &lines(width, |text, i| put!(text, "call f{}_{i}", layer + 1));
        }
        text += "exit\n";
    }
    item(&text)
}

/// Functions that call random later ones, to a depth of at most 8.
fn call_random(count: usize, rng: &mut Rng) -> Item {
    let layer = |function: usize| function * 7 / count;
    let mut text = "r0 = 0\nif r0 == 0 goto out\n".to_owned();
    text += &lines(count, |text, i| put!(text, "call f{i}"));
    text += "out: r0 = 0\nexit\n";
    for function in 0..count {
        put!(text, "f{function}: r0 = 0\n");
        for callee in (function + 1..count).filter(|&callee| layer(callee) > layer(function)) {
            if rng.u8(0..4) != 0 {
                put!(text, "call f{callee}\n");
            }
        }
        text += "exit\n";
    }
    item(&text)
}

/// Functions each of which is called by the next one; the first has a tail call.
fn tail_call_chain(count: usize, _: &mut Rng) -> Item {
    let mut text = "r6 = r1\nr0 = 0\nif r0 == 0 goto out\n".to_owned();
    text += &lines(count, |text, i| put!(text, "r1 = r6\ncall f{i}"));
    text += "out: r0 = 0\nexit\nf0: r2 = map[0] ll\nr3 = 0\ncall 12\nr0 = 0\nexit\n";
    text += &lines(count - 1, |text, i| match i % 7 {
        6 => put!(text, "f{}: r0 = 0\nexit", i + 1),
        _ => put!(text, "f{}: call f{i}\nexit", i + 1),
    });
    Item { maps: vec![MapSpec::new("programs", MapKind::ProgArray, 4, 4, 1)], ..item(&text) }
}

fn add_number(btf: &mut Btf) -> u32 {
    let name = btf.add_name("int");
    btf.add(Type::Int(Int { name, size: 4, encoding: IntEncoding::Signed, bit_offset: 0, bits: 32 }))
}

/// Appends a global function of two slots to the program.
fn add_global(item: &mut Item, btf: &mut Btf, start: usize, number: u32, params: Vec<u32>) -> u32 {
    let unnamed = btf.add_name("");
    let params: Box<[Param]> = params.into_iter().map(|ty| Param { name: unnamed, ty }).collect();
    let proto = btf.add(Type::FuncProto { result: number, params });
    let name = format!("f{start}");
    let in_btf = btf.add_name(&name);
    let btf_id = btf.add(Type::Func { name: in_btf, proto, linkage: SymbolLinkage::Global });
    item.program.functions.push(FunctionInfo { start, name, linkage: Linkage::Global, btf_id });
    btf_id
}

/// A global function that is called often, with very many declaration tags.
fn global_calls(count: usize, _: &mut Rng) -> Item {
    let mut text = lines(count, |text, _| {
        (1..=5).for_each(|reg| put!(text, "r{reg} = 0\n"));
        put!(text, "call f");
    });
    text += "r0 = 0\nexit\nf: r0 = 0\nexit\n";
    let mut item = item(&text);
    let mut btf = Btf::default();
    let number = add_number(&mut btf);
    let start = item.program.insns.len() - 2;
    let function = add_global(&mut item, &mut btf, start, number, vec![number; 5]);
    let name = btf.add_name("arg:nullable");
    for i in 0..count {
        btf.add(Type::DeclTag { name, ty: function, component: (i % 5) as i32 });
    }
    item.btf = Some(btf);
    item
}

/// Global functions with parameters behind long chains of types.
fn type_chains(count: usize, _: &mut Rng) -> Item {
    let mut text = lines(count, |text, i| {
        (1..=5).for_each(|reg| put!(text, "r{reg} = 0\n"));
        put!(text, "call f{i}");
    });
    text += "r0 = 0\nexit\n";
    text += &lines(count, |text, i| put!(text, "f{i}: r0 = 0\nexit"));
    let mut item = item(&text);
    let mut btf = Btf::default();
    let number = add_number(&mut btf);
    for i in 0..count {
        let chain = |btf: &mut Btf| (0..30).fold(number, |ty, _| btf.add(Type::Const(ty)));
        let params = (0..5).map(|_| chain(&mut btf)).collect();
        let start = item.program.insns.len() - 2 * (count - i);
        add_global(&mut item, &mut btf, start, number, params);
    }
    item.btf = Some(btf);
    item
}

/// Basic blocks in reverse order of execution: liveness propagates against the order of the code.
fn back_jumps(count: usize, _: &mut Rng) -> Item {
    let mut text = format!("r6 = r1\ngoto l{}\n", count - 1);
    text += "l0: r0 = *(u32 *)(r6 + 12)\nexit\n";
    text += &lines(count - 1, |text, i| {
        let byte = i % 3;
        put!(text, "l{}: r{} = {i}\nif r{} != {i} goto l{i}\ngoto l{i}", i + 1, 7 + byte, 7 + byte);
    });
    item(&text)
}

/// Random jumps within a bounded loop.
fn random_jumps(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r6 = *(u32 *)(r1 + 12)\nr7 = 0\nr8 = 0\nr9 = 0\nr0 = 0\n".to_owned();
    text += &lines(count, |text, i| {
        let (a, b) = (rng.u32(6..10), rng.u32(6..10));
        let target = if rng.u8(0..3) == 0 {
            rng.usize(i + 1..count + 1)
        } else {
            i + 1 + rng.usize(0..8).min(count - i - 1)
        };
        put!(text, "l{i}: r{a} ^= r{b}\nif r6 == {i} goto l{target}");
    });
    put!(text, "l{count}: may_goto l{}\nexit\n", count + 1);
    put!(text, "l{}: exit\n", count + 1);
    item(&text)
}

/// Many instructions without branches.
fn straight(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r0 = 0\nr6 = *(u32 *)(r1 + 12)\n".to_owned();
    text += &lines(count, |text, _| match rng.u8(0..3) {
        0 => put!(text, "r0 += r6"),
        1 => put!(text, "r0 ^= {}", rng.u16(..)),
        _ => put!(text, "*(u64 *)(r10 - {}) = r0", rng.usize(1..=64) * 8),
    });
    item(&(text + "exit\n"))
}

/// Many branches that join at one place, each with a precise number of its own.
fn wide_join(count: usize, _: &mut Rng) -> Item {
    let mut text = "r6 = *(u32 *)(r1 + 12)\nr0 = 0\nr7 = 0\n".to_owned();
    text += &lines(count, |text, i| put!(text, "r7 = {i}\nif r6 == {i} goto join"));
    text += "join: r0 = 0\n";
    text += &lines(20, |text, i| put!(text, "r0 += 1\nif r7 == {} goto l{i}\nr0 += 2\nl{i}:", i * 7));
    item(&(text + "exit\n"))
}

/// A sequence of branches and joins, each with another state.
fn joins(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r6 = *(u32 *)(r1 + 12)\nr0 = 0\nr7 = 0\nr8 = 0\n".to_owned();
    text += &lines(count, |text, i| {
        let reg = rng.u32(7..9);
        put!(text, "if r6 == {i} goto l{i}\nr{reg} += {}\nl{i}:", rng.u8(..));
    });
    item(&(text + "r0 = r7\nif r7 == 3 goto out\nr0 = r8\nout: exit\n"))
}

/// A chain of dependent numbers that become precise only at the end.
fn precision_chain(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r6 = *(u32 *)(r1 + 12)\nr7 = 0\nr8 = 1\nr9 = 2\n".to_owned();
    text += &lines(count, |text, i| {
        let (a, b) = (rng.u32(7..10), rng.u32(7..10));
        put!(text, "r{a} += r{b}\nr{a} &= 255");
        if i % 8 == 0 {
            put!(text, "\nif r6 != {i} goto l{i}\nr8 += 0\nl{i}:");
        }
    });
    item(&(text + "r0 = 0\nr7 += r8\nr7 += r9\nif r7 == 1 goto out\nr0 = 1\nout: exit\n"))
}

/// Frames full of spilled numbers that differ between paths, and branches in the innermost frame.
fn deep_spills(count: usize, _: &mut Rng) -> Item {
    let mut text = String::new();
    for frame in 0..7 {
        put!(text, "f{frame}: r6 = r1\n");
        text += &lines(8, |text, i| {
            put!(text, "call 7\n*(u64 *)(r10 - {}) = r0", 8 * (i + 1));
        });
        put!(text, "r1 = r6\ncall f{}\n", frame + 1);
        text += &lines(8, |text, i| {
            put!(
                text,
                "r1 = *(u64 *)(r10 - {})\nif r1 == {i} goto s{frame}_{i}\nr0 += 1\ns{frame}_{i}:",
                8 * (i + 1)
            );
        });
        text += "exit\n";
    }
    text += "f7: r6 = 0\n";
    text += &lines(count, |text, i| {
        put!(text, "call 7\nif r0 == {i} goto l{i}\nr6 += {}\nl{i}:", i + 1);
    });
    item(&(text + "r0 = r6\nif r6 == 77 goto e\nr0 = 1\ne: exit\n"))
}

/// A nested loop, simulated iteration by iteration.
fn nested_loops(count: usize, _: &mut Rng) -> Item {
    item(&format!(
        "r6 = 0\nr0 = 0\nouter: r7 = 0\ninner: r8 = r7\nr8 += r6\nr7 += 1\nif r7 < {count} goto inner\n\
         r6 += 1\nif r6 < {count} goto outer\nexit\n"
    ))
}

/// Branches in a loop with another bound; each path ends at a checkpoint that is still open.
fn unsettled(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r6 = *(u32 *)(r1 + 12)\nr7 = 0\nr8 = 0\nagain: may_goto out\n".to_owned();
    text += &lines(count, |text, i| {
        let offset = rng.usize(1..=64) * 8;
        put!(text, "call 7\nif r0 == {i} goto l{i}\n*(u64 *)(r10 - {offset}) = r0\n");
        put!(text, "r8 ^= r0\nr8 += 1\nr8 += 2\nr8 += 3\nl{i}: r7 = *(u64 *)(r10 - {offset})");
    });
    item(&(text + "goto again\nout: r0 = r8\nexit\n"))
}

/// The same in a callback of a helper, on its caller's stack.
fn callbacks(count: usize, rng: &mut Rng) -> Item {
    let mut text = "r1 = 100\nr2 = subprog[round] ll\nr3 = r10\nr4 = 0\ncall 181\nr0 = 0\nexit\n".to_owned();
    text += "round: r6 = r2\nr8 = 0\n";
    text += &lines(count, |text, i| {
        let offset = rng.usize(1..=32) * 8;
        put!(text, "call 7\nif r0 == {i} goto l{i}\n*(u64 *)(r6 - {offset}) = r0\n");
        put!(text, "r8 ^= r0\nr8 += 1\nr8 += 2\nr8 += 3\nl{i}: r7 = *(u64 *)(r6 - {offset})");
    });
    item(&(text + "r0 = 0\nexit\n"))
}

/// Look-ups in the maximum number of maps, whose values stay live.
fn map_values(count: usize, rng: &mut Rng) -> Item {
    let maps = (0..64).map(|i| MapSpec::new(format!("m{i}"), MapKind::Array, 4, 8, 4)).collect();
    let mut text = "*(u64 *)(r10 - 8) = 0\n".to_owned();
    text += &lines(count, |text, i| {
        let (map, place) = (i % 64, rng.usize(2..=60) * 8);
        put!(text, "call 7\nr0 &= 7\n*(u32 *)(r10 - 8) = r0\nr1 = map[{map}] ll\nr2 = r10\nr2 += -8\n");
        put!(text, "call 1\n*(u64 *)(r10 - {place}) = r0\nif r0 == 0 goto l{i}\n");
        put!(text, "r1 = *(u64 *)(r0 + 0)\nl{i}:");
    });
    Item { maps, ..item(&(text + "r0 = 0\nexit\n")) }
}
