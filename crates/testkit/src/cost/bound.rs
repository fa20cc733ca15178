//! Bounds of the cost of a program.

use std::fmt;

use super::measure::Cost;

/// Fixed allowance in nanoseconds.
const BASE_TIME: u64 = 50_000_000;
/// Nanoseconds per slot or simulated instruction: a hundred times the usual cost, because an instruction may copy and
/// compare eight full frames.
const TIME_PER_INSTRUCTION: u64 = 10_000;
/// Nanoseconds per step of a comparison, or per type.
const TIME_PER_STEP: u64 = 60;
/// Factor for unoptimized code on a loaded machine.
const SLOWDOWN: u64 = if cfg!(debug_assertions) { 20 } else { 1 };
/// Time below which growth is noise, in nanoseconds.
const LEAST_TIME: u64 = 30_000_000;
/// Resolution of the scheduler's clock, in nanoseconds.
const SHORTEST: u64 = 8_000_000;
/// Maximum growth of the time per counted unit, if the program is four times as large.
const MOST_GROWTH: f64 = 3.0;
/// KiB of a process without a program.
const BASE_MEMORY: u64 = 64 << 10;
/// KiB per slot or simulated instruction.
const MEMORY_PER_INSTRUCTION: u64 = 2;
/// KiB for states, `MAX_BYTES`, and their overhead.
const MOST_MEMORY: u64 = 3 << 19;

/// An exceeded bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Excess {
    /// Nanoseconds of a phase, and the bound.
    Time(&'static str, u64, u64),
    /// KiB, and the bound.
    Memory(u64, u64),
    /// Growth of the time of a phase per counted unit.
    Growth(&'static str, f64),
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(phase, time, most) => {
                write!(f, "{phase} takes {} ms, at most {} are allowed", time / 1_000_000, most / 1_000_000)
            }
            Self::Memory(peak, most) => write!(f, "{peak} KiB of memory, at most {most} are allowed"),
            Self::Growth(phase, growth) => {
                write!(
                    f,
                    "{phase}: time for each thing counted grows by {growth:.1}, at most {MOST_GROWTH} is allowed"
                )
            }
        }
    }
}

/// The phases of a cost: their names, times, and bounds by the counted units.
fn phases(cost: &Cost) -> [(&'static str, u64, u64); 3] {
    let of_slots = cost.slots * TIME_PER_INSTRUCTION;
    let verify =
        of_slots + cost.instructions * TIME_PER_INSTRUCTION + (cost.steps + cost.types) * TIME_PER_STEP;
    [("verify", cost.verify, verify), ("threaded", cost.threaded, of_slots), ("jit", cost.jit, of_slots)]
}

/// Exceeded bounds of one program.
#[must_use]
pub fn excess(cost: &Cost) -> Vec<Excess> {
    let most = |allowed: u64| (BASE_TIME + allowed) * SLOWDOWN;
    let times = phases(cost).into_iter().filter(|&(_, time, allowed)| time > most(allowed));
    let mut found: Vec<_> =
        times.map(|(phase, time, allowed)| Excess::Time(phase, time, most(allowed))).collect();
    let counted = (cost.slots + cost.instructions) * MEMORY_PER_INSTRUCTION + cost.types / 8;
    let memory = BASE_MEMORY + counted.min(MOST_MEMORY);
    if cost.peak > memory {
        found.push(Excess::Memory(cost.peak, memory));
    }
    found
}

/// Excessive growth from a program to one of four times its size.
#[must_use]
pub fn growth(small: &Cost, large: &Cost) -> Vec<Excess> {
    let both = phases(small).into_iter().zip(phases(large));
    let grown = both.filter(|(_, (_, time, _))| *time > LEAST_TIME * SLOWDOWN).map(|(before, after)| {
        // Times below the clock's resolution count as the resolution.
        let rate = |(_, time, allowed): (&str, u64, u64)| time.max(SHORTEST) as f64 / allowed.max(1) as f64;
        (after.0, rate(after) / rate(before))
    });
    grown
        .filter(|&(_, growth)| growth > MOST_GROWTH)
        .map(|(phase, growth)| Excess::Growth(phase, growth))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_nothing_counted_explains_is_too_much() {
        let cost = Cost { slots: 1000, instructions: 1000, verify: 40_000_000_000, ..Cost::default() };
        assert!(matches!(excess(&cost)[..], [Excess::Time("verify", ..)]));
        assert_eq!(excess(&Cost { verify: 1_000_000, ..cost }), []);
    }

    #[test]
    fn time_that_grows_as_the_square_is_too_much() {
        let small = Cost { slots: 1000, jit: 50_000_000, ..Cost::default() };
        let linear = Cost { slots: 4000, jit: 200_000_000, ..Cost::default() };
        let square = Cost { slots: 4000, jit: 800_000_000, ..Cost::default() };
        assert_eq!(growth(&small, &linear), []);
        assert!(matches!(growth(&small, &square)[..], [Excess::Growth("jit", _)]));
    }
}
