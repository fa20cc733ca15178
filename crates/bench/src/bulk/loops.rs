//! The loop of each workload.

use std::cell::RefCell;
use std::error::Error;

use paceline::{Burst, Collection, Engine, FrameMeta, Host, LoadOptions, Object, Program, XdpAttach};
use paceline_engine::{NativeSettings, Prefetch};
use paceline_testkit::text;

use super::cache::{evict, in_huge_pages};
use crate::chains::programs::IPV4;
use crate::engines::{OBJECT, Packets};
use crate::measure::{Timing, Work, prepared};
use crate::report::{Bar, Figure, Row};
use crate::settings::{CONTENDERS, Rows, Settings};

/// Rounds of a full measurement.
const ROUNDS: usize = 31;
/// Approximate number of packets per round.
const ROUND: usize = 100_000;

/// The workloads and their names.
const WORKLOADS: [(&str, &str); 5] = [
    ("drop", "W1 drop"),
    ("port22", "W2 port 22"),
    ("port22_payload", "W3 port 22 with payload"),
    ("count", "W4 count protocols"),
    ("xdp1", "xdp1, drop with header touch"),
];

/// The program that is too short for prefetches.
const SHORT: (&str, &str) = ("ipv4", "9 instructions, IPv4 or not");

/// How packets run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The compiler's normal loop.
    Ours,
    /// One call per packet.
    Single,
    /// The loop with bursts of one packet.
    Ones,
    /// The loop with this prefetch distance.
    Ahead(u8),
    /// The C compiler's loop with this prefetch distance; 0 for no prefetch.
    Native(u32),
}

impl Role {
    const ALL: [Self; 12] = [
        Self::Ours,
        Self::Single,
        Self::Ones,
        Self::Ahead(0),
        Self::Ahead(2),
        Self::Ahead(4),
        Self::Ahead(8),
        Self::Ahead(16),
        Self::Ahead(24),
        Self::Native(0),
        Self::Native(8),
        Self::Native(24),
    ];

    /// The ways for the short program.
    const SHORT: [Self; 4] = [Self::Ours, Self::Single, Self::Ahead(0), Self::Ahead(16)];

    /// The ways for packets out of the caches.
    const COLD: [Self; 9] = [
        Self::Ours,
        Self::Single,
        Self::Ahead(0),
        Self::Ahead(8),
        Self::Ahead(16),
        Self::Ahead(24),
        Self::Native(0),
        Self::Native(8),
        Self::Native(24),
    ];

    fn name(self) -> String {
        let native = || {
            #[cfg(feature = "native")]
            return super::native::COMPILER;
            #[cfg(not(feature = "native"))]
            ""
        };
        match self {
            Self::Ours => "a burst".to_owned(),
            Self::Single => "one call per packet".to_owned(),
            Self::Ones => "bursts of 1".to_owned(),
            Self::Ahead(0) => "nothing fetched ahead".to_owned(),
            Self::Ahead(packets) => format!("fetched {packets} ahead"),
            Self::Native(0) => format!("native C -O2 inlined in the loop ({})", native()),
            Self::Native(ahead) => format!("the same with prefetch {ahead} ahead ({})", native()),
        }
    }
}

type Run<'a> = Box<dyn FnMut(&mut Burst) -> Result<(), Box<dyn Error>> + 'a>;

pub(super) fn rows(settings: Settings) -> Rows {
    let mut rows = Vec::new();
    if !Engine::Jit.is_available() {
        return Ok(rows);
    }
    for kind in [Kind::Hit, Kind::Miss, Kind::Cold] {
        let mut bursts = kind.bursts()?;
        for (workload, title) in WORKLOADS.into_iter().chain([SHORT]) {
            let roles = match kind {
                _ if workload == SHORT.0 => Role::SHORT.as_slice(),
                Kind::Cold => &Role::COLD,
                Kind::Hit | Kind::Miss => &Role::ALL,
            };
            let results = measure(settings, workload, roles, kind, &mut bursts)?;
            rows.extend(compare(workload, &format!("{title}, {}", kind.name()), kind, &results));
        }
    }
    Ok(rows)
}

/// Set of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hit,
    Miss,
    Cold,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Cold => "out of cache",
        }
    }

    fn bursts(self) -> Result<Vec<Burst>, Box<dyn Error>> {
        match self {
            Self::Hit => hit(),
            Self::Miss => Ok(Packets::miss()?.into_shuffled()),
            Self::Cold => {
                let bursts = Packets::miss()?.into_shuffled();
                in_huge_pages(&bursts);
                Ok(bursts)
            }
        }
    }
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

/// All contenders for a workload.
fn contenders(workload: &str, roles: &[Role]) -> Result<Vec<(Role, Run<'static>)>, Box<dyn Error>> {
    let object = Object::parse(OBJECT)?;
    let collection = object.load(&LoadOptions::default().cpus(CONTENDERS))?;
    let mut contenders: Vec<(Role, Run<'static>)> = Vec::new();
    for &role in roles {
        let run: Run<'static> = match role {
            Role::Native(ahead) => match native(workload, ahead) {
                Some(run) => run,
                None => continue,
            },
            _ => ours(role, &object, &collection, workload)?,
        };
        contenders.push((role, run));
    }
    Ok(contenders)
}

#[cfg(feature = "native")]
fn native(workload: &str, ahead: u32) -> Option<Run<'static>> {
    let run = super::native::workload(workload, ahead)?;
    Some(Box::new(move |burst| {
        run(burst);
        Ok(())
    }))
}

