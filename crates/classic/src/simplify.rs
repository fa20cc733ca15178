//! Forward analysis: facts about registers before each instruction, and simplifications by them.
//!
//! One pass in program order joins all predecessors of an instruction, except along backward jumps: at a loop's head no facts are
//! assumed.
//!
//! Only libpcap's `protochain` has loops: a counter of two rounds per byte of the packet bounds them, which is more than the states
//! that accumulator and index register can have. Its value is unknown to verifiers, so that all rounds look equal, and `may_goto`
//! tells that the loop ends.

use super::insn::{AluOp, Condition, MEMORY_WORDS, Register, Size};
use super::ir::{Answer, Layout, Op, Operand, Value, at_sum};
use super::loops;

/// Contents of a register or word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Unknown,
    /// A value that is constant while the program runs.
    Value(Value),
    /// The low four bits of a byte of the packet: a header length in 32-bit words.
    Nibble {
        offset: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fact {
    content: Content,
    /// Upper bound, which verifiers can derive as well.
    max: u32,
    /// Whether the value, or one that it is a copy of, may have been compared.
    compared: bool,
}

const UNKNOWN: Fact = Fact { content: Content::Unknown, max: u32::MAX, compared: false };

const ANYTHING: Fact = Fact { compared: true, ..UNKNOWN };

impl Fact {
    const fn constant(value: u32) -> Self {
        Self { content: Content::Value(Value::Constant(value)), max: value, ..UNKNOWN }
    }

    fn as_constant(self) -> Option<u32> {
        match self.content {
            Content::Value(Value::Constant(value)) => Some(value),
            _ => None,
        }
    }

    fn meet(self, other: Self) -> Self {
        let content = if self.content == other.content { self.content } else { Content::Unknown };
        Self { content, max: self.max.max(other.max), compared: self.compared || other.compared }
    }

    /// Whether both are known to be equal.
    fn is(self, other: Self) -> bool {
        self.content != Content::Unknown && self.content == other.content
    }
}

/// Facts before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    a: Fact,
    x: Fact,
    memory: [Fact; MEMORY_WORDS],
    /// Whether the accumulator may be a copy of the index register, or of its sum with a constant.
    linked: bool,
}

impl Facts {
    /// Both registers are zero on entry.
    const ENTRY: Self =
        Self { a: Fact::constant(0), x: Fact::constant(0), memory: [UNKNOWN; MEMORY_WORDS], linked: false };

    /// No facts: at the head of a loop.
    const ANY: Self = Self { a: ANYTHING, x: ANYTHING, memory: [ANYTHING; MEMORY_WORDS], linked: true };

    /// Upper bound of the index register.
    pub(super) fn max_x(&self) -> u32 {
        self.x.max
    }

    /// Mask of the bits that the index register can have, if verifiers have to be told.
    ///
    /// The kernel's verifier can lose bounds at comparisons: on an infeasible branch, where they become contradictory
    /// (`reg_bounds_sanity_check` in `kernel/bpf/verifier.c`), including those of registers that are linked to the accumulator by a
    /// constant. It refuses to add an unbounded register to a pointer.
    pub(super) fn mask_x(&self) -> Option<u32> {
        let mask = u32::MAX.checked_shr(self.x.max.leading_zeros()).unwrap_or(0);
        self.x.compared.then_some(mask)
    }

    fn meet(&mut self, other: &Self) {
        self.linked |= other.linked;
        self.a = self.a.meet(other.a);
        self.x = self.x.meet(other.x);
        for (mine, theirs) in self.memory.iter_mut().zip(other.memory) {
            *mine = mine.meet(theirs);
        }
    }

    fn get(&self, register: Register) -> Fact {
        match register {
            Register::A => self.a,
            Register::X => self.x,
        }
    }

    fn set(&mut self, register: Register, fact: Fact) {
        match register {
            Register::A => self.a = fact,
            Register::X => self.x = fact,
        }
    }

    fn word(&self, word: u8) -> Fact {
        self.memory.get(usize::from(word)).copied().unwrap_or(UNKNOWN)
    }

    fn operand(&self, operand: Operand) -> Fact {
        match operand {
            Operand::Constant(value) => Fact::constant(value),
            Operand::X => self.x,
        }
    }

    fn value(&self, value: Value) -> Fact {
        let max = match value {
            Value::Constant(value) => value,
            Value::Memory(word) => return self.word(word),
            Value::Packet { size, .. } | Value::Indirect { size, .. } => match size {
                Size::B => u8::MAX.into(),
                Size::H => u16::MAX.into(),
                Size::W => u32::MAX,
            },
            Value::HeaderLength { .. } => 60,
            Value::Length | Value::Ancillary(_) | Value::Data { .. } => u32::MAX,
        };
        let content = match value {
            Value::Indirect { .. } | Value::Ancillary(_) => Content::Unknown,
            _ => Content::Value(value),
        };
        Fact { content, max, ..UNKNOWN }
    }

