//! Counters of coverage: packets of the shipped capture through programs with and without them.

use std::error::Error;
use std::path::Path;

use paceline::coverage::Counting;
use paceline::{Burst, Engine, Host, LoadOptions, MAX_BURST, Object, VerifiedProgram};
use paceline_capture::CaptureReader;

use crate::measure::{Work, interleaved};
use crate::report::{Figure, Row};
use crate::settings::{Settings, Table};

/// Programs, as object and function.
const PROGRAMS: [(&str, &str); 3] =
    [("firewall", "firewall"), ("counter", "counter"), ("protocols", "dispatch")];

const ENGINES: [Engine; 2] = [Engine::Jit, Engine::Threaded];

/// Counters, with their names in rows.
const COUNTINGS: [(&str, Counting); 2] = [("", Counting::Plain), (", atomic", Counting::Atomic)];

/// Packets of the capture, many times over, in a full measurement.
const PASSES: usize = 200;

pub(crate) fn table(settings: Settings) -> Table {
    let mut rows = Vec::new();
    let passes = if settings.smoke { 1 } else { PASSES };
    for (file, name) in PROGRAMS {
        for engine in ENGINES {
            let plain = load(file, name, engine, None)?;
            let counted = COUNTINGS.map(|(_, counting)| load(file, name, engine, Some(counting)));
            let [one, other] = counted;
            let programs = [plain, one?, other?];
            let mut works: Vec<Work<'_>> = Vec::new();
            for program in &programs {
                works.push(Box::new(move || run(program, passes)));
            }
            let times = interleaved(settings.smoke, &mut works)?;
            for ((what, _), &ours) in COUNTINGS.iter().zip(&times[1..]) {
                let figure = Figure::Time { ours, against: Some(times[0]) };
                rows.push(Row::new(format!("{name} on {engine} with counters{what}"), "without", figure));
            }
        }
    }
    Ok(rows.into())
}

fn load(
    file: &str,
    name: &str,
    engine: Engine,
    counting: Option<Counting>,
) -> Result<VerifiedProgram, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(format!("{file}.o"));
    let mut object = Object::open(path)?;
    if let Some(counting) = counting {
        object = object.with_coverage(counting)?;
    }
    let collection = object.load(&LoadOptions::default().engine(engine))?;
    Ok(collection.program(Some(name))?)
}

/// Reading the capture is part of the time: 492 packets in memory.
fn run(program: &VerifiedProgram, passes: usize) -> Result<u64, Box<dyn Error>> {
    static TRAFFIC: &[u8] = include_bytes!("../../../examples/traffic.pcap");
    let (mut burst, mut host, mut packets) = (Burst::new(MAX_BURST), Host::default(), 0);
    for _ in 0..passes {
        let mut reader = CaptureReader::new(TRAFFIC)?;
        while reader.fill(&mut burst)? > 0 {
            packets += burst.len() as u64;
            program.run_burst(&mut burst, &mut host).map_err(|fault| fault.fault)?;
        }
    }
    Ok(packets)
}
