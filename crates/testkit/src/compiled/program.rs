//! A generated program.

use fastrand::Rng;

use super::compiler::Compiler;
use super::expressions::{Memory, Scope, TYPES};
use super::statements::Statements;
use super::tree::{Node, render};

/// Declarations at the start of every unit.
pub const PRELUDE: &str = include_str!("prelude.h");

/// Programs per unit, enough to amortize the start of the compiler.
pub const PROGRAMS: u64 = 24;

/// A generated program.
#[derive(Clone, Debug)]
pub struct CProgram {
    /// Its number, which is its seed.
    pub number: u64,
    /// Its functions.
    pub nodes: Vec<Node>,
}

impl CProgram {
    /// The program of a number, for a compiler.
    #[must_use]
    pub fn generate(number: u64, compiler: Compiler) -> Self {
        let mut rng = Rng::with_seed(number ^ 0x6363_6363);
        let (mut names, mut nodes) = (0, Vec::new());
        let mut functions = Vec::new();
        for index in 0..rng.usize(..4) {
            let mut callbacks = Vec::new();
            let mut statements = Statements {
                rng: &mut rng,
                compiler,
                functions: &functions.clone(),
                number,
                names: &mut names,
                callbacks: &mut callbacks,
                budget: 8,
            };
            let (function, node) = statements.function(index);
            nodes.extend(callbacks);
            nodes.push(node);
            functions.push(function);
        }
        let mut callbacks = Vec::new();
        let budget = rng.u32(8..30);
        let mut statements = Statements {
            rng: &mut rng,
            compiler,
            functions: &functions,
            number,
            names: &mut names,
            callbacks: &mut callbacks,
            budget,
        };
        let main = statements.main();
        nodes.extend(callbacks);
        nodes.push(main);
        Self { number, nodes }
    }

    /// The name of its function.
    #[must_use]
    pub fn name(&self) -> String {
        format!("prog_{}", self.number)
    }
}

/// The text of a unit.
#[must_use]
pub fn unit_text<'a>(programs: impl IntoIterator<Item = &'a CProgram>) -> String {
    let mut text = PRELUDE.to_owned();
    for program in programs {
        text.push('\n');
        text.push_str(&render(&program.nodes));
    }
    text
}

impl Statements<'_> {
    pub(super) fn main(&mut self) -> Node {
        let mut scope = Scope { ctx: true, adjusts: true, returns: true, ..Scope::default() };
        let mut body = Vec::new();
        let mut names = Vec::new();
        for index in 0..self.rng.usize(3..12) {
            let (name, ty) = (format!("w{index}"), TYPES[self.rng.usize(..TYPES.len())]);
            let start = self.expression(&scope);
            body.push(Node::Fixed(format!("{ty} {name} = {start};")));
            scope.vars.push(name.clone());
            names.push(name);
        }
        if self.rng.bool() {
            let len = [16, 24, 32, 48][self.rng.usize(..4)];
            let start = self.rng.u8(..);
            body.push(Node::Fixed(format!(
                "u8 buf[{len}] __attribute__((aligned(8))); __builtin_memset(buf, {start}, {len});"
            )));
            scope.memory.push(Memory { base: "buf".to_owned(), len, writable: true, aligned: true });
        }
        if self.rng.bool() {
            let start = self.expression(&scope);
            body.push(Node::Fixed(format!("struct local here = {{ .a = {start}, .c = -3, .e = 200 }};")));
            scope.locals.push("(&here)".to_owned());
        }
        scope.memory.push(Memory { base: "g8".to_owned(), len: 16, writable: true, aligned: true });
        for _ in 0..4 {
            body.extend(self.many(&scope, 8));
        }
        // All values are used at the end, so that they stay live across everything before.
        for (index, name) in names.iter().enumerate() {
            let (by, place) = (["^=", "+="][self.rng.usize(..2)], index % 4);
            body.push(Node::Line(format!("g64[{place}] {by} {name};")));
        }
        if !scope.locals.is_empty() {
            body.push(Node::Line("g64[1] += here.a ^ here.b ^ here.c ^ here.d ^ here.g;".to_owned()));
        }
        let verdict = match self.rng.u8(..4) {
            0 => format!("return (u32)({}) % 5;", names.join(" ^ ")),
            1 => format!("return {} & 1 ? 2 : 3;", names[0]),
            2 => "return bpf_redirect(ctx->ingress_ifindex + g8[0], 0);".to_owned(),
            _ => format!("return ({}) & 3;", names.join(" + ")),
        };
        body.push(Node::Fixed(verdict));
        let head = format!("SEC(\"xdp\") int prog_{}(struct xdp_md *ctx) {{", self.number);
        Node::scope(head, body, "}")
    }
}