    /// The simplest equivalent operation.
    fn simplify(&self, op: Op, layout: Layout) -> Op {
        match op {
            Op::Load(register, Value::Indirect { offset, size }) if self.x.as_constant().is_some() => {
                let x = self.x.as_constant().unwrap_or_default();
                at_sum(register, x, offset, size, layout)
            }
            Op::Load(register, value) if self.get(register).is(self.value(value)) => Op::Nothing,
            Op::Store(register, word) if self.word(word).is(self.get(register)) => Op::Nothing,
            Op::Transfer(_) if self.a.is(self.x) => Op::Nothing,
            Op::Branch { condition, operand, then, otherwise } => {
                match (self.a.as_constant(), self.operand(operand).as_constant()) {
                    _ if then == otherwise => Op::Jump(then),
                    (Some(a), Some(b)) => Op::Jump(if holds(condition, a, b) { then } else { otherwise }),
                    _ => op,
                }
            }
            Op::Return(Answer::A) if self.a.as_constant().is_some() => {
                Op::Return(Answer::Constant(self.a.as_constant().unwrap_or_default()))
            }
            op => op,
        }
    }

    /// Facts after an instruction.
    fn after(mut self, op: Op) -> Self {
        self.linked = match op {
            Op::Transfer(_) => true,
            Op::Alu(AluOp::Add | AluOp::Sub, Operand::Constant(_)) => self.linked,
            // The stored value may be such a copy.
            Op::Load(_, Value::Memory(_)) => true,
            _ => self.linked && op.writes().is_none(),
        };
        match op {
            Op::Load(register, value) => {
                let fact = self.value(value);
                self.set(register, fact);
            }
            Op::Store(register, word) => {
                let fact = self.get(register);
                if let Some(place) = self.memory.get_mut(usize::from(word)) {
                    *place = fact;
                }
            }
            Op::Transfer(Register::A) => self.a = self.x,
            Op::Transfer(Register::X) => self.x = self.a,
            Op::Alu(op, operand) => self.a = alu(op, self.a, self.operand(operand)),
            Op::Negate => self.a = Fact { compared: self.a.compared, ..UNKNOWN },
            Op::Branch { operand, .. } => self.compare(operand),
            Op::Nothing | Op::Require(_) | Op::Jump(_) | Op::Return(_) => {}
        }
        self
    }

    /// Marks the accumulator as compared, and everything that may be a copy.
    fn compare(&mut self, operand: Operand) {
        self.a.compared = true;
        self.x.compared |= operand == Operand::X || self.linked;
        self.memory.iter_mut().for_each(|word| word.compared = true);
    }
}

/// Bounds as both verifiers derive them; unbounded where the kernel's gives up.
fn alu(op: AluOp, a: Fact, b: Fact) -> Fact {
    let compared = a.compared || b.compared;
    let unknown = Fact { compared, ..UNKNOWN };
    let bounded = |max: Option<u32>| Fact { max: max.unwrap_or(u32::MAX), ..unknown };
    match (op, b.as_constant()) {
        // For counts above 31, which only an index register can hold, verifiers derive no bounds.
        (AluOp::Lsh | AluOp::Rsh, Some(32..)) => unknown,
        (AluOp::And, Some(mask)) => {
            let content = match a.content {
                Content::Value(Value::Packet { offset, size: Size::B }) if mask == 0xf => {
                    Content::Nibble { offset }
                }
                _ => Content::Unknown,
            };
            Fact { content, max: a.max.min(mask), compared }
        }
        (AluOp::Lsh, Some(amount)) => {
            let content = match a.content {
                Content::Nibble { offset } if amount == 2 => Content::Value(Value::HeaderLength { offset }),
                _ => Content::Unknown,
            };
            let max = u64::from(a.max) << amount;
            Fact { content, ..bounded(u32::try_from(max).ok()) }
        }
        (AluOp::Rsh, Some(amount)) => bounded(Some(a.max >> amount)),
        (AluOp::Add, _) => bounded(a.max.checked_add(b.max)),
        _ => unknown,
    }
}

fn holds(condition: Condition, a: u32, b: u32) -> bool {
    match condition {
        Condition::Eq => a == b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Set => a & b != 0,
    }
}

/// Simplifies a program, and returns the facts before each instruction; `None` for unreachable ones.
pub(super) fn simplify(ops: &mut [Op], layout: Layout) -> Vec<Option<Facts>> {
    let starts = loops::starts(ops);
    let mut known: Vec<Option<Facts>> =
        starts.into_iter().map(|is_one| is_one.then_some(Facts::ANY)).collect();
    if let Some(entry) = known.first_mut() {
        entry.get_or_insert(Facts::ENTRY);
    }
    for (index, op) in ops.iter_mut().enumerate() {
        let Some(facts) = known[index] else { continue };
        *op = facts.simplify(*op, layout);
        let after = facts.after(*op);
        for successor in op.successors(index) {
            match known.get_mut(successor) {
                Some(Some(there)) => there.meet(&after),
                Some(there) => *there = Some(after),
                None => {}
            }
        }
    }
    known
}
