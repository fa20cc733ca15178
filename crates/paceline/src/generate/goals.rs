//! Inputs for goals: explored, run, varied.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use paceline_analysis::symbolic::{
    Boundary, Decided, Edge, Fate, Goal, Goals, Input, Options, Progress, explore,
};
use paceline_engine::Host;
use paceline_isa::Insn;
use paceline_spec::ProgramSpec;

use super::confirm::Confirmer;
use super::found::{Confirmed, Further, GenerateError, Generated, Variant};
use super::paths;
use super::vary::Pattern;
use crate::load::Object;

/// Looks for an input for each goal of a program, by default each side of each conditional jump, and runs each on the plain interpreter.
///
/// # Errors
/// The program is refused, or cannot be loaded.
pub fn generate(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
) -> Result<Generated, GenerateError> {
    generate_watched(object, program, options, &mut |_| {})
}

/// The same; `tell` is called after each path.
///
/// # Errors
/// The program is refused, or cannot be loaded.
pub fn generate_watched(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
    tell: &mut dyn FnMut(Progress),
) -> Result<Generated, GenerateError> {
    let until = Instant::now().checked_add(options.time);
    let verified = object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))?;
    let mut options = Options { random: Host::randoms_of, ..*options };
    if options.goals == Goals::Sides && !verified.code().iter().any(|(_, insn)| is_branch(insn)) {
        // A program without branches has one path.
        options.goals = Goals::Paths(1);
    }
    // Boundaries of paths are those of the inputs that are added for sides.
    let of_paths = matches!(options.goals, Goals::Paths(_));
    let explored = Options { boundaries: options.boundaries && !of_paths, ..options };
    let exploration = explore(&verified, object.maps(), &explored, tell);
    let mut generated = Generated {
        paths: exploration.paths,
        questions: exploration.questions,
        left: exploration.left,
        bounds: exploration.bounds,
        ..Generated::default()
    };
    let confirmer = Confirmer::new(object, &program.name);
    for (goal, fate) in exploration.goals {
        match fate {
            Fate::Reached(input) => match confirmer.confirm(&input, goal)? {
                Ok(confirmed) => drop(generated.reached.insert(goal, confirmed)),
                Err(how) => generated.miss(goal, *input, how),
            },
            Fate::Unreachable { by_verifier } => drop(generated.unreachable.insert(goal, by_verifier)),
            Fate::GivenUp(place) => drop(generated.given_up.insert(goal, place)),
        }
    }
    if options.boundaries {
        further(&confirmer, &mut generated, (exploration.varied, exploration.boundaries), until)?;
        if options.goals == Goals::Sides {
            paths::add(&confirmer, &mut generated, (&verified, object.maps()), (&options, until))?;
        }
    }
    Ok(generated)
}

const fn is_branch(insn: &Insn) -> bool {
    matches!(insn, Insn::JumpIf { .. })
}

/// Adds further inputs: for each input that is kept one with bytes that differ, and one for each boundary that none of them comes to.
/// Bytes are not looked for when the time is over.
fn further(
    confirmer: &Confirmer<'_>,
    generated: &mut Generated,
    (varied, boundaries): (BTreeMap<Goal, Input>, Vec<Boundary>),
    until: Option<Instant>,
) -> Result<(), GenerateError> {
    let is_over = || until.is_some_and(|until| Instant::now() >= until);
    let kept: Vec<(Goal, Confirmed)> =
        generated.inputs().into_iter().map(|(goal, _, confirmed)| (goal, confirmed.clone())).collect();
    let mut edges: BTreeSet<(usize, Edge)> = BTreeSet::new();
    for (goal, confirmed) in kept {
        edges.extend(&confirmed.edges);
        if is_over() {
            generated.unvaried += 1;
            continue;
        }
        let other = match varied.get(&goal) {
            Some(input) => confirmer.confirm(input, goal)?.ok(),
            None => None,
        };
        for (variant, pattern) in [(Variant::Filled, Pattern::Plain), (Variant::Inverted, Pattern::Inverted)]
        {
            let base = other.as_ref().filter(|_| variant == Variant::Filled);
            let filled = confirmer.filled(base.unwrap_or(&confirmed), &Decided::default(), None, pattern)?;
            if let Some(filled) = filled.or_else(|| base.cloned()) {
                edges.extend(&filled.edges);
                generated.more.push(Further { goal, variant, confirmed: filled });
            }
        }
    }
    for Boundary { side, edge, input, decided, .. } in boundaries {
        let goal = Goal::Side(side);
        let is_known = edges.contains(&(side.slot, edge));
        match confirmer.confirm(&input, goal)? {
            Ok(_) if is_known && edge != Edge::Equal => {}
            Ok(confirmed) => {
                let filled = match is_over() {
                    true => {
                        generated.unvaried += 1;
                        None
                    }
                    false => {
                        confirmer.filled(&confirmed, &decided, Some((side.slot, edge)), Pattern::Plain)?
                    }
                };
                let confirmed = filled.unwrap_or(confirmed);
                let longer = confirmer.longer(&confirmed, Some((side.slot, edge)))?;
                let confirmed = longer.unwrap_or(confirmed);
                // Where others come to the boundary, this one has other bits in the bytes that are compared, which a mask removes.
                let is_changed = |at: &usize| confirmed.input.packet.get(*at) != input.packet.get(*at);
                if !is_known || decided.packet.iter().any(is_changed) {
                    edges.extend(&confirmed.edges);
                    generated.more.push(Further { goal, variant: Variant::At(edge), confirmed });
                }
            }
            Err(how) => generated.miss(goal, input, how),
        }
    }
    Ok(())
}
