//! Random programs that leave and read words of a stack on ways that come together, in loops, functions, callbacks and helpers, and that differ from each
//! other in one choice: what `diff` and `prove` say is held against runs.
//! `PACELINE_WORDS=1000 cargo test -p paceline --test generate random_words` makes more of them.

use std::env;
use std::fmt::Write;

use fastrand::Rng;
use paceline::{Burst, Engine, FrameMeta, Host, LoadOptions, Object};

use super::generate_lent::global_of;
use super::generate_spilled::{is_proved, told};
use super::{array, xdp};

/// Choices that may be made again, as they were.
#[derive(Clone)]
struct Tape {
    choices: Vec<u32>,
    next: usize,
    rng: Rng,
}

impl Tape {
    fn pick(&mut self, count: u32) -> u32 {
        if self.next == self.choices.len() {
            self.choices.push(self.rng.u32(..));
        }
        self.next += 1;
        self.choices[self.next - 1] % count
    }
}

/// Which function is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Main,
    Static,
    Callback,
    Global,
}

/// Writes a program. The main program's words, from -8 to -32, are below `r10`, in functions also below `r6`; words at -40 and -48 are addresses, the
/// one at -56 is that of the packet. What is read is gathered in `r7`.
struct Writer {
    tape: Tape,
    text: String,
    labels: u32,
    kind: Kind,
    in_loop: bool,
    calls: [bool; 4],
}

const CALLS: [(Kind, &str); 4] =
    [(Kind::Static, "first"), (Kind::Static, "second"), (Kind::Callback, "again"), (Kind::Global, "alone")];

impl Writer {
    fn put(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn program(mut self) -> (String, Tape, bool) {
        self.put("r9 = r1\nr7 = 0\nr5 = r10\nr5 += -8\n*(u64 *)(r10 - 40) = r5\n*(u64 *)(r10 - 48) = r9\n*(u64 *)(r10 - 56) = r9\n*(u64 *)(r10 - 64) = 0");
        self.fill("r10");
        let count = 4 + self.tape.pick(5);
        (0..count).for_each(|_| self.statement(0));
        self.gather();
        self.put("r4 = *(u64 *)(r10 - 64)\nr7 ^= r4\n*(u64 *)(r9 + 16) = r7\nr0 = 2\nout:\nexit");
        for (index, (kind, name)) in CALLS.into_iter().enumerate() {
            if self.calls[index] {
                self.function(kind, name);
            }
        }
        (self.text, self.tape, self.calls[3])
    }

    fn fill(&mut self, base: &str) {
        for place in [8, 16, 24, 32] {
            let value = self.tape.pick(4);
            self.put(&format!("*(u64 *)({base} - {place}) = {value}"));
        }
    }

    /// Reads some of the words.
    fn gather(&mut self) {
        for place in [8, 16, 24, 32] {
            if self.tape.pick(3) == 0 {
                let base = self.base();
                self.put(&format!("r4 = *(u64 *)({base} - {place})\nr7 <<= 3\nr7 ^= r4"));
            }
        }
    }

    fn function(&mut self, kind: Kind, name: &str) {
        (self.kind, self.in_loop) = (kind, false);
        let start = match kind {
            Kind::Main => "",
            Kind::Static => "r6 = r1\nr9 = r2",
            Kind::Callback => "r6 = r2\nr9 = *(u64 *)(r6 - 56)",
            Kind::Global => "r0 = 0\nif r1 == 0 goto null\nr6 = r1\nr6 += 32\nr9 = r2",
        };
        self.put(&format!("{name}:\n{start}\nr7 = 0"));
        self.fill("r10");
        let count = 1 + self.tape.pick(4);
        (0..count).for_each(|_| self.statement(1));
        self.gather();
        self.put(match kind {
            Kind::Callback => {
                "r4 = *(u64 *)(r6 - 64)\nr4 <<= 1\nr4 ^= r7\n*(u64 *)(r6 - 64) = r4\nr0 = 0\nexit"
            }
            Kind::Global => "r0 = r7\nnull:\nexit",
            _ => "r0 = r7\nexit",
        });
    }

    /// The words of the main program, or those of the running function.
    fn base(&mut self) -> &'static str {
        if self.kind == Kind::Main || self.tape.pick(3) == 0 { "r10" } else { "r6" }
    }

    fn word(&mut self) -> u32 {
        8 + 8 * self.tape.pick(4)
    }

