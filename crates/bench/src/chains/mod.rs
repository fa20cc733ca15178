//! Cost of a chain (`chains`): all programs in one function against one call per program, and against other mechanisms.
//!
//! All contenders run bursts of 64 packets. Before measuring, all must return the same verdicts.

#[cfg(feature = "kernel")]
mod kernel;
pub(crate) mod programs;

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use paceline::{Burst, Chain, ChainPart, Engine, FrameMeta, Host, LookAhead, Map, Program};
use paceline_frame::Verdict;
use paceline_spec::graph::{Edges, Graph, Next, Node};
use paceline_verifier::Verified;
use programs::Part;

use crate::engines::Packets;
use crate::measure::{Timing, Work, rounds};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings, Table};

/// Rounds of a full measurement.
const ROUNDS: usize = 31;
/// Approximate number of packets per round.
const ROUND: usize = 50_000;
/// Lengths of chains.
const LENGTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// Number of programs in the chain that is recompiled.
const RECOMPILED: usize = 10;

pub(crate) fn table(settings: Settings) -> Table {
    if !Engine::Jit.is_available() {
        return Ok(Vec::new().into());
    }
    let mut rows = Vec::new();
    rows.extend(steps(settings)?);
    rows.extend(two_in_one(settings)?);
    rows.extend(real_programs(settings)?);
    rows.extend(compilations(settings)?);
    Ok(rows.into())
}

fn borrowed(parts: &[Part]) -> Vec<(&Verified, Vec<Arc<Map>>)> {
    parts.iter().map(|(verified, maps)| (verified, maps.clone())).collect()
}

/// A chain in which each program passes packets to the next one.
fn chain(parts: &[Part]) -> Result<Chain, Box<dyn Error>> {
    let graph = Graph::sequence(parts.len())?;
    Ok(Chain::load(&borrowed(parts), graph, Engine::Jit)?)
}

/// The same with one call per program.
fn called(parts: &[Part]) -> Result<Chain, Box<dyn Error>> {
    let load = |(verified, maps): &Part| Program::load(verified, maps.clone(), Engine::Jit);
    let programs = parts.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    Ok(Chain::new(programs, Graph::sequence(parts.len())?)?)
}

type Run = Box<dyn FnMut(&mut Burst) -> Result<(), Box<dyn Error>>>;

fn running(chain: Chain) -> Run {
    let mut host = Host::default();
    Box::new(move |burst| Ok(chain.run_burst(burst, &mut host)?))
}

fn counting(chain: Chain) -> Result<Run, Box<dyn Error>> {
    let (mut host, mut counts) = (Host::default(), chain.counts()?);
    Ok(Box::new(move |burst| Ok(chain.run_burst_counted(burst, &mut host, &mut counts)?)))
}

/// The kernel's proposed chain calls: a loop that, for each packet, looks up the next program by program and verdict.
fn hashed(parts: &[Part]) -> Result<Run, Box<dyn Error>> {
    let load = |(verified, maps): &Part| Program::load(verified, maps.clone(), Engine::Jit);
    let programs: Vec<Program> = parts.iter().map(load).collect::<Result<_, _>>()?;
    let mut next: HashMap<(u32, u32), Program, foldhash::fast::RandomState> = HashMap::default();
    for pair in programs.windows(2) {
        next.insert((pair[0].id(), Verdict::Pass as u32), pair[1].clone());
    }
    let first = programs.first().ok_or("no program")?.clone();
    let mut host = Host::default();
    Ok(Box::new(move |burst| {
        for mut frame in burst.iter_mut() {
            let mut program = &first;
            loop {
                let code = program.run_raw(&mut frame, &mut host)? as u32;
                match next.get(&(program.id(), code)) {
                    Some(following) => program = following,
                    None => break,
                }
            }
        }
        Ok(())
    }))
}

/// A burst of the same packet.
fn hit() -> Result<Vec<Burst>, Box<dyn Error>> {
    let mut packets = Packets::hit()?;
    let packet = packets.frames().first().ok_or("no packet")?.packet().to_vec();
    let mut burst = Burst::default();
    while !burst.is_full() {
        burst.push(&packet, FrameMeta::default())?;
    }
    Ok(vec![burst])
}

/// Time per packet of each contender.
fn measure(
    settings: Settings,
    contenders: Vec<Run>,
    bursts: Vec<Burst>,
) -> Result<Vec<Timing>, Box<dyn Error>> {
    measure_rounds(settings, ROUND, contenders, bursts)
}

