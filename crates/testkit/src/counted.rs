//! Random C whose lines count themselves: `K(n);` on a line of its own adds one to `C[n]`, in `.bss`, each time it runs.
//!
//! The counts that coverage gives these lines must be those of the program. Lines with a computation follow some of them: they run as
//! often, but the compiler may move and merge them.

use std::fmt::Write;

use fastrand::Rng;

/// Bytes of the packet that programs read.
pub const PACKET: usize = 64;

/// Elements of `C`.
pub const COUNTERS: usize = 512;

/// A generated program: the object's `main_prog`, which may tail call `target`.
#[derive(Clone, Debug)]
pub struct CountedProgram {
    /// The text, which includes nothing.
    pub text: String,
    /// Lines of `K(n);`, each with its `n`.
    pub lines: Vec<(u32, usize)>,
    /// Lines with a computation that run as often as the line of a counter.
    pub computations: Vec<(u32, usize)>,
}

const PRELUDE: &str = "\
typedef unsigned char u8; typedef unsigned int u32; typedef unsigned long long u64;
struct xdp_md { u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex; };
#define SEC(name) __attribute__((section(name), used))
static long (*bpf_tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*bpf_loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
char _license[] SEC(\"license\") = \"GPL\";
volatile u64 C[512];
volatile u64 S = 1;
#define K(n) C[n]++
";

const JUMPS: &str = "
struct {
	int (*type)[3];
	int (*max_entries)[2];
	int (*key_size)[4];
	int (*values[])(void *);
} jumps SEC(\".maps\") = { .values = { [1] = (void *)&target } };
";

impl CountedProgram {
    /// The program of a seed.
    #[must_use]
    pub fn generate(seed: u64) -> Self {
        let rng = Rng::with_seed(seed ^ 0x636f_756e);
        let program = Self { text: PRELUDE.to_owned(), lines: Vec::new(), computations: Vec::new() };
        let mut writer = Writer { rng, program, indent: 0, counters: 0, functions: Functions::default() };
        writer.all();
        writer.program
    }
}

/// How many functions of each kind may be called from here.
#[derive(Clone, Copy, Debug, Default)]
struct Functions {
    inlined: usize,
    own: usize,
    callbacks: usize,
}

/// Where a statement is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Statements around it.
    depth: usize,
    /// Whether a loop is around it, in the same function.
    in_loop: bool,
    /// Loops around it, those of other functions not included.
    loops: usize,
    /// Whether a packet is there, as `d`; otherwise only a number, `x`.
    has_packet: bool,
    /// What `return` returns.
    returns: &'static str,
}

struct Writer {
    rng: Rng,
    program: CountedProgram,
    indent: usize,
    counters: usize,
    functions: Functions,
}

impl Writer {
    fn all(&mut self) {
        let target = Place { depth: 2, in_loop: false, loops: 1, has_packet: false, returns: "return 2;" };
        self.function(
            "SEC(\"xdp\") int target(struct xdp_md *ctx)",
            &["u32 x = ctx->rx_queue_index;"],
            target,
        );
        self.program.text += JUMPS;
        let small = Place { depth: 3, in_loop: false, loops: 1, has_packet: false, returns: "return x + 3;" };
        for number in 0..self.rng.usize(1..4) {
            let head = format!("static __attribute__((noinline)) u32 own{number}(u32 x)");
            self.function(&head, &[], small);
            self.functions.own = number + 1;
        }
        for number in 0..self.rng.usize(1..4) {
            let head = format!("static __attribute__((always_inline)) u32 inlined{number}(u8 *d, u32 x)");
            self.function(&head, &[], Place { has_packet: true, ..small });
            self.functions.inlined = number + 1;
        }
        for number in 0..self.rng.usize(1..3) {
            let head = format!("static long callback{number}(u32 x, void *unused)");
            let ends = if self.rng.bool() { "return 0;" } else { "return x == 3;" };
            self.function(&head, &[], Place { returns: ends, ..small });
            self.functions.callbacks = number + 1;
        }
        let start = [
            "u8 *d = (void *)(long)ctx->data, *e = (void *)(long)ctx->data_end;",
            "u32 x = 7;",
            "if (d + 64 > e)",
            "\treturn 1;",
        ];
        let main =
            Place { depth: 0, in_loop: false, loops: 0, has_packet: true, returns: "return x & 1 ? 1 : 2;" };
        self.function("SEC(\"xdp\") int main_prog(struct xdp_md *ctx)", &start, main);
    }

    fn line(&mut self, text: &str) -> u32 {
        let number = self.program.text.lines().count() as u32 + 1;
        let indent = "\t".repeat(self.indent);
        // Memory takes it.
        let _ = writeln!(self.program.text, "{indent}{text}");
        number
    }

    fn function(&mut self, head: &str, start: &[&str], place: Place) {
        self.line(head);
        self.line("{");
        self.indent += 1;
        for line in start {
            self.line(line);
        }
        self.count(place);
        let most = if place.depth == 0 { 7 } else { 3 };
        for _ in 0..self.rng.usize(1..=most) {
            self.statement(place);
        }
        if place.depth == 0 {
            self.tail_call(place);
        }
        self.line("S += x;");
        self.line(place.returns);
        self.indent -= 1;
        self.line("}");
    }

    /// A counter, and perhaps a computation that runs as often.
    fn count(&mut self, place: Place) {
        if self.counters == COUNTERS {
            return;
        }
        let counter = self.counters;
        self.counters += 1;
        let line = self.line(&format!("K({counter});"));
        self.program.lines.push((line, counter));
        if self.rng.u8(..3) == 0 {
            let value = self.value(place);
            let text = match self.rng.u8(..3) {
                0 => format!("x = x * {} + {value};", self.rng.u32(3..99)),
                1 => format!("x ^= {value} + {};", self.rng.u32(1..99)),
                _ => "x += bpf_ktime_get_ns();".to_owned(),
            };
            let line = self.line(&text);
            self.program.computations.push((line, counter));
        }
    }

    fn value(&mut self, place: Place) -> String {
        match self.rng.usize(..PACKET / 4) {
            at if place.has_packet => format!("d[{at}]"),
            at => format!("(x >> {})", at & 7),
        }
    }

    fn condition(&mut self, place: Place) -> String {
        let (a, b) = (self.value(place), self.value(place));
        let (m, n) = (self.rng.u8(1..8), self.rng.u8(..5));
        match self.rng.u8(..6) {
            0 => format!("{a} & {m}"),
            1 => format!("{a} > {n}"),
            2 => format!("{a} == {n} || {b} == {m}"),
            3 => format!("{a} && {b} != {n}"),
            4 => format!("{a} < {b}"),
            _ => format!("!({a} & {m})"),
        }
    }

    fn block(&mut self, place: Place) {
        self.indent += 1;
        let place = Place { depth: place.depth + 1, ..place };
        self.count(place);
        for _ in 0..self.rng.usize(..3) {
            self.statement(place);
        }
        self.indent -= 1;
    }

    fn statement(&mut self, place: Place) {
        if place.depth > 4 || self.counters + 8 > COUNTERS {
            return self.count(place);
        }
        let inner = Place { in_loop: true, loops: place.loops + 1, ..place };
        match self.rng.u8(..12) {
            0 | 1 => {
                let condition = self.condition(place);
                self.line(&format!("if ({condition}) {{"));
                self.block(place);
                if self.rng.bool() {
                    self.line("} else {");
                    self.block(place);
                }
                self.line("}");
            }
            2 if place.loops < 2 => {
                let count = self.rng.u8(2..6);
                self.line(&format!("for (int i = 0; i < {count}; i++) {{"));
                self.block(inner);
                self.line("}");
            }
            3 if place.loops < 2 => {
                let value = self.value(place);
                self.line(&format!("for (u32 i = 0, n = {value} & 7; i < n; i++) {{"));
                self.block(inner);
                self.line("}");
            }
            4 if place.loops < 2 => {
                let value = self.value(place);
                self.line(&format!("for (u32 w = {value} & 7; w; w >>= 1) {{"));
                self.block(inner);
                self.line("}");
            }
            5 => self.switch(place),
            6 if place.in_loop => {
                let condition = self.condition(place);
                let leaves = if self.rng.bool() { "break" } else { "continue" };
                self.line(&format!("if ({condition}) {{"));
                self.indent += 1;
                self.count(place);
                self.line(&format!("{leaves};"));
                self.indent -= 1;
                self.line("}");
            }
            7 if self.rng.bool() => {
                let condition = self.condition(place);
                self.line(&format!("if ({condition}) {{"));
                self.indent += 1;
                self.count(place);
                self.line(place.returns);
                self.indent -= 1;
                self.line("}");
            }
            8 | 9 if place.has_packet && self.functions.inlined > 0 => {
                let (function, at) = (self.rng.usize(..self.functions.inlined), self.rng.usize(..16));
                let value = self.value(place);
                self.line(&format!("x += inlined{function}(d + {at}, {value});"));
            }
            10 if self.functions.own > 0 => {
                let (function, value) = (self.rng.usize(..self.functions.own), self.value(place));
                self.line(&format!("x += own{function}({value});"));
            }
            11 if self.functions.callbacks > 0 => {
                let (function, value) = (self.rng.usize(..self.functions.callbacks), self.value(place));
                self.line(&format!("bpf_loop({value} & 7, callback{function}, (void *)0, 0);"));
            }
            _ => self.count(place),
        }
    }

    fn switch(&mut self, place: Place) {
        let value = self.value(place);
        self.line(&format!("switch ({value} & 7) {{"));
        for case in 0..self.rng.u8(2..5) {
            self.line(&format!("case {}:", case * 2 % 7));
            self.indent += 1;
            self.count(Place { depth: place.depth + 1, ..place });
            if self.rng.u8(..3) > 0 {
                self.line("break;");
            }
            self.indent -= 1;
        }
        self.line("default:");
        self.indent += 1;
        self.count(place);
        self.indent -= 1;
        self.line("}");
    }

    fn tail_call(&mut self, place: Place) {
        let condition = self.condition(place);
        self.line(&format!("if ({condition}) {{"));
        self.indent += 1;
        self.count(place);
        self.line("bpf_tail_call(ctx, &jumps, d[1] & 1);");
        self.count(place);
        self.indent -= 1;
        self.line("}");
    }
}
