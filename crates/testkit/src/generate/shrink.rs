//! Shrinks failing programs.

use super::generated::Generated;
use super::state::State;

/// The smallest program found that still fails: removes steps, in runs first and then one by one, keeps one failing input,
/// and sets words of it to zero.
#[must_use]
pub fn shrink(generated: &Generated, mut fails: impl FnMut(&Generated) -> bool) -> Generated {
    let mut best = generated.clone();
    let one_input = |input: &State| Generated { steps: generated.steps.clone(), inputs: vec![input.clone()] };
    if let Some(single) = generated.inputs.iter().map(one_input).find(|candidate| fails(candidate)) {
        best = single;
    }
    while take_out_steps(&mut best, &mut fails) | clear_words(&mut best, &mut fails) {}
    best
}

/// Whether a step could be removed.
fn take_out_steps(best: &mut Generated, fails: &mut impl FnMut(&Generated) -> bool) -> bool {
    let before = best.steps.len();
    let mut len = best.steps.len();
    while len > 0 {
        let mut start = 0;
        while start < best.steps.len() {
            let mut candidate = best.clone();
            candidate.steps.drain(start..(start + len).min(candidate.steps.len()));
            if fails(&candidate) {
                *best = candidate;
            } else {
                start += len;
            }
        }
        len /= 2;
    }
    best.steps.len() < before
}

fn clear_words(best: &mut Generated, fails: &mut impl FnMut(&Generated) -> bool) -> bool {
    let mut any = false;
    for index in 0..best.inputs.len() {
        let words: Vec<u64> = best.inputs[index].words().collect();
        for word in (0..words.len()).filter(|&word| words[word] != 0) {
            let mut candidate = best.clone();
            candidate.inputs[index] = candidate.inputs[index].with_zero(word);
            if fails(&candidate) {
                *best = candidate;
                any = true;
            }
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use paceline_isa::{AluOp, Insn};

    use super::shrink;
    use crate::generate::mix::Mix;
    use crate::generate::{Generated, Step};

    #[test]
    fn only_the_guilty_steps_stay() {
        let guilty = |step: &Step| matches!(step, Step::Plain(Insn::Alu { op: AluOp::SMod, .. }));
        let fails = |generated: &Generated| generated.steps.iter().filter(|step| guilty(step)).count() >= 2;
        let mix = Mix { steps: 400, ..Mix::default() };
        let large =
            (0..).map(|seed| Generated::new(seed, &mix, 3)).find(fails).expect("one of all seeds has two");
        let small = shrink(&large, fails);
        assert_eq!(small.steps.len(), 2, "{:?}", small.steps);
        assert_eq!(small.inputs.len(), 1);
        assert!(small.inputs[0].words().all(|word| word == 0));
    }
}
