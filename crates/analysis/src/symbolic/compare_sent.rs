//! Whether readers get other events and traces from one program than from another.

use crate::solver::Term;
use paceline_spec::format::Piece;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::state::{First, Sent, State};

impl Explorer<'_> {
    /// Adds whether some reader gets something else. Each map and the log have readers of their own, which see an order each.
    pub(crate) fn other_sent(
        &mut self,
        first: &First,
        state: &State,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        let (a, b) = (&first.sent, &state.sent);
        let mut targets: Vec<_> = a.iter().chain(b.iter()).map(target).collect();
        targets.sort_unstable();
        targets.dedup();
        for wanted in targets {
            let of = |sent: &[Sent]| -> Vec<Sent> {
                sent.iter().filter(|sent| target(sent) == wanted).cloned().collect()
            };
            let (a, b) = (of(a), of(b));
            if a.len() != b.len() {
                all.push(self.terms.bool(true));
                continue;
            }
            for (a, b) in a.iter().zip(&b) {
                self.other_message(a, b, state, all)?;
            }
        }
        Ok(())
    }

    fn other_message(
        &mut self,
        a: &Sent,
        b: &Sent,
        state: &State,
        all: &mut Vec<Term>,
    ) -> Result<(), GiveUp> {
        match (a, b) {
            (Sent::Event { data, captured, .. }, Sent::Event { data: other, captured: others, .. }) => {
                self.other_numbers(data, other, all);
                match (captured, others) {
                    (Some(a), Some(b)) => self.other_captured(a, b, state, all)?,
                    (None, None) => {}
                    _ => all.push(self.terms.bool(true)),
                }
            }
            (Sent::Trace { pieces, arguments }, Sent::Trace { pieces: other, arguments: others }) => {
                let is_text = |pieces: &[Piece]| pieces.iter().all(|piece| matches!(piece, Piece::Byte(_)));
                match pieces == other {
                    true => self.other_numbers(arguments, others, all),
                    false if is_text(pieces) && is_text(other) => all.push(self.terms.bool(true)),
                    // They may print the same.
                    false => return Err(GiveUp::HelperUse("bpf_trace_printk", "with another format")),
                }
            }
            _ => all.push(self.terms.bool(true)),
        }
        Ok(())
    }

    fn other_numbers(&mut self, a: &[Term], b: &[Term], all: &mut Vec<Term>) {
        if a.len() != b.len() {
            return all.push(self.terms.bool(true));
        }
        for (&a, &b) in a.iter().zip(b) {
            all.push(self.unequal(a, b));
        }
    }
}

/// Whose reader gets it: the map's, or that of the log.
const fn target(sent: &Sent) -> Option<usize> {
    match sent {
        Sent::Event { map, .. } => Some(*map),
        Sent::Trace { .. } => None,
    }
}
