//! Functions of programs: static ones, inlined or not, and global ones.

use super::expressions::{Memory, Scope, TYPES};
use super::signature::{Function, Param};
use super::statements::Statements;
use super::tree::Node;

impl Statements<'_> {
    /// Generates a function, and its text.
    pub(super) fn function(&mut self, index: usize) -> (Function, Node) {
        let form = self.rng.u8(..8);
        let is_global = matches!(form, 0..3);
        let mut params: Vec<Param> = match form {
            0 | 3 => vec![Param::Ctx],
            1 | 4 => vec![Param::Local],
            5 => vec![Param::Value],
            6 if self.compiler.passes_structs() => vec![Param::Pair],
            _ => Vec::new(),
        };
        for _ in 0..self.rng.usize(1..4) {
            params.push(Param::Scalar(TYPES[self.rng.usize(..8)]));
        }
        let name = format!("{}{index}_{}", if is_global { "global" } else { "local" }, self.number);
        let changes = params[0] == Param::Ctx && self.rng.u8(..3) == 0;
        let mut scope = Scope {
            ctx: params[0] == Param::Ctx,
            adjusts: changes,
            maps_open: !changes,
            returns: true,
            loops: 1,
            ..Scope::default()
        };
        let mut declared = Vec::new();
        let mut head = String::new();
        for (number, param) in params.iter().enumerate() {
            declared.push(match param {
                Param::Ctx => "struct xdp_md *ctx".to_owned(),
                Param::Local => {
                    scope.locals.push("s".to_owned());
                    if is_global {
                        head = " if (!s) return 0;".to_owned();
                    }
                    "struct local *s".to_owned()
                }
                Param::Value => {
                    scope.values.push(("v".to_owned(), "val"));
                    "struct val *v".to_owned()
                }
                Param::Pair => {
                    scope.constants.extend(["pair.x".to_owned(), "pair.y".to_owned()]);
                    "struct pair pair".to_owned()
                }
                Param::Scalar(ty) => {
                    scope.vars.push(format!("a{number}"));
                    format!("{ty} a{number}")
                }
            });
        }
        scope.vars.push("r".to_owned());
        let buffer = self.rng.u8(..3) == 0;
        if buffer {
            head += " u8 buf[16] __attribute__((aligned(8))) = {};";
            scope.memory.push(Memory { base: "buf".to_owned(), len: 16, writable: true, aligned: true });
        }
        let mut body = self.many(&scope, 5);
        let result = self.expression(&scope);
        body.push(Node::Fixed(format!("return r ^ {result};")));
        let attributes = match (is_global, self.rng.u8(..5)) {
            (true, _) => "noinline ",
            (false, 0) => "static inlined ",
            (false, _) => "static noinline ",
        };
        let result = if is_global || self.rng.bool() { "int" } else { "u64" };
        let head = format!("{attributes}{result} {name}({}) {{{head} u64 r = {index};", declared.join(", "));
        (Function { name, params, changes }, Node::scope(head, body, "}"))
    }
}
