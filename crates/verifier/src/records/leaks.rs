//! Address leaks: uses of an address as a number. Programs may do that, but then results depend on where memory is.

use paceline_isa::{Condition, Width};

use super::facts::Facts;
use crate::domain::state::{Target, Value};

impl Facts {
    /// Records that an instruction uses a value as a number (refused by the kernel without `allow_ptr_leaks`).
    #[inline]
    pub(crate) fn note_as_number(&mut self, slot: usize, value: &Value) {
        if is_address(value) {
            self.leak(slot);
        }
    }

    /// The same for a subtraction: the distance of two addresses in one object does not depend on where it is.
    pub(crate) fn note_distance(&mut self, slot: usize, a: &Value, b: &Value) {
        if !are_of_one_thing(a, b) {
            self.note_as_number(slot, a);
            self.note_as_number(slot, b);
        }
    }

    /// The same for a comparison: neither the order of two addresses in one object nor a null check depends on where it is.
    pub(crate) fn note_compared(
        &mut self,
        slot: usize,
        width: Width,
        condition: Condition,
        a: &Value,
        b: &Value,
    ) {
        let is_equality = matches!(condition, Condition::Eq | Condition::Ne);
        let is_null_check = is_equality && (a.is_null() || b.is_null()) && width == Width::W64;
        if !is_null_check {
            self.note_distance(slot, a, b);
        }
    }
}

fn is_address(value: &Value) -> bool {
    match value {
        Value::Pointer(_) => true,
        Value::Scalar(scalar) => scalar.stale_since.is_some(),
        Value::Unset | Value::Iterator(_) | Value::Dynptr(_) => false,
    }
}

fn are_of_one_thing(a: &Value, b: &Value) -> bool {
    let (Value::Pointer(a), Value::Pointer(b)) = (a, b) else { return false };
    let is_packet = |target| matches!(target, Target::Packet { .. } | Target::PacketEnd);
    match (a.target, b.target) {
        (a, b) if is_packet(a) && is_packet(b) => true,
        (Target::Stack { frame: a }, Target::Stack { frame: b }) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::assemble;
    use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

    use crate::{Options, verify};

    /// Slots of the instructions that leak an address.
    fn leaks(text: &str) -> Vec<usize> {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let program = ProgramSpec::new("leak", kind, assemble(text, &()).unwrap().encode().unwrap());
        let map = MapSpec::new("map", MapKind::Array, 4, 8, 2);
        let verified = verify(&program, &[map], None, &Options::default()).unwrap();
        (0..verified.facts().len()).filter(|&slot| verified.fact(slot).leaks).collect()
    }

    #[test]
    fn lengths_and_checks_leak_nothing() {
        let text = "r2 = *(u32 *)(r1 + 0)
            r3 = *(u32 *)(r1 + 4)
            r0 = r3
            r0 -= r2
            *(u64 *)(r10 - 8) = r2
            r4 = *(u64 *)(r10 - 8)
            r4 += 8
            if r4 > r3 goto +2
            r0 = *(u8 *)(r2 + 0)
            r0 &= 1
            exit";
        assert_eq!(leaks(text), []);
    }

    #[test]
    fn addresses_that_become_numbers_are_told() {
        let exit = "\nr0 = 0\nexit";
        for (text, slots) in [
            ("w2 = w1", vec![0]),
            ("r2 = (s8)r1", vec![0]),
            ("r1 = -r1", vec![0]),
            ("r1 -= r10", vec![0]),
            ("w1 -= w10", vec![0]),
            ("if r1 > 5 goto +0", vec![0]),
            ("if w1 == 0 goto +0", vec![0]),
            ("if r1 == r10 goto +0", vec![0]),
            ("*(u64 *)(r10 - 8) = r10\n*(u8 *)(r10 - 8) = 1", vec![1]),
            ("*(u64 *)(r10 - 8) = r10\nr2 = 1\nlock *(u64 *)(r10 - 8) += r2", vec![2]),
            ("r2 = 0\n*(u64 *)(r10 - 8) = r2\nr2 = r10\nr2 = xchg_64(r10 - 8, r2)", vec![3]),
            ("*(u64 *)(r10 - 8) = r10\nr1 = r10\nr1 += -8\nr2 = 8\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28", vec![7]),
            ("r6 = *(u32 *)(r1 + 0)\nr2 = 4\ncall 44\nr6 += 1", vec![3]),
        ] {
            assert_eq!(leaks(&format!("{text}{exit}")), slots, "{text}");
        }
    }
}
