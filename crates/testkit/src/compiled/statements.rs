//! Statements.

use super::compiler::Compiler;
use super::expressions::{Expressions, Memory, Scope};
use super::maps::{KeyForm, TABLES, Table};
use super::signature::{Function, Param};
use super::tree::Node;
use fastrand::Rng;

/// Generates the statements of one program.
pub(super) struct Statements<'a> {
    pub(super) rng: &'a mut Rng,
    pub(super) compiler: Compiler,
    /// Callable functions.
    pub(super) functions: &'a [Function],
    /// Number of the program, which makes its names unique.
    pub(super) number: u64,
    /// Number of names so far.
    pub(super) names: &'a mut u32,
    /// Callbacks of `bpf_loop` and similar helpers, generated on demand.
    pub(super) callbacks: &'a mut Vec<Node>,
    /// Remaining budget of statements.
    pub(super) budget: u32,
}

impl Statements<'_> {
    pub(super) fn expressions(&mut self) -> Expressions<'_> {
        Expressions { rng: self.rng, v4: self.compiler.cpu >= 4 }
    }

    fn name(&mut self, kind: &str) -> String {
        *self.names += 1;
        format!("{kind}{}", self.names)
    }

    pub(super) fn expression(&mut self, scope: &Scope) -> String {
        let depth = self.rng.u32(1..3);
        self.expressions().expression(scope, depth)
    }

    /// This number of statements, or fewer if the budget ends.
    pub(super) fn many(&mut self, scope: &Scope, most: u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..self.rng.u32(1..=most) {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            nodes.extend(self.one(scope));
        }
        nodes
    }

    fn one(&mut self, scope: &Scope) -> Vec<Node> {
        for _ in 0..8 {
            let made = match self.rng.u8(..46) {
                0..5 => self.assign(scope),
                5..8 => self.store(scope),
                8..12 => Some(self.branch(scope)),
                12..16 if scope.ctx && !scope.packet_open => Some(self.packet(scope)),
                16 | 17 if scope.ctx && !scope.packet_open => Some(self.layers(scope)),
                18..23 => Some(self.look_up(scope)),
                23 | 24 if !scope.maps_open => Some(self.update(scope)),
                25 | 26 => self.atomic(scope),
                27 | 28 if scope.loops < 2 => Some(self.counted_loop(scope)),
                29 | 30 => self.clobber(scope),
                31..35 => self.call(scope),
                35 => self.switch(scope),
                36 | 37 => self.copy(scope),
                38 if scope.ctx && scope.adjusts && !scope.packet_open => self.adjust(scope),
                39 if scope.loops == 0 => Some(self.callback_loop(scope)),
                40 if scope.loops == 0 && !scope.maps_open => Some(self.for_each(scope)),
                41 => self.checksum(scope),
                42 | 43 => self.assembly(scope),
                44 if scope.ctx && scope.adjusts && !scope.packet_open => self.bytes_of_packet(scope),
                45 if scope.returns => Some(vec![self.early_return(scope)]),
                _ => None,
            };
            if let Some(made) = made {
                return made;
            }
        }
        Vec::new()
    }

    fn variable(&mut self, scope: &Scope) -> Option<String> {
        self.rng.choice(&scope.vars).cloned()
    }

    fn memory(&mut self, scope: &Scope, wanted: impl Fn(&Memory) -> bool) -> Option<Memory> {
        let found: Vec<&Memory> = scope.memory.iter().filter(|memory| wanted(memory)).collect();
        self.rng.choice(found).cloned()
    }

    fn assign(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let (to, value) = (self.variable(scope)?, self.expression(scope));
        let by = ["=", "+=", "-=", "^=", "|=", "*=", "&="][self.rng.usize(..7)];
        Some(vec![Node::Line(format!("{to} {by} {value};"))])
    }

    fn store(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let value = self.expression(scope);
        let to = self.expressions().writable(scope)?;
        let by = ["=", "=", "+=", "^="][self.rng.usize(..4)];
        Some(vec![Node::Line(format!("{to} {by} {value};"))])
    }

    fn branch(&mut self, scope: &Scope) -> Vec<Node> {
        let condition = self.expressions().condition(scope);
        let head = match self.rng.u8(..6) {
            0 => format!("if (__builtin_expect({condition}, 0)) {{"),
            _ => format!("if ({condition}) {{"),
        };
        let mut parts = vec![(head, self.many(scope, 3))];
        if self.rng.u8(..3) == 0 {
            parts.push(("} else {".to_owned(), self.many(scope, 2)));
        }
        vec![Node::Block { parts, tail: "}".to_owned(), unwraps: true }]
    }

    fn early_return(&mut self, scope: &Scope) -> Node {
        let (condition, verdict) = (self.expressions().condition(scope), self.rng.u8(..5));
        Node::Line(format!("if ({condition}) return {verdict};"))
    }

    /// Reads bytes of the packet after a bounds check.
    fn packet(&mut self, scope: &Scope) -> Vec<Node> {
        let (start, end) = (self.name("p"), self.name("e"));
        let len = [1, 2, 6, 12, 14, 14, 20, 34, 40, 54, 64][self.rng.usize(..11)];
        let check = match self.rng.u8(..2) {
            0 => format!("if (!({start} + {len} > {end})) {{"),
            _ => format!("if ({start} + {len} <= {end}) {{"),
        };
        let mut inner = Scope { packet_open: true, ..scope.clone() };
        inner.memory.push(Memory { base: start.clone(), len, writable: true, aligned: false });
        let body = vec![Node::block(check, self.many(&inner, 6))];
        let head = format!("{{ u8 *{start} = (void *)(long)ctx->data, *{end} = (void *)(long)ctx->data_end;");
        vec![Node::scope(head, body, "}")]
    }

    /// Parses consecutive headers, at offsets that the packet determines.
    fn layers(&mut self, scope: &Scope) -> Vec<Node> {
        let (start, end, at, kind) = (self.name("p"), self.name("e"), self.name("o"), self.name("t"));
        let mut body = Vec::new();
        if self.rng.bool() {
            let tag = format!(
                "for (int i = 0; i < {}; i++) {{ if ({kind} != 0x81 && {kind} != 0xa888) break; if ({start} + {at} + 4 > {end}) break; {kind} = *(u16 *)({start} + {at} + 2); {at} += 4; }}",
                self.rng.u8(1..4)
            );
            body.push(Node::Line(tag));
        }
        let mut inner = Scope { packet_open: true, ..scope.clone() };
        let (network, transport) = (self.name("n"), self.name("l"));
        let mut memory = |base: &String, len| {
            inner.memory.push(Memory { base: base.clone(), len, writable: true, aligned: false });
        };
        if self.rng.bool() {
            memory(&network, 20);
            memory(&transport, 8);
            let mut rest = Vec::new();
            if self.rng.bool()
                && let Some(found) = self.variable(scope)
            {
                let (option, length) = (self.name("q"), self.name("k"));
                rest.push(Node::Line(format!(
                    "{{ u8 *{option} = {network} + 20; for (int i = 0; i < {}; i++) {{ if ({option} + 2 > {end} || {option} >= {transport}) break; if ({option}[0] == 0) break; u32 {length} = {option}[0] == 1 ? 1 : {option}[1]; if ({length} == 0) break; {found} ^= {option}[0] + {length}; {option} += {length}; }} }}",
                    self.rng.u8(1..6)
                )));
            }
            rest.extend(self.many(&inner, 4));
            let head = format!(
                "if ({kind} == 8 && {start} + {at} + 20 <= {end}) {{ u8 *{network} = {start} + {at}; u32 h = ({network}[0] & 15) * 4; u8 *{transport} = {network} + h; if (h >= 20 && {transport} + 8 <= {end}) {{"
            );
            body.push(Node::scope(head, rest, "} }"));
        } else {
            memory(&network, 40);
            let head = format!(
                "if ({kind} == 0xdd86 && {start} + {at} + 40 <= {end}) {{ u8 *{network} = {start} + {at};"
            );
            body.push(Node::scope(head, self.many(&inner, 4), "}"));
        }
        let head = format!(
            "{{ u8 *{start} = (void *)(long)ctx->data, *{end} = (void *)(long)ctx->data_end; u32 {at} = 14; if ({start} + 14 <= {end}) {{ u16 {kind} = *(u16 *)({start} + 12);"
        );
        vec![Node::scope(head, body, "} }")]
    }

    /// A declaration of a key, and an expression for its address.
    fn key(&mut self, table: &Table, scope: &Scope) -> (String, String) {
        let key = self.name("k");
        let value = self.expression(scope);
        let text = match table.key {
            KeyForm::Small(below) if self.rng.bool() => format!("u32 {key} = (u32)({value}) % {below};"),
            KeyForm::Small(below) => format!("u32 {key} = {value} & {};", below.next_power_of_two() - 1),
            KeyForm::Long => format!("u64 {key} = {value} & 15;"),
            KeyForm::Struct => {
                let (b, c) = (self.expression(scope), self.rng.u8(..3));
                format!("struct key {key} = {{ .a = {value} & 3, .b = {b} & 1, .c = {c} }};")
            }
            KeyForm::Prefix => {
                let bits = ["32", "8", "16", "24", "0"][self.rng.usize(..5)];
                format!("struct prefix {key} = {{ {bits}, {value} }};")
            }
        };
        let address = format!("&{key}");
        (text, address)
    }

    fn table(&mut self, wanted: impl Fn(&Table) -> bool) -> Table {
        loop {
            let table = TABLES[self.rng.usize(..TABLES.len())];
            if wanted(&table) {
                return table;
            }
        }
    }

    fn look_up(&mut self, scope: &Scope) -> Vec<Node> {
        let value = self.name("v");
        let mut inner = Scope { maps_open: true, ..scope.clone() };
        if self.rng.u8(..8) == 0 {
            let key = self.name("k");
            inner.memory.push(Memory {
                base: format!("(u8 *){value}->w"),
                len: 64,
                writable: true,
                aligned: true,
            });
            let index = self.expression(scope);
            let head = format!(
                "{{ u32 {key} = {index} & 3; struct wide *{value} = bpf_map_lookup_elem(&m_wide, &{key}); if ({value}) {{"
            );
            return vec![Node::scope(head, self.many(&inner, 5), "} }")];
        }
        inner.values.push((value.clone(), "val"));
        if self.rng.u8(..8) == 0 {
            let (key, map) = (self.name("k"), self.name("m"));
            let (index, second) = (self.expression(scope), self.expression(scope));
            let head = format!(
                "{{ u32 {key} = {index} & 3; void *{map} = bpf_map_lookup_elem(&m_outer, &{key}); if ({map}) {{ {key} = {second} & 3; struct val *{value} = bpf_map_lookup_elem({map}, &{key}); if ({value}) {{"
            );
            return vec![Node::scope(head, self.many(&inner, 5), "} } }")];
        }
        let table = self.table(|_| true);
        if let Some(nodes) = self.stored_key(scope, &table, &value, &inner) {
            return nodes;
        }
        let (declared, key) = self.key(&table, scope);
        let head = format!(
            "{{ {declared} struct val *{value} = bpf_map_lookup_elem(&{}, {key}); if ({value}) {{",
            table.name
        );
        vec![Node::scope(head, self.many(&inner, 6), "} }")]
    }

    /// A look-up whose key is stored from a register that is overwritten before the call.
    fn stored_key(&mut self, scope: &Scope, table: &Table, value: &str, inner: &Scope) -> Option<Vec<Node>> {
        let KeyForm::Small(below) = table.key else { return None };
        if self.rng.u8(..5) != 0 {
            return None;
        }
        let (key, number) = (self.name("k"), self.name("x"));
        let (first, second, sum) = (self.expression(scope), self.expression(scope), self.variable(scope)?);
        let mask = below.next_power_of_two() - 1;
        let change = ["%0 = %1", "%0 += %1", "%0 = 0", "%0 ^= %1"][self.rng.usize(..4)];
        let head = format!(
            "{{ u32 {key}; u64 {number} = {first} & {mask}, y = {second}; asm volatile(\"\" : \"+r\"({number}), \"+r\"(y)); *(volatile u32 *)&{key} = {number}; asm volatile(\"{change}\" : \"+r\"({number}) : \"r\"(y)); struct val *{value} = bpf_map_lookup_elem(&{}, &{key}); {sum} += {number}; if ({value}) {{",
            table.name
        );
        Some(vec![Node::scope(head, self.many(inner, 4), "} }")])
    }

    fn update(&mut self, scope: &Scope) -> Vec<Node> {
        let table = self.table(|_| true);
        let (declared, key) = self.key(&table, scope);
        let result = self.variable(scope);
        let keep = |call: String| match &result {
            Some(result) => format!("{{ {declared} {result} += {call}; }}"),
            None => format!("{{ {declared} {call}; }}"),
        };
        if table.keyed && self.rng.u8(..3) == 0 {
            return vec![Node::Line(keep(format!("bpf_map_delete_elem(&{}, {key})", table.name)))];
        }
        let (a, b, c) = (self.expression(scope), self.expression(scope), self.expression(scope));
        let (value, flags) = (self.name("n"), self.rng.u8(..3));
        let line = keep(format!("bpf_map_update_elem(&{}, {key}, &{value}, {flags})", table.name));
        vec![Node::Line(format!("{{ struct val {value} = {{ {a}, {b}, {c}, 1, 2 }}; {line} }}"))]
    }

    fn atomic(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let wide = self.rng.bool();
        let place = match (self.rng.choice(&scope.values), wide) {
            (Some((value, _)), true) => format!("{value}->a"),
            (Some((value, _)), false) => format!("{value}->b"),
            (None, true) => format!("g64[{}]", self.rng.u8(..4)),
            (None, false) => format!("g32[{}]", self.rng.u8(..4)),
        };
        let (value, result) = (self.expression(scope), self.variable(scope)?);
        // Instruction sets before v3 only have the addition without fetch.
        if self.compiler.cpu < 3 || self.rng.u8(..3) == 0 {
            // The compiler replaces an addition of zero by another operation.
            return Some(vec![Node::Line(format!("__sync_fetch_and_add(&{place}, {value} | 1);"))]);
        }
        let text = match self.rng.u8(..6) {
            0 => format!("{result} += __sync_fetch_and_add(&{place}, {value});"),
            1 => format!("{result} ^= __sync_fetch_and_and(&{place}, {value});"),
            2 => format!("{result} += __sync_fetch_and_or(&{place}, {value});"),
            3 => format!("{result} -= __sync_fetch_and_xor(&{place}, {value});"),
            4 => format!("{result} = __sync_lock_test_and_set(&{place}, {value});"),
            _ => {
                let other = self.expression(scope);
                format!("{result} = __sync_val_compare_and_swap(&{place}, {other}, {value});")
            }
        };
        Some(vec![Node::Line(text)])
    }

    fn counted_loop(&mut self, scope: &Scope) -> Vec<Node> {
        let counter = self.name("i");
        let mut inner = Scope { loops: scope.loops + 1, ..scope.clone() };
        inner.constants.push(counter.clone());
        let pragma = match self.rng.u8(..3) {
            0 => "_Pragma(\"clang loop unroll(full)\") ",
            1 => "_Pragma(\"clang loop unroll(disable)\") ",
            _ => "",
        };
        let rounds = self.rng.u8(2..7);
        let head = match self.rng.u8(..3) {
            0 => format!("{pragma}for (u32 {counter} = {rounds}; {counter} > 0; {counter}--) {{"),
            _ => format!("{pragma}for (int {counter} = 0; {counter} < {rounds}; {counter}++) {{"),
        };
        let mut body = self.many(&inner, 2);
        if self.rng.u8(..3) == 0 {
            let condition = self.expressions().condition(&inner);
            body.push(Node::Line(format!("if ({condition}) break;")));
        }
        vec![Node::scope(head, body, "}")]
    }

    /// A call whose only effect is on registers.
    fn clobber(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let text = match self.rng.u8(..5) {
            0 | 1 => "bpf_ktime_get_ns();".to_owned(),
            2 => "bpf_get_prandom_u32();".to_owned(),
            3 => format!("{} += bpf_get_smp_processor_id();", self.variable(scope)?),
            _ if scope.ctx => format!("{} += bpf_xdp_get_buff_len(ctx);", self.variable(scope)?),
            _ => return None,
        };
        Some(vec![Node::Line(text)])
    }

    fn call(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let functions = self.functions;
        let may_call = |function: &&Function| {
            let changes = function.changes && (scope.packet_open || scope.maps_open || !scope.adjusts);
            let has = |param: &Param| match param {
                Param::Ctx => scope.ctx,
                Param::Local => !scope.locals.is_empty(),
                Param::Value => !scope.values.is_empty(),
                Param::Pair | Param::Scalar(_) => true,
            };
            !changes && function.params.iter().all(has)
        };
        let callable: Vec<&Function> = functions.iter().filter(may_call).collect();
        let function = *self.rng.choice(&callable)?;
        let result = self.variable(scope)?;
        let mut arguments = Vec::new();
        for param in &function.params {
            arguments.push(match param {
                Param::Ctx => "ctx".to_owned(),
                Param::Local => self.rng.choice(&scope.locals)?.clone(),
                Param::Value => self.rng.choice(&scope.values)?.0.clone(),
                Param::Pair => {
                    let (x, y) = (self.expression(scope), self.expression(scope));
                    format!("(struct pair){{ {x}, {y} }}")
                }
                Param::Scalar(_) => self.expression(scope),
            });
        }
        let by = ["=", "+=", "^="][self.rng.usize(..3)];
        Some(vec![Node::Line(format!("{result} {by} {}({});", function.name, arguments.join(", ")))])
    }

    fn switch(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let (value, to) = (self.expression(scope), self.variable(scope)?);
        let mask = [3, 7, 15, 255][self.rng.usize(..4)];
        let mut parts = vec![(format!("switch ({value} & {mask}) {{"), Vec::new())];
        for case in 0..self.rng.u8(3..8) {
            let mut body = if self.rng.u8(..3) == 0 { self.many(scope, 1) } else { Vec::new() };
            let assigned = self.expression(scope);
            body.push(Node::Line(format!("{to} ^= {assigned};")));
            if self.rng.u8(..4) != 0 {
                body.push(Node::Line("break;".to_owned()));
            }
            parts.push((format!("case {}:;", u32::from(case) * (1 + u32::from(mask > 7))), body));
        }
        if self.rng.bool() {
            parts.push(("default:;".to_owned(), vec![Node::Line(format!("{to} += 9;"))]));
        }
        Some(vec![Node::Block { parts, tail: "}".to_owned(), unwraps: false }])
    }

    /// `memcpy` and `memset` of random sizes, and a run-time index.
    fn copy(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let to = self.memory(scope, |memory| memory.writable)?;
        let from = self.rng.choice(&scope.memory)?.clone();
        let len = self.rng.usize(1..=to.len.min(from.len).min(33));
        let align = |at: usize, memory: &Memory| if memory.aligned { at - at % 8 } else { at };
        let (at, source) = (self.rng.usize(..=to.len - len), self.rng.usize(..=from.len - len));
        let (at, source) = (align(at, &to), align(source, &from));
        let text = match self.rng.u8(..4) {
            0 => format!("__builtin_memset({} + {at}, {}, {len});", to.base, self.rng.u8(..)),
            1 if to.aligned && to.len >= 16 => {
                let (index, value) = (self.expression(scope), self.expression(scope));
                format!("({})[{index} & 15] = {value};", to.base)
            }
            2 if from.aligned && from.len >= 16 => {
                let (index, result) = (self.expression(scope), self.variable(scope)?);
                format!("{result} ^= ({})[{index} & 15];", from.base)
            }
            _ => {
                // Between two different buffers, which do not overlap.
                if to.base == from.base {
                    return None;
                }
                format!("__builtin_memcpy({} + {at}, {} + {source}, {len});", to.base, from.base)
            }
        };
        Some(vec![Node::Line(text)])
    }

    fn adjust(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let result = self.variable(scope)?;
        let by = match self.rng.u8(..3) {
            0 => self.expression(scope) + " & 31",
            _ => self.rng.i8(-40..40).to_string(),
        };
        let end = ["head", "tail", "meta"][self.rng.usize(..3)];
        let mut text = format!("{result} += bpf_xdp_adjust_{end}(ctx, {by});");
        if end == "meta" {
            let (data, meta) = (self.name("d"), self.name("m"));
            let value = self.expression(scope);
            let delta = -4 * self.rng.i8(1..9);
            text = format!(
                "if (!bpf_xdp_adjust_meta(ctx, {delta})) {{ u32 *{meta} = (void *)(long)ctx->data_meta; void *{data} = (void *)(long)ctx->data; if ((void *)({meta} + 1) <= {data}) *{meta} = {value}; }}"
            );
        }
        Some(vec![Node::Line(text)])
    }

    /// The name of a function that is called with a pointer to `struct local`, and its parameters.
    fn callback(&mut self, parameters: &str, value: bool) -> String {
        let name = format!("{}_{}", self.name("cb"), self.number);
        let mut scope = Scope { loops: 2, maps_open: true, packet_open: true, ..Scope::default() };
        scope.locals.push("x".to_owned());
        scope.constants.push(if value { "*key".to_owned() } else { "index".to_owned() });
        if value {
            scope.values.push(("value".to_owned(), "val"));
        }
        scope.vars = ["x->a", "x->b", "x->c", "x->g"].map(str::to_owned).to_vec();
        let mut body = self.many(&scope, 3);
        let stop = self.expressions().condition(&scope);
        body.push(Node::Fixed(if self.rng.bool() {
            format!("return {stop};")
        } else {
            "return 0;".to_owned()
        }));
        let head = format!("static long {name}({parameters}) {{ struct local *x = context;");
        self.callbacks.push(Node::scope(head, body, "}"));
        name
    }

    fn callback_loop(&mut self, scope: &Scope) -> Vec<Node> {
        let name = self.callback("u32 index, void *context", false);
        let (local, count) = (self.name("x"), self.rng.u8(1..9));
        self.with_local(scope, &local, &format!("bpf_loop({count}, {name}, &{local}, 0)"))
    }

    fn for_each(&mut self, scope: &Scope) -> Vec<Node> {
        let name = self.callback("void *map, const u32 *key, struct val *value, void *context", true);
        // In other maps the order of elements differs from the kernel's.
        let map = ["m_array", "m_cpu_array"][self.rng.usize(..2)];
        let local = self.name("x");
        self.with_local(scope, &local, &format!("bpf_for_each_map_elem(&{map}, {name}, &{local}, 0)"))
    }

    fn with_local(&mut self, scope: &Scope, local: &str, call: &str) -> Vec<Node> {
        let start = self.expression(scope);
        let to = self.variable(scope).unwrap_or_else(|| "g64[0]".to_owned());
        let line = format!(
            "{{ struct local {local} = {{ .a = {start}, .b = 1, .c = -1 }}; {to} += {call}; {to} ^= {local}.a + {local}.b + {local}.c; }}"
        );
        vec![Node::Line(line)]
    }

    fn checksum(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let memory = self.memory(scope, |memory| memory.len >= 4)?;
        let (seed, result) = (self.expression(scope), self.variable(scope)?);
        let len = 4 * self.rng.usize(1..=(memory.len / 4).min(10));
        let call = match self.rng.bool() {
            true => format!("bpf_csum_diff(0, 0, (u32 *)({}), {len}, {seed})", memory.base),
            false => {
                format!("bpf_csum_diff((u32 *)({}), 4, (u32 *)({}), {len}, {seed})", memory.base, memory.base)
            }
        };
        Some(vec![Node::Line(format!("{result} += {call};"))])
    }

    /// Forms that compilers rarely emit.
    fn assembly(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let (x, value, other) = (self.name("x"), self.expression(scope), self.expression(scope));
        let result = self.variable(scope)?;
        let stack = scope.memory.iter().find(|memory| memory.aligned && memory.writable && memory.len >= 16);
        let number = self.rng.i16(..);
        let mut text = match self.rng.u8(..10) {
            0 => "%0 = -%0".to_owned(),
            1 if self.compiler.reads_jset() => format!("if %0 & {number} goto +1\\n%0 += 3"),
            2 => "r1 = %0\\nw1 = w1\\nw1 += w1\\n%0 = r1".to_owned(),
            3 => format!("r1 = {number}\\nif r1 s> %0 goto +1\\n%0 ^= %1"),
            4 => "%0 = be16 %0".to_owned(),
            5 => "%0 = be32 %0\\n%0 = le16 %0".to_owned(),
            6 => "r1 = %1\\nif w1 s< 5 goto +1\\n%0 += r1\\nw1 s>>= 3\\n%0 ^= r1".to_owned(),
            7 => "r1 = %1\\nr1 <<= 48\\nr1 s>>= 48\\n%0 += r1".to_owned(),
            8 => "%0 *= %1\\n%0 >>= 32".to_owned(),
            _ => "if %0 == %1 goto +1\\n%0 = %1\\nif %0 != 0 goto +1\\n%0 = 1".to_owned(),
        };
        let mut input = String::new();
        if let Some(stack) = stack
            && self.rng.bool()
        {
            // Overlapping stores, read back in other sizes.
            let (at, wide) = (self.rng.u8(..8), ["u16", "u32", "u64"][self.rng.usize(..3)]);
            let at = at - at % if wide == "u64" { 8 } else { 4 };
            text = format!(
                "*(u64 *)(%2 + 0) = %0\\n*(u64 *)(%2 + 8) = %1\\n*({} *)(%2 + {}) = %1\\n%0 = *({wide} *)(%2 + {at})",
                ["u8", "u16", "u32"][self.rng.usize(..3)],
                4 * self.rng.u8(..3)
            );
            input = format!(", \"r\"({})", stack.base);
        }
        Some(vec![Node::Line(format!(
            "{{ u64 {x} = {value}; asm volatile(\"{text}\" : \"+&r\"({x}) : \"r\"((u64)({other})){input} : \"r1\", \"memory\"); {result} ^= {x}; }}"
        ))])
    }

    fn bytes_of_packet(&mut self, scope: &Scope) -> Option<Vec<Node>> {
        let result = self.variable(scope)?;
        let memory = self.memory(scope, |memory| memory.aligned && memory.writable)?;
        let at = self.expression(scope);
        let len = self.rng.usize(1..=memory.len);
        let way = ["load", "store"][self.rng.usize(..2)];
        Some(vec![Node::Line(format!(
            "{result} += bpf_xdp_{way}_bytes(ctx, {at} & 63, {}, {len});",
            memory.base
        ))])
    }
}
