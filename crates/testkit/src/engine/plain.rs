//! Cases on the plain interpreter.

use std::sync::Arc;

use paceline_frame::{Burst, FrameMeta};
use paceline_maps::{Limits, Map};
use paceline_spec::{Errno, InitialValue, MapKind, MapSpec};
use paceline_vm::{Host, Program};

use super::{Engine, Unsupported};
use crate::Contents;
use crate::case::{Case, CaseKind, Context, Run};
use crate::kernel;
use crate::outcome::{Finished, Outcome, Ran, Return};

/// Most bytes of a map: more than any case or shipped object declares.
const MAP_MEMORY: u64 = 1 << 30;

/// The plain interpreter.
#[derive(Clone, Copy, Debug)]
pub struct PlainEngine;

impl Engine for PlainEngine {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn verifies(&self) -> bool {
        false
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        // The same CPU as the kernel's runs, because programs can ask for it.
        let cpu = kernel::pin().cpu();
        let maps = match create_maps(&case.maps, cpu)? {
            Ok(maps) => maps,
            Err(reason) => return Ok(Outcome::Refused(reason.into())),
        };
        let Some(spec) = case.programs.first() else {
            unreachable!("a case has a program");
        };
        let new = if case.kind == CaseKind::Raw { Program::raw } else { Program::new };
        let program = match new(Arc::new(spec.clone()), maps.clone()) {
            Ok(program) => program,
            Err(error) => return Ok(Outcome::Refused(error.to_string().into())),
        };
        let mut host = Host::new(cpu);
        let run = |run: &Run| match case.kind {
            CaseKind::Xdp | CaseKind::SocketFilter => run_packet(&program, run, &mut host),
            CaseKind::Raw => Ok(run_memory(&program, run, &mut host)),
        };
        let runs = case.runs.iter().map(run).collect::<Result<Vec<_>, _>>()?;
        let maps = maps.iter().map(|map| map_contents(map, cpu)).collect();
        Ok(Outcome::Ran(Ran { runs, maps }))
    }
}

/// The outer error is one of the case's nature, the inner one a refusal.
fn create_maps(specs: &[MapSpec], cpu: usize) -> Result<Result<Vec<Arc<Map>>, String>, Unsupported> {
    let limits = Limits { cpus: kernel::possible_cpus(), memory: MAP_MEMORY };
    let mut maps = Vec::new();
    for spec in specs {
        let map = match Map::create(spec, &limits) {
            Ok(map) => map,
            Err(error) => return Ok(Err(error.to_string())),
        };
        for (_, value) in &spec.contents {
            let what = match value {
                InitialValue::Bytes(_) => continue,
                InitialValue::Map(_) => "another map",
                InitialValue::Program(_) => "a program",
            };
            return Err(Unsupported::MapContents { map: spec.name.clone(), what });
        }
        if let Err(errno) = fill_map(&map, spec, cpu) {
            return Ok(Err(format!("map {}: {errno}", spec.name)));
        }
        maps.push(map);
    }
    Ok(Ok(maps))
}

/// Puts the plain bytes of a specification into a map, for per-CPU maps on one CPU, and freezes it if it says so.
///
/// # Errors
/// The map does not take an element.
pub fn fill_map(map: &Map, spec: &MapSpec, cpu: usize) -> Result<(), Errno> {
    for (key, value) in &spec.contents {
        let InitialValue::Bytes(bytes) = value else { continue };
        let mut full = vec![0; map.user_value_size()];
        let start =
            if spec.kind.is_per_cpu() { cpu * (spec.value_size as usize).next_multiple_of(8) } else { 0 };
        full.get_mut(start..start + bytes.len()).ok_or(Errno::EINVAL)?.copy_from_slice(bytes);
        map.set(key, &full, 0)?;
    }
    if spec.frozen { map.freeze() } else { Ok(()) }
}

/// All elements of a map, for per-CPU maps the values of `cpu`; `None` for kinds whose elements are no bytes.
#[must_use]
pub fn map_contents(map: &Map, cpu: usize) -> Option<Contents> {
    let spec = map.spec();
    if !crate::has_byte_contents(spec.kind) || matches!(spec.kind, MapKind::Queue | MapKind::Stack) {
        return None;
    }
    let value_size = spec.value_size as usize;
    let mut contents = Contents::new();
    for key in map.keys().ok()? {
        // Empty places of device maps have keys.
        let Ok(mut value) = map.get(&key) else { continue };
        if spec.kind.is_per_cpu() {
            value.drain(..(cpu * value_size.next_multiple_of(8)).min(value.len()));
            value.truncate(value_size);
        }
        contents.insert(key, value);
    }
    Some(contents)
}

fn run_packet(
    program: &Program,
    run: &Run,
    host: &mut Host,
) -> Result<Result<Finished, String>, Unsupported> {
    let Context { ingress_ifindex, rx_queue_index, egress_ifindex } = run.context;
    if egress_ifindex != 0 {
        return Err(Unsupported::ContextField("egress_ifindex"));
    }
    let queue = u16::try_from(rx_queue_index).map_err(|_| Unsupported::ContextField("rx_queue_index"))?;
    let mut burst = Burst::new(1);
    let unfit = |_| Unsupported::PacketLength(run.data.len());
    burst.push(&run.data, FrameMeta::default()).map_err(unfit)?;
    let mut frame = burst.frame_mut(0);
    frame.set_ingress(ingress_ifindex, queue);
    frame.set_metadata(&run.meta).map_err(|_| Unsupported::ContextField("metadata of this length"))?;
    let r0 = match program.run(&mut frame, host) {
        Ok(r0) => r0,
        Err(fault) => return Ok(Err(fault.to_string())),
    };
    Ok(Ok(Finished { r0: Return::Full(r0), data: frame.packet().to_vec(), meta: frame.metadata().to_vec() }))
}

fn run_memory(program: &Program, run: &Run, host: &mut Host) -> Result<Finished, String> {
    let mut memory = run.data.clone();
    match program.run_raw(&mut memory, host) {
        Ok(exit) => Ok(Finished { r0: Return::Full(exit.r0), data: memory, meta: Vec::new() }),
        Err(fault) => Err(fault.to_string()),
    }
}
