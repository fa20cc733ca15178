//! The workloads for engines without XDP (`workloads/raw.v2.bpf.c`), and the counters of W4.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use elf::ElfBytes;
use elf::endian::LittleEndian;

/// The programs, each in its section.
const OBJECT: &[u8] = include_bytes!("../../workloads/raw.v2.o");

/// A 64-bit address in the two halves of a load (`R_BPF_64_64`).
const R_BPF_64_64: u32 = 1;

/// Packets counted by other engines' machine code, by protocol.
pub(super) static COUNTS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// The current counts.
pub(super) fn counts() -> Vec<u64> {
    COUNTS.iter().map(|count| count.load(Ordering::Relaxed)).collect()
}

/// The instructions of a section, with references to [`COUNTS`] resolved.
///
/// # Errors
/// The object has no such section, or one with another relocation.
pub(super) fn program(section: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let object = ElfBytes::<LittleEndian>::minimal_parse(OBJECT)?;
    let header = object.section_header_by_name(section)?.ok_or_else(|| format!("no section {section}"))?;
    let mut text = object.section_data(&header)?.0.to_vec();
    let Some(header) = object.section_header_by_name(&format!(".rel{section}"))? else { return Ok(text) };
    let (symbols, names) = object.symbol_table()?.ok_or("no symbols")?;
    for relocation in object.section_data_as_rels(&header)? {
        let name = names.get(symbols.get(relocation.r_sym as usize)?.st_name as usize)?;
        if (relocation.r_type, name) != (R_BPF_64_64, "counts") {
            return Err(format!("{section}: relocation {} of {name}", relocation.r_type).into());
        }
        let address = (COUNTS.as_ptr() as u64).to_le_bytes();
        let at = relocation.r_offset as usize;
        for (half, place) in address.chunks_exact(4).zip([at + 4, at + 12]) {
            text.get_mut(place..place + 4).ok_or("relocation past the end")?.copy_from_slice(half);
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_counts_is_put_in() {
        assert!(program("framed/nothing").is_err());
        for kind in ["framed", "sized", "unchecked"] {
            let text = program(&format!("{kind}/count")).unwrap();
            let load = text.chunks_exact(8).position(|slot| slot[0] == 0x18).unwrap() * 8;
            let half = |at: usize| u64::from(u32::from_le_bytes(text[at..at + 4].try_into().unwrap()));
            assert_eq!(half(load + 4) | half(load + 12) << 32, COUNTS.as_ptr() as u64);
        }
    }
}
