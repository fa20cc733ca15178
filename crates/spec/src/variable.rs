//! Local variables of programs, as far as an object's debug information tells them.

use std::ops::Range;
use std::sync::Arc;

/// A local variable or parameter while a register holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name in the source.
    pub name: Arc<str>,
    /// Slots of the instructions before which the register has its value.
    pub slots: Range<usize>,
    /// Number of the register, 0 to 10.
    pub register: u8,
    /// Its type.
    pub scalar: Scalar,
    /// Members of its type, if that is an enumeration.
    pub enumerators: Enumerators,
}

/// Members of an enumeration: values, in as many low bits as the type has, and names.
pub type Enumerators = Arc<[(u64, Arc<str>)]>;

impl Variable {
    /// The value in a register of 64 bits, as the source would print it: of an enumeration the name of the member, if it is one.
    #[must_use]
    pub fn text(&self, register: u64) -> String {
        let bits = self.scalar.bits(register);
        let member = self.enumerators.iter().find(|(value, _)| *value == bits);
        member.map_or_else(|| self.scalar.text(register), |(_, name)| name.to_string())
    }
}

/// Interpretation of a variable's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScalarKind {
    /// Number without sign, character, or member of an enumeration.
    Unsigned,
    /// Number with sign.
    Signed,
    /// `bool`
    Bool,
    /// Address.
    Pointer,
}

/// Type of a variable that a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scalar {
    /// Interpretation.
    pub kind: ScalarKind,
    /// Size in bytes, 1 to 8.
    pub bytes: u8,
}

impl Scalar {
    /// The value's bits in a register of 64 bits.
    #[must_use]
    pub fn bits(self, register: u64) -> u64 {
        let unused = 64 - 8 * u32::from(self.bytes);
        register << unused >> unused
    }

    /// The value in a register of 64 bits, as the source would print it; `null` or `not null` for an address, which means nothing elsewhere.
    #[must_use]
    pub fn text(self, register: u64) -> String {
        let unused = 64 - 8 * u32::from(self.bytes);
        let bits = self.bits(register);
        match self.kind {
            ScalarKind::Unsigned => bits.to_string(),
            ScalarKind::Signed => ((bits << unused).cast_signed() >> unused).to_string(),
            ScalarKind::Bool => (bits & 1 != 0).to_string(),
            ScalarKind::Pointer => if bits == 0 { "null" } else { "not null" }.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_enumerations_have_names() {
        let scalar = Scalar { kind: ScalarKind::Signed, bytes: 4 };
        let enumerators = Arc::from([(2, Arc::from("THIRD")), (0xffff_ffff, Arc::from("NONE"))]);
        let variable = Variable { name: Arc::from("step"), slots: 0..1, register: 1, scalar, enumerators };
        assert_eq!([2, u64::MAX, 3].map(|register| variable.text(register)), ["THIRD", "NONE", "3"]);
    }

    #[test]
    fn values_are_those_of_their_type() {
        let text = |kind, bytes, register| Scalar { kind, bytes }.text(register);
        assert_eq!(text(ScalarKind::Signed, 1, 0xfff), "-1");
        assert_eq!(text(ScalarKind::Signed, 8, u64::MAX), "-1");
        assert_eq!(text(ScalarKind::Unsigned, 4, u64::MAX), "4294967295");
        assert_eq!(text(ScalarKind::Unsigned, 2, 0x1_0016), "22");
        assert_eq!(
            (text(ScalarKind::Bool, 1, 1), text(ScalarKind::Bool, 1, 0)),
            ("true".into(), "false".into())
        );
        assert_eq!(
            (text(ScalarKind::Pointer, 8, 0), text(ScalarKind::Pointer, 8, 16)),
            ("null".into(), "not null".into())
        );
    }
}
