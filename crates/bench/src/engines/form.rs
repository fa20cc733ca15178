//! Native code from the form against native code from the instructions (`form`): cost of a packet, time to compile, size of the code.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use paceline::{FrameMut, Host, LoadOptions, Map, Object, Program};
use paceline_verifier::Verified;
use paceline_vm::CodeSource;

use super::contender::{Contender, Role};
use super::packets::Packets;
use super::{Engine, OBJECT, WORKLOADS, measure};
use crate::measure::{Work, interleaved};
use crate::report::{Figure, Row, Unit};
use crate::{Rows, Settings, Table};

/// The sources of code that are compared.
const SOURCES: [(CodeSource, &str); 2] =
    [(CodeSource::Form, "jit from the form"), (CodeSource::Instructions, "jit")];

pub(crate) fn table(settings: Settings) -> Table {
    if !Engine::Jit.is_available() {
        return Ok(Vec::new().into());
    }
    let mut rows = packets(settings)?;
    rows.extend(crate::chains::from_form(settings)?);
    let examples = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut files: Vec<PathBuf> =
        fs::read_dir(examples)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "o"));
    files.sort();
    for file in files {
        let object = Object::open(&file)?;
        let maps = object.load(&LoadOptions::default())?.maps().to_vec();
        for spec in object.programs() {
            let name = file.file_stem().unwrap_or_default().to_string_lossy();
            rows.extend(compilation(
                settings,
                &format!("{name}: {}", spec.name),
                &object.verify(spec)?,
                &maps,
            )?);
        }
    }
    Ok(rows.into())
}

fn load(verified: &Verified, maps: &[Arc<Map>], from: CodeSource) -> Result<Program, Box<dyn Error>> {
    Ok(Program::load_with_settings(verified, maps.to_vec(), |settings| settings.source = from)?)
}

/// Single packets of the workloads.
fn packets(settings: Settings) -> Rows {
    let object = Object::parse(OBJECT)?;
    let maps = object.load(&LoadOptions::default())?.maps().to_vec();
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        let spec = object.programs().iter().find(|spec| spec.name == workload.program());
        let verified = object.verify(spec.ok_or("no such program")?)?;
        for mut packets in [Packets::hit()?, Packets::miss()?] {
            let mut contenders = Vec::new();
            for (from, name) in SOURCES {
                let (program, mut host) = (load(&verified, &maps, from)?, Host::default());
                let run = move |frame: &mut FrameMut<'_>| program.run(frame, &mut host).unwrap_or(u64::MAX);
                contenders.push(Contender::new(name, Role::Ours(Engine::Jit), run));
            }
            let times = measure(settings, workload.title, &mut packets.frames(), &mut contenders)?;
            let figure = Figure::Time { ours: times[0], against: Some(times[1]) };
            rows.push(Row::new(format!("{}, {}", workload.title, packets.name), SOURCES[1].1, figure));
        }
    }
    Ok(rows)
}

/// Time to compile a program, and the size of its code.
fn compilation(settings: Settings, name: &str, verified: &Verified, maps: &[Arc<Map>]) -> Rows {
    let instructions = verified.code().iter().count() as f64;
    let work = |from: CodeSource| -> Work<'_> { Box::new(move || load(verified, maps, from).map(|_| 1)) };
    let times = interleaved(settings.smoke, &mut SOURCES.map(|(from, _)| work(from)))?;
    let each = |at: usize| times[at].divided_by(instructions);
    let bytes = |from: CodeSource| -> Result<u64, Box<dyn Error>> {
        Ok(load(verified, maps, from)?.native_code().map_or(0, |code| code.bytes().len() as u64))
    };
    let sizes = Figure::Size {
        ours: bytes(CodeSource::Form)?,
        against: Some(bytes(CodeSource::Instructions)?),
        unit: Unit::Bytes,
    };
    let time = Figure::Time { ours: each(0), against: Some(each(1)) };
    let what = format!("{name}: compile alone, each of {instructions} instructions");
    Ok(vec![
        Row::new(what, SOURCES[1].1, time),
        Row::new(format!("{name}: native code, single packets, and bursts of jit"), SOURCES[1].1, sizes),
    ])
}
