//! Expressions over the variables in scope.

use fastrand::Rng;

/// Names of the integer types.
pub(super) const TYPES: [&str; 8] = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];

/// A scalar variable, or memory that is accessible without further checks.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// Expression for its address, of type `u8 *`.
    pub(super) base: String,
    /// Size in bytes.
    pub(super) len: usize,
    /// Whether it is writable.
    pub(super) writable: bool,
    /// Whether accesses must be aligned to their size: on the stack and in maps, but not in packets.
    pub(super) aligned: bool,
}

/// Scope of an expression.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Assignable variables.
    pub(super) vars: Vec<String>,
    /// Other variables: counters, parameters.
    pub(super) constants: Vec<String>,
    /// Memory.
    pub(super) memory: Vec<Memory>,
    /// Pointers to `struct val`, each with its map.
    pub(super) values: Vec<(String, &'static str)>,
    /// Pointers to `struct local` on the stack.
    pub(super) locals: Vec<String>,
    /// Whether a context `ctx` is in scope.
    pub(super) ctx: bool,
    /// Whether packet pointers are live.
    pub(super) packet_open: bool,
    /// Whether the packet may be moved.
    pub(super) adjusts: bool,
    /// Whether map values are live, so that no element may be deleted.
    pub(super) maps_open: bool,
    /// The return statement.
    pub(super) returns: bool,
    /// Number of enclosing loops.
    pub(super) loops: u32,
}

/// Generates integer expressions.
pub(super) struct Expressions<'a> {
    pub(super) rng: &'a mut Rng,
    /// Whether the instruction set has signed division and sign-extending operations.
    pub(super) v4: bool,
}

