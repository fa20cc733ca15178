//! The table against the RFC: every opcode and every conformance group.

use std::collections::BTreeMap;

use paceline_isa::table::{Cpu, Field, Group, TABLE, row_of, rows_of};
use paceline_isa::{DecodeError, RawInsn, decode_at, encode};

/// Opcodes by RFC 9669 section 3: class in bits 0 to 2, the rest depends on the class.
fn opcodes_of_the_rfc() -> BTreeMap<u8, &'static str> {
    let mut known = BTreeMap::new();
    let mut add = |opcode: u8, name| assert!(known.insert(opcode, name).is_none(), "{opcode:#x} twice");
    for class in [0x04, 0x07] {
        for code in (0x00..=0x70).step_by(0x10).chain((0x90..=0xc0).step_by(0x10)) {
            add(class | code, "arithmetic by immediate");
            add(class | code | 0x08, "arithmetic by register");
        }
        add(class | 0x80, "negation");
    }
    [0xd4, 0xdc, 0xd7].into_iter().for_each(|opcode| add(opcode, "byte swap"));
    for class in [0x05, 0x06] {
        for code in (0x10..=0x70).step_by(0x10).chain((0xa0..=0xd0).step_by(0x10)) {
            add(class | code, "jump by immediate");
            add(class | code | 0x08, "jump by register");
        }
        add(class, "goto");
    }
    add(0x85, "call");
    add(0x95, "exit");
    for size in [0x00, 0x08, 0x10, 0x18] {
        add(0x61 | size, "load");
        add(0x62 | size, "store of immediate");
        add(0x63 | size, "store of register");
    }
    for size in [0x00, 0x08, 0x10] {
        add(0x81 | size, "sign-extending load");
        add(0x20 | size, "packet load");
        add(0x40 | size, "indirect packet load");
    }
    add(0xc3, "32-bit atomic");
    add(0xdb, "64-bit atomic");
    add(0x18, "64-bit immediate");
    known
}

#[test]
fn all_256_opcodes_are_classified() {
    let rfc = opcodes_of_the_rfc();
    // may_goto, callx, and acquire and release of 8 and 16 bits.
    let extensions = [0xe5, 0x8d, 0xd3, 0xcb];
    for opcode in 0..=u8::MAX {
        let rows = rows_of(opcode);
        assert!(rows.iter().all(|row| row.opcode == opcode));
        assert_eq!(
            !rows.is_empty(),
            rfc.contains_key(&opcode) || extensions.contains(&opcode),
            "{opcode:#04x}"
        );
        let in_rfc = rows.iter().any(|row| row.group != Group::Extension);
        assert_eq!(in_rfc, rfc.contains_key(&opcode), "{opcode:#04x}");
        if rows.is_empty() {
            let raw = RawInsn { opcode, ..RawInsn::default() };
            assert_eq!(decode_at(&[raw], 0), Err(DecodeError::Opcode { slot: 0, opcode }));
        }
    }
    assert_eq!(TABLE.len(), (0..=u8::MAX).map(|opcode| rows_of(opcode).len()).sum::<usize>());
}

#[test]
fn rows_are_told_apart() {
    for (index, row) in TABLE.iter().enumerate() {
        assert!(std::ptr::eq(row_of(row.form).unwrap(), row), "two rows of {:?}", row.form);
        for other in &TABLE[index + 1..] {
            assert_ne!(row.text, other.text);
            if row.opcode == other.opcode {
                let fields = |row: &paceline_isa::table::Encoding| [row.dst, row.src, row.offset, row.imm];
                let apart = fields(row).into_iter().zip(fields(other)).any(|pair| match pair {
                    (Field::Is(a), Field::Is(b)) => a != b,
                    _ => false,
                });
                assert!(apart, "{row:?} and {other:?}");
            }
        }
    }
}

#[test]
fn selectors_fit_their_fields() {
    for row in TABLE {
        if let Field::Is(value) = row.src {
            assert!((0..16).contains(&value));
        }
        if let Field::Is(value) = row.offset {
            assert!(i16::try_from(value).is_ok());
        }
        assert!(!matches!(row.dst, Field::Is(_)) && !matches!(row.next_imm, Some(Field::Is(_))));
    }
}

/// RFC 9669 section 2.4 defines the groups: base32 contains everything that no section assigns to another group. The opcode's class
/// and size determine the section.
#[test]
fn groups_are_those_of_the_rfc() {
    for row in TABLE.iter().filter(|row| row.group != Group::Extension) {
        let (class, code, size) = (row.opcode & 0x07, row.opcode & 0xf0, row.opcode & 0x18);
        let is_division = matches!(code, 0x20 | 0x30 | 0x90);
        let expected = match class {
            0x04 if code == 0xd0 && row.imm == Field::Is(64) => Group::Base64,
            0x07 if code == 0xd0 && row.imm != Field::Is(64) => Group::Base32,
            0x04 if is_division => Group::DivMul32,
            0x07 if is_division => Group::DivMul64,
            0x04 | 0x06 => Group::Base32,
            0x05 if matches!(code, 0x00 | 0x80 | 0x90) => Group::Base32,
            0x05 | 0x07 => Group::Base64,
            0x00 if row.opcode == 0x18 => Group::Base64,
            0x00 => Group::Packet,
            0x03 if row.opcode == 0xc3 => Group::Atomic32,
            0x03 if row.opcode == 0xdb => Group::Atomic64,
            _ if size == 0x18 => Group::Base64,
            _ => Group::Base32,
        };
        assert_eq!(row.group, expected, "{row:?}");
    }
}

#[test]
fn there_are_rows_of_every_level_and_group() {
    for cpu in [Cpu::V1, Cpu::V2, Cpu::V3, Cpu::V4] {
        assert!(TABLE.iter().any(|row| row.cpu == cpu));
    }
    let counts = TABLE.iter().fold(BTreeMap::new(), |mut counts, row| {
        *counts.entry(row.group).or_insert(0) += 1;
        counts
    });
    assert_eq!(counts.len(), 8, "{counts:?}");
}

#[test]
fn every_row_encodes_and_decodes() {
    for row in TABLE {
        let fill = |field| match field {
            Field::Is(value) => value,
            Field::Any => 5,
            Field::Zero => 0,
        };
        let first = RawInsn {
            opcode: row.opcode,
            dst: fill(row.dst) as u8,
            src: fill(row.src) as u8,
            offset: fill(row.offset) as i16,
            imm: fill(row.imm),
        };
        let second = row.next_imm.map(|field| RawInsn { imm: fill(field), ..RawInsn::default() });
        let raw: Vec<RawInsn> = std::iter::once(first).chain(second).collect();
        let insn = decode_at(&raw, 0).unwrap();
        assert_eq!(insn.form(), row.form);
        assert_eq!(encode(&insn).unwrap().into_iter().collect::<Vec<_>>(), raw);
    }
}