    /// Some bytes of a word.
    fn bytes(&mut self) -> String {
        let base = self.base();
        let (bits, size) = [(64, 8), (64, 8), (32, 4), (16, 2), (8, 1)][self.tape.pick(5) as usize];
        let place = self.word() - self.tape.pick(8 / size) * size;
        format!("*(u{bits} *)({base} - {place})")
    }

    /// A byte of the packet, in `r4`.
    fn byte(&mut self) {
        let place = self.tape.pick(4);
        match self.kind {
            Kind::Global => self.put(&format!("r4 = r9\nr4 >>= {}\nr4 &= 255", 8 * place)),
            _ => self.put(&format!("r4 = *(u8 *)(r9 + {place})")),
        }
    }

    fn block(&mut self, depth: u32) {
        let count = 1 + self.tape.pick(3);
        (0..count).for_each(|_| self.statement(depth + 1));
    }

    fn statement(&mut self, depth: u32) {
        match self.tape.pick(18) {
            0 | 1 => {
                let (bytes, value) = (self.bytes(), self.tape.pick(4));
                self.put(&format!("{bytes} = {value}"));
            }
            2 => {
                let bytes = self.bytes();
                self.byte();
                self.put(&format!("{bytes} = r4"));
            }
            3 => {
                let (from, to) = (self.bytes(), self.bytes());
                self.put(&format!("r4 = {from}\n{to} = r4"));
            }
            4..=6 if depth < 3 => self.branch(depth),
            7 | 8 if depth < 2 && !self.in_loop => self.rounds(depth),
            9 => {
                let bytes = self.bytes();
                self.put(&format!("r4 = {bytes}\nr7 <<= 3\nr7 ^= r4"));
            }
            10 if self.kind != Kind::Global => self.set_address(),
            11 if self.kind != Kind::Global => self.follow(),
            12 => self.read_somewhere(),
            13 => {
                let (base, word, len) = (self.base(), self.word(), 4 + 4 * self.tape.pick(2));
                self.put(&format!("r1 = 0\nr2 = 0\nr3 = {base}\nr3 += -{word}\nr4 = {len}\nr5 = 0\ncall 28\nr7 <<= 3\nr7 ^= r0"));
            }
            14 => {
                let (base, word) = (self.base(), self.word());
                self.byte();
                self.put(&format!("lock *(u64 *)({base} - {word}) += r4"));
            }
            15 if self.kind == Kind::Main => {
                let (word, from) = (self.word(), self.tape.pick(4));
                self.put(&format!("r1 = r6\nr2 = {from}\nr3 = r10\nr3 += -{word}\nr4 = 4\ncall 189"));
            }
            _ if self.kind == Kind::Main => self.call(),
            _ => {
                let bytes = self.bytes();
                self.put(&format!("{bytes} = 5"));
            }
        }
    }

    fn branch(&mut self, depth: u32) {
        let (other, then) = (self.label(), self.label());
        self.byte();
        self.put(&format!("if r4 > 5 goto l{other}"));
        self.block(depth);
        self.put(&format!("goto l{then}\nl{other}:"));
        if self.tape.pick(3) > 0 {
            self.block(depth);
        }
        self.put(&format!("l{then}:"));
    }

    fn rounds(&mut self, depth: u32) {
        let again = self.label();
        self.put(&format!("r8 = 0\nl{again}:"));
        self.in_loop = true;
        self.block(depth);
        self.in_loop = false;
        self.put(&format!("r8 += 1\nif r8 < 2 goto l{again}"));
    }

    /// Makes one of two words the address of a word, of a value of the array, or of a byte of the packet.
    fn set_address(&mut self) {
        let base = if self.kind == Kind::Main { "r10" } else { "r6" };
        let place = 40 + 8 * self.tape.pick(2);
        match self.tape.pick(3) {
            0 if self.kind == Kind::Main => {
                let word = self.word();
                self.put(&format!("r5 = r10\nr5 += -{word}"));
            }
            1 if self.kind == Kind::Main => {
                let key = self.tape.pick(3);
                self.put(&format!("*(u32 *)(r10 - 68) = {key}\nr2 = r10\nr2 += -68\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto out\nr5 = r0"));
            }
            _ => {
                let byte = self.tape.pick(4);
                self.put(&format!("r5 = r9\nr5 += {byte}"));
            }
        }
        self.put(&format!("*(u64 *)({base} - {place}) = r5"));
    }