impl Expressions<'_> {
    pub(super) fn any_type(&mut self) -> &'static str {
        TYPES[self.rng.usize(..TYPES.len())]
    }

    pub(super) fn constant(&mut self) -> String {
        match self.rng.u8(..8) {
            0..3 => self.rng.u8(..16).to_string(),
            3 => format!("{}u", 1_u32 << self.rng.u32(..32)),
            4 => format!("{:#x}ull", self.rng.u64(..) >> self.rng.u32(..64)),
            5 => format!("(-{})", self.rng.u16(1..)),
            6 => [
                "0xffffffffu",
                "0x7fffffff",
                "0x80000000u",
                "0xffull",
                "0xffffull",
                "~0ull",
                "0x8000000000000000ull",
            ][self.rng.usize(..7)]
            .to_owned(),
            _ => self.rng.u16(..).to_string(),
        }
    }

    /// A load from memory, and its size.
    pub(super) fn place(&mut self, memory: &Memory) -> (String, usize) {
        let sizes: Vec<usize> = [1, 2, 4, 8].into_iter().filter(|size| *size <= memory.len).collect();
        let size = self.rng.choice(sizes).unwrap_or(1);
        let mut at = self.rng.usize(..=memory.len - size);
        if memory.aligned {
            at -= at % size;
        }
        let signed = if self.rng.u8(..3) == 0 { 's' } else { 'u' };
        (format!("*({signed}{} *)({} + {at})", 8 * size, memory.base), size)
    }

    fn bit_field(&mut self, memory: &Memory) -> Option<String> {
        if memory.len < 8 {
            return None;
        }
        let mut at = self.rng.usize(..=memory.len - 8);
        at -= at % if memory.aligned { 4 } else { 1 };
        let field = if self.rng.bool() {
            format!(
                "((struct bits *)({} + {at}))->{}",
                memory.base,
                ["low", "high", "p", "q", "r", "s"][self.rng.usize(..6)]
            )
        } else {
            format!(
                "((struct signed_bits *)({} + {at}))->{}",
                memory.base,
                ["low", "middle", "high"][self.rng.usize(..3)]
            )
        };
        Some(field)
    }

    /// An assignable part of memory.
    pub(super) fn writable(&mut self, scope: &Scope) -> Option<String> {
        let writable: Vec<&Memory> = scope.memory.iter().filter(|memory| memory.writable).collect();
        let choices = writable.len() + scope.values.len() + scope.locals.len();
        if choices == 0 {
            return None;
        }
        let index = self.rng.usize(..choices);
        if let Some(memory) = writable.get(index) {
            return match self.rng.u8(..4) {
                0 => self.bit_field(memory).or_else(|| Some(self.place(memory).0)),
                _ => Some(self.place(memory).0),
            };
        }
        let index = index - writable.len();
        if let Some((value, _)) = scope.values.get(index) {
            return Some(format!("{value}->{}", ["a", "b", "c", "d", "e"][self.rng.usize(..5)]));
        }
        let local = scope.locals.get(index - scope.values.len())?;
        Some(format!("{local}->{}", ["a", "b", "c", "d", "e", "f", "g"][self.rng.usize(..7)]))
    }

    fn leaf(&mut self, scope: &Scope) -> String {
        for _ in 0..4 {
            let found = match self.rng.u8(..12) {
                0..4 => self.rng.choice(&scope.vars).cloned(),
                4 => self.rng.choice(&scope.constants).cloned(),
                5 | 6 => {
                    let memory = self.rng.choice(&scope.memory);
                    memory.map(|memory| match self.rng.u8(..3) {
                        0 => self.bit_field(memory).unwrap_or_else(|| self.place(memory).0),
                        _ => self.place(memory).0,
                    })
                }
                7 => {
                    let value = self.rng.choice(&scope.values);
                    value.map(|(value, _)| {
                        format!("{value}->{}", ["a", "b", "c", "d", "e"][self.rng.usize(..5)])
                    })
                }
                8 => {
                    let local = self.rng.choice(&scope.locals);
                    local.map(|local| {
                        format!("{local}->{}", ["a", "b", "c", "d", "e", "f", "g"][self.rng.usize(..7)])
                    })
                }
                9 if scope.ctx => {
                    Some(["ctx->ingress_ifindex", "ctx->rx_queue_index"][self.rng.usize(..2)].to_owned())
                }
                10 => Some(match self.rng.u8(..5) {
                    0 => format!("g64[{}]", self.rng.u8(..4)),
                    1 => format!("g32[{}]", self.rng.u8(..4)),
                    2 => format!("gs32[{}]", self.rng.u8(..2)),
                    3 => format!("g16[{}]", self.rng.u8(..4)),
                    _ => format!("c32[{}]", self.rng.u8(..4)),
                }),
                _ => Some(self.constant()),
            };
            if let Some(found) = found {
                return found;
            }
        }
        self.constant()
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &Scope) -> String {
        let (one, other) = (self.expression(scope, 1), self.expression(scope, 1));
        let cast = if self.rng.bool() { format!("({})", self.any_type()) } else { String::new() };
        match self.rng.u8(..10) {
            0 => format!("({one} & {other})"),
            1 => {
                let third = self.expression(scope, 1);
                let join = if self.rng.bool() { "&&" } else { "||" };
                format!("{cast}({one}) > {other} {join} {third}")
            }
            2 => format!("{cast}({one}) == {}", self.constant()),
            3 => format!("{cast}({one}) < {}", self.constant()),
            4 | 5 => {
                // Two loads, which native code compares with a memory operand.
                let (one, other) = (self.leaf(scope), self.leaf(scope));
                let (cast, by) = (["(s32)", "(u32)", "(s64)", ""][self.rng.usize(..4)], self.comparison());
                format!("{cast}{one} {by} {other}")
            }
            _ => {
                let by = self.comparison();
                format!("{cast}({one}) {by} ({other})")
            }
        }
    }

    fn comparison(&mut self) -> &'static str {
        ["<", "<=", ">", ">=", "==", "!="][self.rng.usize(..6)]
    }

    /// An expression of a maximum depth.
    pub(super) fn expression(&mut self, scope: &Scope, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(scope);
        }
        let one = self.expression(scope, depth - 1);
        match self.rng.u8(..16) {
            0..6 => {
                let other = self.expression(scope, depth - 1);
                format!("({one} {} {other})", ["+", "-", "*", "&", "|", "^"][self.rng.usize(..6)])
            }
            6 => {
                let (cast, by) = (self.any_type(), if self.rng.bool() { "<<" } else { ">>" });
                let bits = if cast.ends_with("64") { 63 } else { 31 };
                let other = self.leaf(scope);
                if self.rng.bool() {
                    format!("(({cast}){one} {by} ({other} & {bits}))")
                } else {
                    format!("(({cast}){one} {by} {})", self.rng.u32(..=bits))
                }
            }
            7 => self.division(&one, scope),
            8..11 => format!("(({}){one})", self.any_type()),
            11 => {
                let swap =
                    ["__builtin_bswap16", "__builtin_bswap32", "__builtin_bswap64"][self.rng.usize(..3)];
                format!("{swap}({one})")
            }
            12 => format!("({}{one})", ["-", "~", "!"][self.rng.usize(..3)]),
            13 => {
                let (yes, no) = (self.leaf(scope), self.leaf(scope));
                format!("({} ? {yes} : {no})", self.condition_of(&one))
            }
            14 => format!("({})", self.condition_of(&one)),
            _ => one,
        }
    }

    fn condition_of(&mut self, one: &str) -> String {
        format!("{one} {} {}", self.comparison(), self.constant())
    }

    fn division(&mut self, one: &str, scope: &Scope) -> String {
        let by = if self.rng.bool() { "/" } else { "%" };
        let divisor = match self.rng.u8(..3) {
            0 => self.rng.u16(1..).to_string(),
            // Division by zero returns zero, and modulo the dividend, in this instruction set. If the compiler knows that
            // the divisor is zero, it may leave any register as the result, even one with an address; therefore the divisor
            // must be unknown to it.
            1 => format!("(c32[{}] & c32[{}])", self.rng.u8(..4), self.rng.u8(..4)),
            _ => format!("({} | 1)", self.leaf(scope)),
        };
        let cast = match (self.v4, self.rng.u8(..4)) {
            (true, 0) => "s32",
            (true, 1) => "s64",
            (_, 2) => "u32",
            _ => "u64",
        };
        format!("(({cast}){one} {by} ({cast}){divisor})")
    }
}
