//! Reference semantics: computes what a filter returns, step by step, and whether libpcap's rules differ in a step.

use paceline_classic::{
    AluOp, Ancillary, Condition, Filter, LINK_LAYER_OFFSET, LoadFrom, NETWORK_OFFSET, Operation, Register,
    Size, Source,
};

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// Return value by the kernel's rules.
    pub value: u32,
    /// Whether libpcap's `bpf_filter` has another rule for an executed step.
    pub libpcap_differs: bool,
}

/// Runs a filter over a packet with an Ethernet header. Ancillary words other than `XorX` are 0.
#[must_use]
pub fn run(filter: &Filter, packet: &[u8]) -> Reference {
    let mut machine = Machine { packet, a: 0, x: 0, memory: [0; 16], differs: false };
    let value = machine.run(filter).unwrap_or(0);
    Reference { value, libpcap_differs: machine.differs }
}

struct Machine<'a> {
    packet: &'a [u8],
    a: u32,
    x: u32,
    memory: [u32; 16],
    differs: bool,
}

impl Machine<'_> {
    /// `None` if the program ends early and returns 0.
    fn run(&mut self, filter: &Filter) -> Option<u32> {
        let mut pc = 0;
        loop {
            let insn = *filter.insns().get(pc)?;
            let k = insn.k;
            pc += 1;
            match insn.row()?.operation {
                Operation::Load(register, from) => {
                    let value = match from {
                        LoadFrom::Absolute(_) if Ancillary::at(k) == Some(Ancillary::XorX) => {
                            self.differs = true;
                            self.a ^ self.x
                        }
                        from => self.load(from, k)?,
                    };
                    match register {
                        Register::A => self.a = value,
                        Register::X => self.x = value,
                    }
                }
                Operation::Store(Register::A) => self.memory[k as usize] = self.a,
                Operation::Store(Register::X) => self.memory[k as usize] = self.x,
                Operation::Alu(op, source) => self.a = self.alu(op, self.operand(source, k), source)?,
                Operation::Negate => self.a = self.a.wrapping_neg(),
                Operation::Jump => pc += k as usize,
                Operation::JumpIf(condition, source) => {
                    let (a, b) = (self.a, self.operand(source, k));
                    let holds = match condition {
                        Condition::Eq => a == b,
                        Condition::Gt => a > b,
                        Condition::Ge => a >= b,
                        Condition::Set => a & b != 0,
                    };
                    pc += usize::from(if holds { insn.jt } else { insn.jf });
                }
                Operation::Return => return Some(k),
                Operation::ReturnA => return Some(self.a),
                Operation::Tax => self.x = self.a,
                Operation::Txa => self.a = self.x,
            }
        }
    }

    fn operand(&self, source: Source, k: u32) -> u32 {
        if source == Source::X { self.x } else { k }
    }

    fn alu(&mut self, op: AluOp, b: u32, source: Source) -> Option<u32> {
        let a = self.a;
        if matches!(op, AluOp::Lsh | AluOp::Rsh) && source == Source::X && b >= 32 {
            self.differs = true;
        }
        Some(match op {
            AluOp::Add => a.wrapping_add(b),
            AluOp::Sub => a.wrapping_sub(b),
            AluOp::Mul => a.wrapping_mul(b),
            AluOp::Div => a.checked_div(b)?,
            AluOp::Mod => a.checked_rem(b)?,
            AluOp::Or => a | b,
            AluOp::And => a & b,
            AluOp::Xor => a ^ b,
            AluOp::Lsh => a << (b & 31),
            AluOp::Rsh => a >> (b & 31),
        })
    }

    fn load(&mut self, from: LoadFrom, k: u32) -> Option<u32> {
        match from {
            LoadFrom::Immediate => Some(k),
            LoadFrom::Length => Some(self.packet.len() as u32),
            LoadFrom::Memory => Some(self.memory[k as usize]),
            LoadFrom::Absolute(_) if Ancillary::at(k).is_some() => {
                self.differs = true;
                Some(0)
            }
            LoadFrom::Absolute(size) => self.bytes(k, size),
            LoadFrom::Indirect(size) => {
                self.differs |= self.x.checked_add(k).is_none();
                self.bytes(self.x.wrapping_add(k), size)
            }
            LoadFrom::HeaderLength => self.bytes(k, Size::B).map(|byte| 4 * (byte & 0xf)),
        }
    }

    fn bytes(&mut self, offset: u32, size: Size) -> Option<u32> {
        let place = match offset {
            NETWORK_OFFSET.. => offset - NETWORK_OFFSET + 14,
            LINK_LAYER_OFFSET.. => offset - LINK_LAYER_OFFSET,
            _ => offset,
        } as usize;
        self.differs |= place != offset as usize;
        let bytes = self.packet.get(place..place.checked_add(size.bytes() as usize)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}
