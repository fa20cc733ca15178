//! Counts of redirected packets, by target.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter::Sum;

use paceline::{Burst, BurstFault, Host, RedirectTarget, Runner, Verdict};
use serde_json::{Value as Json, json};

use crate::common::console;
use crate::common::outcome::map_name;

/// Packets by where they go, by the number of a map (0 for interfaces) and the key in it or index of the interface.
#[derive(Clone, Debug, Default)]
pub(super) struct Redirects(BTreeMap<(u32, u32), u64>);

impl Redirects {
    fn count(&mut self, burst: &Burst, packets: usize) {
        if !burst.has(Verdict::Redirect) {
            return;
        }
        let redirected = burst.iter().take(packets).filter(|frame| frame.verdict() == Verdict::Redirect);
        for redirect in redirected.filter_map(|frame| frame.redirect()) {
            let place = match redirect.target {
                RedirectTarget::Interface { ifindex } => (0, ifindex),
                RedirectTarget::Map { map, key } => (map, key),
            };
            *self.0.entry(place).or_default() += 1;
        }
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        for ((map, key), packets) in &self.0 {
            match map {
                0 => writeln!(out, "  to interface {key}: {packets}")?,
                map => writeln!(out, "  to {}[{key}]: {packets}", console::shown(&map_name(*map)))?,
            }
        }
        Ok(())
    }

    pub(super) fn to_json(&self) -> Json {
        let place = |(&(map, key), packets): (&(u32, u32), &u64)| match map {
            0 => json!({ "interface": key, "packets": packets }),
            map => json!({ "map": map_name(map), "key": key, "packets": packets }),
        };
        self.0.iter().map(place).collect()
    }
}

impl Sum for Redirects {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        for (place, packets) in all.flat_map(|one| one.0) {
            *sum.0.entry(place).or_default() += packets;
        }
        sum
    }
}

/// Counts redirects around another runner.
pub(super) struct Counting<R> {
    pub(super) runner: R,
    pub(super) redirects: Redirects,
}

impl<R> Counting<R> {
    pub(super) fn new(runner: R) -> Self {
        Self { runner, redirects: Redirects::default() }
    }
}

impl<R: Runner> Runner for &mut Counting<R> {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let ran = self.runner.run_burst(burst, host);
        let packets = ran.as_ref().map_or_else(|fault| fault.index, |()| burst.len());
        self.redirects.count(burst, packets);
        ran
    }

    fn keeps_bytes(&self) -> bool {
        self.runner.keeps_bytes()
    }
}
