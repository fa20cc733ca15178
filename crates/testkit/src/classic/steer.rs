//! Packets that are steered through a filter: compared bytes get the values that they are compared with, so that filters of
//! any link type match.

use fastrand::Rng;
use paceline_classic::{
    AluOp, Condition, LoadFrom, MEMORY_WORDS, Operation, Register, Size, SockFilter, Source,
};

/// Number of steps after which a filter counts as an endless loop.
const STEPS: usize = 200_000;

/// Maximum length of a packet.
const LONGEST: usize = 200;

/// A packet that takes a random path through a filter.
#[must_use]
pub fn steered(rng: &mut Rng, insns: &[SockFilter]) -> Vec<u8> {
    let len = rng.usize(LONGEST / 2..LONGEST);
    let byte = |rng: &mut Rng| if rng.bool() { 0 } else { rng.u8(..) };
    let packet: Vec<u8> = std::iter::repeat_with(|| byte(rng)).take(len).collect();
    let mut machine = Machine { packet, ..Machine::default() };
    // A later change may affect an earlier comparison, so that the packet takes another path.
    machine.walk(insns, Some(rng));
    let mut packet = machine.packet;
    if rng.u8(..6) == 0 {
        packet.truncate(rng.usize(..=packet.len()));
    }
    packet
}

/// Whether the result of a filter is defined by libpcap's rules: no endless loop, and no read of uninitialized scratch
/// memory.
#[must_use]
pub fn is_defined(insns: &[SockFilter], packet: &[u8]) -> bool {
    Machine { packet: packet.to_vec(), ..Machine::default() }.walk(insns, None)
}

/// Origin of the accumulator's value: bytes of the packet, and the mask of their remaining bits.
#[derive(Clone, Copy)]
struct Origin {
    place: usize,
    bytes: usize,
    mask: u32,
}

#[derive(Default)]
struct Machine {
    packet: Vec<u8>,
    a: u32,
    x: u32,
    memory: [Option<u32>; MEMORY_WORDS],
    origin: Option<Origin>,
}

impl Machine {
    /// Runs the filter and changes compared bytes, as `rng` decides. False if the result is undefined.
    fn walk(&mut self, insns: &[SockFilter], mut rng: Option<&mut Rng>) -> bool {
        let mut at = 0i64;
        for _ in 0..STEPS {
            let insn = usize::try_from(at).ok().and_then(|at| insns.get(at));
            let Some((insn, row)) = insn.and_then(|insn| Some((insn, insn.row()?))) else { return true };
            at += 1;
            let operand = |source, x| if source == Source::X { x } else { insn.k };
            match row.operation {
                Operation::Return | Operation::ReturnA => return true,
                Operation::Jump => at += i64::from(insn.k.cast_signed()),
                Operation::JumpIf(condition, source) => {
                    let operand = operand(source, self.x);
                    if let Some(rng) = rng.as_deref_mut()
                        && rng.u8(..10) < 7
                    {
                        self.steer(condition, operand);
                    }
                    let holds = match condition {
                        Condition::Eq => self.a == operand,
                        Condition::Gt => self.a > operand,
                        Condition::Ge => self.a >= operand,
                        Condition::Set => self.a & operand != 0,
                    };
                    at += i64::from(if holds { insn.jt } else { insn.jf });
                }
                Operation::Load(_, LoadFrom::Memory) if self.word(insn.k).is_none() => return false,
                Operation::Load(register, from) => {
                    let Some(value) = self.load(from, insn.k, rng.as_deref_mut()) else { return true };
                    match register {
                        Register::A => self.a = value,
                        Register::X => self.x = value,
                    }
                }
                Operation::Store(register) => {
                    let value = if register == Register::A { self.a } else { self.x };
                    self.memory[insn.k as usize % MEMORY_WORDS] = Some(value);
                }
                Operation::Alu(op, source) => {
                    let operand = operand(source, self.x);
                    if matches!(op, AluOp::Div | AluOp::Mod) && operand == 0 {
                        return true;
                    }
                    self.alu(op, operand);
                }
                Operation::Negate => (self.a, self.origin) = (self.a.wrapping_neg(), None),
                Operation::Tax => self.x = self.a,
                Operation::Txa => (self.a, self.origin) = (self.x, None),
            }
        }
        false
    }

    /// Makes a comparison true.
    fn steer(&mut self, condition: Condition, operand: u32) {
        let Some(Origin { place, bytes, mask }) = self.origin else { return };
        let wanted = match condition {
            Condition::Eq | Condition::Ge => operand,
            Condition::Gt => operand.wrapping_add(1),
            Condition::Set => self.a | operand & operand.wrapping_neg(),
        };
        let found = self.number(place, bytes).unwrap_or_default();
        let value = found & !mask | wanted & mask;
        if let Some(packet) = self.packet.get_mut(place..place + bytes) {
            packet.copy_from_slice(&value.to_be_bytes()[4 - bytes..]);
            self.a = value & mask & (u32::MAX >> (32 - 8 * bytes));
        }
    }

    fn word(&self, k: u32) -> Option<u32> {
        self.memory[k as usize % MEMORY_WORDS]
    }

    fn number(&self, place: usize, bytes: usize) -> Option<u32> {
        let bytes = self.packet.get(place..place.checked_add(bytes)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }

    /// The result of a load; `None` outside of the packet.
    fn load(&mut self, from: LoadFrom, k: u32, rng: Option<&mut Rng>) -> Option<u32> {
        let bytes = |size| match size {
            Size::B => 1,
            Size::H => 2,
            Size::W => 4,
        };
        let (place, bytes) = match from {
            LoadFrom::Immediate => return self.other(k),
            LoadFrom::Length => return self.other(self.packet.len() as u32),
            LoadFrom::Memory => {
                let word = self.word(k)?;
                return self.other(word);
            }
            LoadFrom::HeaderLength => {
                let byte = self.packet.get_mut(k as usize)?;
                if rng.is_some_and(|rng| rng.u8(..4) > 0) {
                    *byte = 0x45;
                }
                return Some(u32::from(*byte & 0xf) << 2);
            }
            LoadFrom::Absolute(size) => (k as usize, bytes(size)),
            LoadFrom::Indirect(size) => (k as usize + self.x as usize, bytes(size)),
        };
        let value = self.number(place, bytes)?;
        self.origin = Some(Origin { place, bytes, mask: u32::MAX });
        Some(value)
    }

    fn other(&mut self, value: u32) -> Option<u32> {
        self.origin = None;
        Some(value)
    }

    fn alu(&mut self, op: AluOp, operand: u32) {
        let a = self.a;
        let origin = self.origin.take();
        self.a = match op {
            AluOp::Add => a.wrapping_add(operand),
            AluOp::Sub => a.wrapping_sub(operand),
            AluOp::Mul => a.wrapping_mul(operand),
            AluOp::Div => a / operand,
            AluOp::Mod => a % operand,
            AluOp::Or => a | operand,
            AluOp::And => {
                self.origin = origin.map(|origin| Origin { mask: origin.mask & operand, ..origin });
                a & operand
            }
            AluOp::Xor => a ^ operand,
            AluOp::Lsh => a.checked_shl(operand).unwrap_or(0),
            AluOp::Rsh => a.checked_shr(operand).unwrap_or(0),
        };
    }
}