/// The same with an approximate number of packets per round.
fn measure_rounds(
    settings: Settings,
    round: usize,
    mut contenders: Vec<Run>,
    mut bursts: Vec<Burst>,
) -> Result<Vec<Timing>, Box<dyn Error>> {
    let mut expected: Option<Vec<Verdict>> = None;
    for (index, run) in contenders.iter_mut().enumerate() {
        let mut found = Vec::new();
        for burst in &mut bursts {
            run(burst)?;
            found.extend(burst.iter().map(|frame| frame.verdict()));
        }
        if *expected.get_or_insert_with(|| found.clone()) != found {
            return Err(format!("chains: contender {index} comes to other verdicts").into());
        }
    }
    let packets: usize = bursts.iter().map(Burst::len).sum();
    let passes = if settings.smoke { 1 } else { round.div_ceil(packets) };
    let bursts = RefCell::new(bursts);
    let work = |mut run: Run| -> Work<'_> {
        let bursts = &bursts;
        Box::new(move || {
            let mut bursts = bursts.borrow_mut();
            for _ in 0..passes {
                for burst in bursts.iter_mut() {
                    run(burst)?;
                }
            }
            Ok((passes * packets) as u64)
        })
    };
    let mut works: Vec<Work<'_>> = contenders.into_iter().map(work).collect();
    rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)
}

/// Cost of each further program: the PASS and DROP of the chain-call patches, and programs that read the packet.
fn steps(settings: Settings) -> Rows {
    let mut rows = Vec::new();
    for (title, pass, drop) in
        [("PASS then DROP", programs::PASS, programs::DROP), ("headers", programs::IPV4, programs::TCP)]
    {
        let (pass, drop) = (programs::part(pass)?, programs::part(drop)?);
        let of_length = |length: usize| -> Vec<Part> {
            let passes = std::iter::repeat_n(&pass, length - 1);
            passes.chain([&drop]).cloned().collect()
        };
        let mut each = Vec::new();
        for length in LENGTHS {
            each.push(running(chain(&of_length(length))?));
        }
        let others = each.len();
        let longest = LENGTHS[LENGTHS.len() - 1];
        for length in [1, longest] {
            each.push(running(called(&of_length(length))?));
            each.push(hashed(&of_length(length))?);
            each.push(counting(chain(&of_length(length))?)?);
        }
        let times = measure_apart(settings, each)?;
        let per_step = |long: Timing, short: Timing| long.minus(short).divided_by((longest - 1) as f64);
        for (length, timing) in LENGTHS.into_iter().zip(&times).skip(1) {
            let further = timing.minus(times[0]).divided_by((length - 1) as f64);
            let figure = Figure::Time { ours: further, against: None };
            let row = Row::new(format!("{title}: each further program of a chain of {length}"), "", figure);
            rows.push(Row { bar: Some(Bar::Most(1.0)), reach: Some(Bar::Most(0.5)), ..row });
        }
        let fused = per_step(times[LENGTHS.len() - 1], times[0]);
        let [call, hash, counted] =
            [0, 1, 2].map(|way| per_step(times[others + 3 + way], times[others + way]));
        let step = |against: Timing| Figure::Time { ours: fused, against: Some(against) };
        rows.push(Row::new(
            format!("{title}: each further program of {longest}"),
            "one call per program",
            step(call),
        ));
        let row = Row::new(
            format!("{title}: each further program of {longest}"),
            "a loop with a hash look-up (chain calls)",
            step(hash),
        );
        rows.push(Row { bar: Some(Bar::Ratio(8.0)), reach: Some(Bar::Ratio(15.0)), ..row });
        let more = Figure::Time { ours: counted.minus(fused), against: None };
        let row = Row::new(format!("{title}: what counting takes more, each program"), "", more);
        rows.push(Row { bar: Some(Bar::Most(0.5)), ..row });
        #[cfg(feature = "kernel")]
        if title == "PASS then DROP" {
            rows.extend(kernel::rows(settings, fused)?);
        }
    }
    Ok(rows)
}

/// The same for contenders whose verdicts may differ.
fn measure_apart(settings: Settings, contenders: Vec<Run>) -> Result<Vec<Timing>, Box<dyn Error>> {
    let bursts = RefCell::new(hit()?);
    let passes = if settings.smoke { 1 } else { ROUND.div_ceil(64) };
    let work = |mut run: Run| -> Work<'_> {
        let bursts = &bursts;
        Box::new(move || {
            let mut bursts = bursts.borrow_mut();
            let burst = bursts.first_mut().ok_or("no burst")?;
            for _ in 0..passes {
                run(burst)?;
            }
            Ok((passes * burst.len()) as u64)
        })
    };
    let mut works: Vec<Work<'_>> = contenders.into_iter().map(work).collect();
    rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)
}