#[cfg(not(feature = "native"))]
fn native(_: &str, _: u32) -> Option<Run<'static>> {
    None
}

fn ours(
    role: Role,
    object: &Object,
    collection: &Collection,
    workload: &str,
) -> Result<Run<'static>, Box<dyn Error>> {
    let (verified, maps) = match workload {
        "ipv4" => (text::verified(IPV4, XdpAttach::Interface, &[])?, Vec::new()),
        _ => {
            let name = format!("{workload}_program");
            let spec = object.programs().iter().find(|spec| spec.name == name).ok_or("no such program")?;
            (object.verify(spec)?, collection.maps().to_vec())
        }
    };
    let change = move |settings: &mut NativeSettings| {
        if let Role::Ahead(packets) = role {
            settings.prefetch = Prefetch::Ahead(packets);
        }
    };
    let program = Program::load_with_settings(&verified, maps, change)?;
    let mut host = Host::default();
    Ok(match role {
        Role::Single => Box::new(move |burst| {
            for mut frame in burst.iter_mut() {
                program.run_raw(&mut frame, &mut host)?;
            }
            Ok(())
        }),
        Role::Ones => {
            let mut one = Burst::new(1);
            Box::new(move |burst| {
                // The packets are equal, so that this contender is for hits only.
                if one.is_empty() {
                    one.push(burst.frame(0).packet(), FrameMeta::default())?;
                }
                for _ in 0..burst.len() {
                    program.run_burst(&mut one, &mut host)?;
                }
                Ok(())
            })
        }
        _ => Box::new(move |burst| Ok(program.run_burst(burst, &mut host)?)),
    })
}

fn measure(
    settings: Settings,
    workload: &str,
    roles: &[Role],
    kind: Kind,
    bursts: &mut [Burst],
) -> Result<Vec<(Role, Timing)>, Box<dyn Error>> {
    let mut contenders = contenders(workload, roles)?;
    if bursts.len() > 1 {
        contenders.retain(|(role, _)| *role != Role::Ones);
    }
    agree(workload, &mut contenders, bursts)?;
    let packets: usize = bursts.iter().map(Burst::len).sum();
    let passes = if settings.smoke || kind == Kind::Cold { 1 } else { ROUND.div_ceil(packets) };
    let bursts = RefCell::new(bursts);
    let work = |run: Run<'static>| -> Work<'_> {
        let (bursts, mut run) = (&bursts, run);
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
    let (roles, mut works): (Vec<Role>, Vec<Work<'_>>) =
        contenders.into_iter().map(|(role, run)| (role, work(run))).unzip();
    let prepare = || {
        if kind == Kind::Cold {
            evict(&bursts.borrow());
        }
    };
    let times = prepared(if settings.smoke { 0 } else { ROUNDS }, &mut works, prepare)?;
    Ok(roles.into_iter().zip(times).collect())
}

/// Checks that all contenders return the same verdicts.
fn agree(
    workload: &str,
    contenders: &mut [(Role, Run<'static>)],
    bursts: &mut [Burst],
) -> Result<(), Box<dyn Error>> {
    let mut expected: Option<Vec<u32>> = None;
    for (role, run) in contenders.iter_mut().filter(|(role, _)| *role != Role::Ones) {
        let mut found = Vec::new();
        for burst in &mut *bursts {
            run(burst)?;
            found.extend(burst.iter().map(|frame| frame.code()));
        }
        if *expected.get_or_insert_with(|| found.clone()) != found {
            return Err(format!("{workload}: {} comes to other verdicts", role.name()).into());
        }
    }
    Ok(())
}

fn compare(workload: &str, name: &str, kind: Kind, results: &[(Role, Timing)]) -> Vec<Row> {
    let of = |wanted: Role| results.iter().find(|(role, _)| *role == wanted).map(|(_, timing)| *timing);
    let Some(ours) = of(Role::Ours) else { return Vec::new() };
    let mut rows = Vec::new();
    for &(role, timing) in results.iter().filter(|(role, _)| *role != Role::Ours) {
        let (bar, reach) = bars(workload, kind, role);
        let row = match role {
            Role::Ones => {
                let Some(single) = of(Role::Single) else { continue };
                let more = Figure::Time { ours: timing.minus(single), against: None };
                Row::new(format!("{name}: what a burst of 1 takes more than a call"), "", more)
            }
            _ => {
                let figure = Figure::Time { ours, against: Some(timing) };
                Row::new(format!("{name}, a burst"), role.name(), figure)
            }
        };
        rows.push(Row { bar, reach, ..row });
    }
    rows
}

/// The bar of a burst against a contender.
fn bars(workload: &str, kind: Kind, role: Role) -> (Option<Bar>, Option<Bar>) {
    let filters = matches!(workload, "port22" | "port22_payload" | "count");
    let (least, reach) = match (role, kind) {
        (Role::Ones, _) => return (Some(Bar::Most(2.0)), Some(Bar::Most(0.0))),
        (Role::Single, Kind::Hit | Kind::Miss) if workload == "xdp1" => (1.2, 1.6),
        (Role::Single, Kind::Cold) if filters => (2.0, 2.4),
        (Role::Native(0), Kind::Hit) if workload != "xdp1" => (1.0 / 1.3, 1.0 / 1.1),
        (Role::Native(0), Kind::Miss) if filters => return (Some(Bar::Ratio(1.0)), None),
        (Role::Native(8), Kind::Miss) if filters => return (None, Some(Bar::Ratio(1.0))),
        _ => return (None, None),
    };
    (Some(Bar::Ratio(least)), Some(Bar::Ratio(reach)))
}
