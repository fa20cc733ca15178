//! Bursts in stages against bursts without and packets one by one: programs whose packets insert, delete and evict what the next packets of
//! the same burst look up.

mod program;
mod table;

use fastrand::Rng;
use paceline_engine::{Engine, Host, LookAhead, NoSlice, Program};
use paceline_frame::{Burst, FrameMeta, MAX_BURST};

use self::program::Subject;

/// Bursts of a trial.
const BURSTS: usize = 6;

/// What packets left: verdicts and bytes, the map's elements in its order, and the order in which it gives them up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Left {
    packets: Vec<(u32, Vec<u8>)>,
    elements: Vec<(Vec<u8>, Vec<u8>)>,
    evicted: Vec<Vec<u8>>,
}

/// How packets run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Staged,
    Bursts,
    OneByOne,
}

/// The program with look-ups ahead of its bursts, if it has a slice.
///
/// # Errors
/// Its slice is faulty.
pub(crate) fn in_stages(program: Program) -> Result<Program, NoSlice> {
    let program = program.with_look_ahead(LookAhead::Always);
    match program.no_slice() {
        Some(no_slice) if no_slice.is_fault() => Err(no_slice.clone()),
        _ => Ok(program),
    }
}

/// Runs the trial of a seed: a random map and program, and random packets in bursts of `1 + seed % 64`. Returns the number of packets.
///
/// # Errors
/// What the ways differ in, as text; or why there is no trial.
pub fn trial(seed: u64) -> Result<u64, String> {
    let mut rng = Rng::with_seed(seed);
    let subject = Subject::new(&mut rng);
    let length = 1 + (seed % MAX_BURST as u64) as usize;
    let packets: Vec<Vec<u8>> = (0..BURSTS * length).map(|_| program::packet(&mut rng)).collect();
    let [staged, bursts, single] = [Way::Staged, Way::Bursts, Way::OneByOne]
        .map(|way| run(&subject, way, &packets, length).map_err(|error| format!("{way:?}: {error}")));
    let (staged, bursts, single) = (staged?, bursts?, single?);
    differs("bursts without", &subject, &staged, &bursts)?;
    // How long a place waits before it is used again depends on the end of bursts, and so the order of evictions.
    if !subject.evicts() {
        differs("one by one", &subject, &staged, &single)?;
    }
    Ok(packets.len() as u64)
}

fn differs(against: &str, subject: &Subject, staged: &Left, other: &Left) -> Result<(), String> {
    if staged == other {
        return Ok(());
    }
    let packet = staged.packets.iter().zip(&other.packets).position(|(one, other)| one != other);
    let what = match packet {
        Some(index) => {
            format!("packet {index}: {:?} and {:?}", staged.packets[index], other.packets[index])
        }
        None if staged.elements != other.elements => {
            format!("elements: {:?} and {:?}", staged.elements, other.elements)
        }
        None => format!("evicted: {:?} and {:?}", staged.evicted, other.evicted),
    };
    Err(format!("in stages, and {against}: {what}\n{subject:?}"))
}

fn run(subject: &Subject, way: Way, packets: &[Vec<u8>], length: usize) -> Result<Left, String> {
    let map = subject.map()?;
    let verified = subject.verified(&map)?;
    let program = Program::load(&verified, vec![map.clone()], Engine::Jit)
        .map_err(|error| paceline::with_causes(&error))?;
    let look_ahead = if way == Way::Staged { LookAhead::Always } else { LookAhead::Never };
    let program = program.with_look_ahead(look_ahead);
    if way == Way::Staged && program.slice().is_none() {
        return Err("there is no slice".to_owned());
    }
    let (mut host, mut left) = (Host::new(0), Left::default());
    for packets in packets.chunks(length) {
        let mut burst = Burst::new(length);
        for packet in packets {
            burst.push(packet, FrameMeta::default()).map_err(|error| paceline::with_causes(&error))?;
        }
        if way == Way::OneByOne {
            for index in 0..burst.len() {
                let run = program.run_raw(&mut burst.frame_mut(index), &mut host);
                run.map_err(|fault| fault.to_string())?;
            }
        } else {
            program.run_burst(&mut burst, &mut host).map_err(|fault| fault.to_string())?;
        }
        left.packets.extend(burst.iter().map(|frame| (frame.code(), frame.packet().to_vec())));
    }
    left.elements = table::elements(&map)?;
    left.evicted = if subject.evicts() { table::evicted(&map)? } else { Vec::new() };
    Ok(left)
}
