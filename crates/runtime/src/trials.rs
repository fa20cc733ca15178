//! Whether bursts of a program are faster with look-ups ahead, found by trying: how much of a map is in the cache depends on the packets,
//! which the size of the map does not tell.
//!
//! A trial is pairs of bursts, one with look-ups ahead and one without. The way that was faster in more of them is taken for a number of
//! bursts, twice as many each time that a trial finds the same, so that less than one burst in a hundred runs the slower way. Results
//! are the same either way.
//!
//! Trials are made where the bytes that look-ups touch are 8 MiB or more, what a second-level TLB reaches, for bursts of 8 packets
//! or more. A trial has 16 pairs.

use std::time::Duration;

/// Pairs of a trial: enough that a few which were interrupted do not decide.
const PAIRS: u32 = 16;
/// Fewest and most bursts between two trials.
const BETWEEN: (u32, u32) = (1 << 11, 1 << 15);
/// Most programs that are remembered.
const MOST: usize = 64;

/// Trials of the programs that run on one host, by their numbers.
#[derive(Debug, Default)]
pub struct Trials {
    programs: Vec<Trial>,
    /// The place of the next program, once there is no room for more.
    next: usize,
}

/// How the next burst of a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// With look-ups ahead.
    pub ahead: bool,
    /// It is one of a trial: the caller measures it, and [records](Trials::record) its time.
    pub tried: bool,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    program: u32,
    /// What the last trial found.
    ahead: bool,
    /// Bursts until the next one.
    wait: u32,
    /// Bursts between the last one and the next.
    between: u32,
    /// Bursts of this one that ran.
    ran: u32,
    /// Pairs of it in which look-ups ahead were faster.
    faster: u32,
    /// Time of the first burst of the pair, in nanoseconds for 1024 packets.
    first: u64,
}

impl Trial {
    const fn new(program: u32) -> Self {
        Self { program, ahead: true, wait: 0, between: BETWEEN.0 / 2, ran: 0, faster: 0, first: 0 }
    }

    /// The order in a pair changes from one to the next, so that neither way profits from it.
    const fn next_is_ahead(&self) -> bool {
        (self.ran ^ self.ran >> 1) & 1 == 0
    }

    fn choose(&mut self) -> Choice {
        match self.wait.checked_sub(1) {
            Some(wait) => {
                self.wait = wait;
                Choice { ahead: self.ahead, tried: false }
            }
            None => Choice { ahead: self.next_is_ahead(), tried: true },
        }
    }

    fn record(&mut self, time: u64) {
        let was_ahead = self.next_is_ahead();
        self.ran += 1;
        if self.ran % 2 == 1 {
            self.first = time;
            return;
        }
        let (ahead, without) = if was_ahead { (time, self.first) } else { (self.first, time) };
        self.faster += u32::from(ahead < without);
        if self.ran == 2 * PAIRS {
            let ahead = self.faster > PAIRS / 2;
            let between = if ahead == self.ahead { (2 * self.between).min(BETWEEN.1) } else { BETWEEN.0 };
            *self = Self { ahead, wait: between, between, ran: 0, faster: 0, ..*self };
        }
    }
}

impl Trials {
    /// How the next burst of a program runs.
    #[inline]
    pub fn choose(&mut self, program: u32) -> Choice {
        match self.programs.iter_mut().find(|trial| trial.program == program) {
            Some(trial) => trial.choose(),
            None => self.begin(program).choose(),
        }
    }

    fn begin(&mut self, program: u32) -> &mut Trial {
        let at = if self.programs.len() < MOST { self.programs.len() } else { self.next };
        self.next = (at + 1) % MOST;
        if at == self.programs.len() {
            self.programs.push(Trial::new(program));
        } else {
            self.programs[at] = Trial::new(program);
        }
        &mut self.programs[at]
    }

    /// Records the time that so many packets of a burst of a trial took.
    pub fn record(&mut self, program: u32, packets: u64, time: Duration) {
        let each = time.as_nanos().min(1 << 50) as u64 * 1024 / packets.max(1);
        if let Some(trial) = self.programs.iter_mut().find(|trial| trial.program == program) {
            trial.record(each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs bursts of which those with look-ups ahead take so much time in relation to others. Returns how many ran so, and how many not.
    fn run(trials: &mut Trials, bursts: u32, ahead: u64, without: u64) -> (u32, u32) {
        let mut counts = (0, 0);
        for burst in 0..bursts {
            let choice = trials.choose(7);
            *if choice.ahead { &mut counts.0 } else { &mut counts.1 } += 1;
            if choice.tried {
                // Some bursts are interrupted.
                let noise = if burst % 5 == 0 { 1_000_000 } else { 0 };
                let time = if choice.ahead { ahead } else { without } + noise;
                trials.record(7, 64, Duration::from_nanos(time));
            }
        }
        counts
    }

    #[test]
    fn the_faster_way_is_taken() {
        for (ahead, without) in [(2000, 5000), (5000, 2000)] {
            let mut trials = Trials::default();
            let (with, others) = run(&mut trials, 100_000, ahead, without);
            let slower = if ahead < without { others } else { with };
            assert!(slower < 300, "{slower} of {}", with + others);
        }
    }

    #[test]
    fn what_becomes_faster_is_found() {
        let mut trials = Trials::default();
        run(&mut trials, 200_000, 2000, 5000);
        run(&mut trials, BETWEEN.1 + 2 * PAIRS, 5000, 2000);
        let (with, others) = run(&mut trials, 100_000, 5000, 2000);
        assert!(with < 300, "{with} of {}", with + others);
    }

    #[test]
    fn only_the_latest_programs_are_remembered() {
        let mut trials = Trials::default();
        (0..1000).for_each(|program| assert!(trials.choose(program).tried));
        assert_eq!(trials.programs.len(), MOST);
        trials.record(3, 64, Duration::from_nanos(1));
        trials.record(999, 0, Duration::MAX);
    }
}