/// Two programs against one program with the work of both.
fn two_in_one(settings: Settings) -> Rows {
    let two = [programs::part(programs::IPV4)?, programs::part(programs::TCP)?];
    let one = [programs::part(programs::BOTH)?];
    let contenders = |fused: Chain, one: Chain| vec![running(fused), running(one)];
    let mut rows = Vec::new();
    for (name, bursts) in [("hit", hit()?), ("miss", Packets::miss()?.into_shuffled())] {
        let runs = contenders(chain(&two)?, chain(&one)?);
        let times = measure(settings, runs, bursts)?;
        let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
        let row = Row::new(format!("two programs fused, {name}"), "one program that does both", figure);
        rows.push(Row { bar: Some(Bar::Ratio(1.0 / 1.15)), reach: Some(Bar::Ratio(1.0)), ..row });
    }
    Ok(rows)
}

/// Three example programs that parse the same headers.
fn real_programs(settings: Settings) -> Rows {
    let mut rows = Vec::new();
    for (examples, miss) in programs::EXAMPLES.iter().flat_map(|names| [(names, false), (names, true)]) {
        let (name, bursts) = if miss { ("miss", Packets::miss()?.into_shuffled()) } else { ("hit", hit()?) };
        let (fused, apart) = (programs::examples(examples, 3)?, programs::examples(examples, 3)?);
        let graph = through(fused.len())?;
        let one = Chain::load(&borrowed(&fused), graph.clone(), Engine::Jit)?;
        let load = |(verified, maps): &Part| Program::load(verified, maps.clone(), Engine::Jit);
        let programs = apart.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let times = measure(settings, vec![running(one), running(Chain::new(programs, graph)?)], bursts)?;
        let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
        let name = format!("{} fused, {name}", examples.join(", "));
        let row = Row::new(name, "one call per program", figure);
        rows.push(Row { bar: Some(Bar::Ratio(1.3)), reach: Some(Bar::Ratio(2.0)), ..row });
    }
    Ok(rows)
}

/// A graph in which all programs run, whatever their verdicts; the verdict of the last one is final.
fn through(nodes: usize) -> Result<Graph, Box<dyn Error>> {
    let edges = |node: usize| match node + 1 {
        next if next < nodes => Edges::NONE.with_wildcard(Next::Program(Node::new(next))),
        _ => Edges::NONE,
    };
    Ok(Graph::new((0..nodes).map(edges).collect())?)
}

/// The parts of a chain that is compiled.
fn compiled_parts() -> Result<(Vec<Part>, Vec<ChainPart>), Box<dyn Error>> {
    let programs = programs::examples(&programs::EXAMPLES[2], RECOMPILED)?;
    let part = |(verified, maps): &Part| ChainPart::new(Arc::new(verified.clone()), maps.clone());
    let parts = programs.iter().map(part).collect::<Result<_, _>>()?;
    Ok((programs, parts))
}

/// Compiles the chain of [`compilations`] so many times, for a profiler. Returns the number of instructions that were compiled.
pub(crate) fn compile(rounds: usize) -> Result<usize, Box<dyn Error>> {
    let (programs, parts) = compiled_parts()?;
    let graph = Graph::sequence(parts.len())?;
    for _ in 0..rounds {
        black_box(Chain::fused(parts.clone(), graph.clone(), LookAhead::Never)?);
    }
    let instructions: usize = programs.iter().map(|(verified, _)| verified.code().iter().count()).sum();
    // As in `compile::run`.
    std::mem::forget((programs, parts));
    Ok(rounds * instructions)
}

/// Time to compile a chain: a new one, one of known programs, and its code that counts besides.
fn compilations(settings: Settings) -> Rows {
    let (programs, parts) = compiled_parts()?;
    let graph = Graph::sequence(parts.len())?;
    let look_ahead = LookAhead::default();
    let mut works: Vec<Work<'_>> = vec![
        Box::new(|| {
            black_box(Chain::load(&borrowed(&programs), graph.clone(), Engine::Jit)?);
            Ok(1)
        }),
        Box::new(|| {
            black_box(Chain::fused(parts.clone(), graph.clone(), look_ahead)?);
            Ok(1)
        }),
        Box::new(|| {
            black_box(Chain::fused(parts.clone(), graph.clone(), look_ahead)?.counts()?);
            Ok(1)
        }),
    ];
    let times = rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)?;
    let row = |(name, ours)| {
        let figure = Figure::Time { ours, against: None };
        let row = Row::new(format!("{name} of {RECOMPILED} examples"), "", figure);
        Row { bar: Some(Bar::Most(2e6)), reach: Some(Bar::Most(0.5e6)), ..row }
    };
    let names = ["compiling a chain", "recompiling a chain", "recompiling a chain that counts"];
    Ok(names.into_iter().zip(times).map(row).collect())
}
