//! Verification of long programs with many branches.

use std::error::Error;
use std::fmt::Write;

use paceline_isa::assemble;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Stats, verify};

use crate::measure::{Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Settings, Table};

/// Instructions of the programs.
const LENGTH: usize = 10_000;

/// Bar for one program in nanoseconds: a second.
const BAR: Bar = Bar::Most(1e9);

/// Kind of branches: the text of one block, given its number.
type Block = fn(usize) -> String;

/// Rows and their blocks.
const SHAPES: &[(&str, Block)] = &[
    ("branches on packet bytes, which only count", counting),
    ("branches that bound an index into the stack", indexing),
];

pub(crate) fn table(settings: Settings) -> Table {
    let mut rows = Vec::new();
    for &(name, block) in SHAPES {
        let program = program(block)?;
        let mut works: [Work<'_>; 1] = [Box::new(|| simulate(&program).map(|_| 1))];
        let times = interleaved(settings.smoke, &mut works)?;
        let name = format!("verify {} instructions: {name}", program.insns.len());
        rows.push(Row::new(name, "", Figure::Time { ours: times[0], against: None }).with_bar(Some(BAR)));
    }
    Ok(rows.into())
}

fn simulate(program: &ProgramSpec) -> Result<Stats, Box<dyn Error>> {
    Ok(*verify(program, &[], None, &Options::default())?.stats())
}

/// A program that checks 64 bytes of packet, followed by blocks up to its full length.
fn program(block: Block) -> Result<ProgramSpec, Box<dyn Error>> {
    const START: &str = "
        r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 64
        if r4 > r3 goto out
        *(u64 *)(r10 - 8) = 0
        *(u64 *)(r10 - 16) = 0
        r6 = 0\n";
    const END: &str = "out:\nr0 = 2\nexit\n";
    let mut text = START.to_owned();
    let mut number = 0;
    let mut length = START.trim().lines().count();
    while length < LENGTH - 2 {
        let block = block(number);
        length += block.lines().filter(|line| !line.ends_with(':')).count();
        text += &block;
        number += 1;
    }
    // The jump to the end has a range of 32767 instructions.
    write!(text, "{END}")?;
    let code = assemble(&text, &())?;
    Ok(ProgramSpec::new(
        "branches",
        ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
        code.encode()?,
    ))
}

fn counting(number: usize) -> String {
    let (place, value) = (number % 64, number % 251);
    format!(
        "r5 = *(u8 *)(r2 + {place})\nif r5 > {value} goto skip{number}\nr6 += r5\nskip{number}:\nr6 ^= {number}\n"
    )
}

fn indexing(number: usize) -> String {
    let place = number % 64;
    format!(
        "r5 = *(u8 *)(r2 + {place})\nr7 = 0\nif r5 > 15 goto skip{number}\nr7 = r5\nskip{number}:\n\
         r8 = r10\nr8 += -16\nr8 += r7\nr9 = *(u8 *)(r8 + 0)\nr6 += r9\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without pruning the number of paths doubles at each branch.
    #[test]
    fn long_programs_are_verified_in_a_few_passes() {
        for (name, block) in SHAPES {
            let program = program(*block).unwrap();
            assert!(program.insns.len().abs_diff(LENGTH) < 16, "{name}: {}", program.insns.len());
            let stats = simulate(&program).unwrap();
            assert!(stats.instructions < 5 * LENGTH, "{name}: {stats:?}");
        }
    }
}