    fn follow(&mut self) {
        let base = if self.kind == Kind::Main { "r10" } else { "r6" };
        let place = 40 + 8 * self.tape.pick(2);
        self.put(&format!("r5 = *(u64 *)({base} - {place})"));
        match self.tape.pick(3) {
            0 => self.put("*(u8 *)(r5 + 0) = 9"),
            _ => self.put("r4 = *(u8 *)(r5 + 0)\nr7 <<= 3\nr7 ^= r4"),
        }
    }

    fn read_somewhere(&mut self) {
        let (base, word) = (self.base(), self.word());
        self.byte();
        self.put(&format!(
            "r4 &= 3\nr5 = {base}\nr5 += -{word}\nr5 += r4\nr4 = *(u8 *)(r5 + 0)\nr7 <<= 3\nr7 ^= r4"
        ));
    }

    fn call(&mut self) {
        let index = self.tape.pick(4) as usize;
        self.calls[index] = true;
        let name = CALLS[index].1;
        self.put(&match CALLS[index].0 {
            Kind::Callback => format!("r1 = 2\nr2 = subprog[{name}]\nr3 = r10\nr4 = 0\ncall 181"),
            Kind::Global => {
                format!("r1 = r10\nr1 += -32\nr2 = *(u32 *)(r9 + 0)\ncall {name}\nr7 <<= 3\nr7 ^= r0")
            }
            _ => format!("r1 = r10\nr2 = r9\ncall {name}\nr7 <<= 3\nr7 ^= r0"),
        });
    }
}

fn written(tape: Tape) -> (Object, String, Tape) {
    let writer =
        Writer { tape, text: String::new(), labels: 0, kind: Kind::Main, in_loop: false, calls: [false; 4] };
    let (text, tape, is_global) = writer.program();
    let maps = vec![array()];
    let object = if is_global { global_of(&text, 4, maps) } else { xdp(&text, maps) };
    (object, text, tape)
}

/// What a program makes of packets whose first bytes are on all sides of its branches.
fn runs(object: &Object) -> Option<Vec<Vec<u8>>> {
    let collection = object.load(&LoadOptions::default().engine(Engine::Plain)).ok()?;
    let verified = collection.program(Some("test")).ok()?;
    let packets = (0..16_u8).map(|sides| {
        let mut packet = [0; 40];
        for (byte, value) in (0..4).zip(&mut packet) {
            *value = if sides >> byte & 1 == 1 { 6 + byte } else { byte };
        }
        let mut burst = Burst::new(1);
        burst.push(&packet, FrameMeta::default()).unwrap();
        verified.program().run_burst(&mut burst, &mut Host::default()).unwrap();
        burst.frame(0).into_packet().to_vec()
    });
    Some(packets.collect())
}

#[test]
fn random_words_are_told_apart() {
    let count = env::var("PACELINE_WORDS").ok().and_then(|count| count.parse().ok()).unwrap_or(20);
    let first = env::var("PACELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_u64);
    // Programs that are refused and given up, pairs that are the same, and others.
    let mut seen = [0; 4];
    for seed in first..first + count {
        let tape = Tape { choices: Vec::new(), next: 0, rng: Rng::with_seed(seed) };
        let (old, text, tape) = written(tape);
        let Some(of_old) = runs(&old) else {
            seen[0] += 1;
            continue;
        };
        let same = told(&old, &old);
        assert!(same.found.is_empty(), "{seed}\n{text}");
        if !same.is_complete() {
            seen[1] += 1;
        }
        for change in 0..4 {
            let mut other = Tape { next: 0, ..tape.clone() };
            other.rng = Rng::with_seed(seed + 1_000_000);
            let changed = Rng::with_seed(4 * seed + change).usize(0..other.choices.len());
            other.choices[changed] = other.choices[changed].wrapping_add(1);
            let (new, new_text, _) = written(other);
            let Some(of_new) = runs(&new) else { continue };
            let found = told(&old, &new);
            let is_proof = found.is_complete() && found.found.is_empty();
            assert!(!is_proof || of_old == of_new, "{seed}: not the same\n{text}\n\n{new_text}");
            seen[if is_proof { 2 } else { 3 }] += 1;
        }
        let value = of_old[5][16..24].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        assert!(!is_proved(&old, &format!("not out[16:24] == {value}")), "{seed}: not so\n{text}");
    }
    let [refused, given_up, same, others] = seen;
    assert!(refused + given_up < count.div_ceil(10) && same > 0 && others > 0, "{seen:?}");
}
