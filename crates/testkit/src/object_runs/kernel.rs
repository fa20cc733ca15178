//! A trial in the kernel.

use std::time::{Duration, Instant};

use paceline_spec::{ProgramKind, XdpAttach};

use super::observation::{Observation, Trial};
use crate::compare::{Left, Stopped};
use crate::kernel::{self, KernelObject, LoadError, LoadOptions, Packet};

/// Result of a program in the kernel.
#[derive(Debug)]
pub struct KernelRun {
    /// Time to load maps and program.
    pub load: Duration,
    /// Results of the runs; `None` for programs without a test run.
    pub ran: Option<Result<Observation, Stopped>>,
}

/// Loads the program, and runs it on the packets if `run` is set.
///
/// # Errors
/// The kernel's refusal.
pub fn on_kernel(trial: &Trial<'_>, run: bool) -> Result<KernelRun, LoadError> {
    let start = Instant::now();
    let object = trial.object;
    let options = LoadOptions { btf: object.btf(), leave_out_types: true, cpu: trial.cpu };
    let named = named_programs(trial);
    let loaded = KernelObject::load(object.maps(), named.iter().copied(), options)?;
    let load = start.elapsed();
    let is_interface = |kind| matches!(kind, ProgramKind::Xdp { attach: XdpAttach::Interface, .. });
    let ran = named.first().filter(|spec| run && is_interface(spec.kind)).map(|_| packets(trial, &loaded));
    Ok(KernelRun { load, ran })
}

/// Keeps the program, and the programs in the object's program arrays.
fn named_programs<'a>(trial: &Trial<'a>) -> Vec<&'a paceline_spec::ProgramSpec> {
    let object = trial.object;
    let values = object.maps().iter().flat_map(|map| &map.contents).map(|(_, value)| value);
    let named: Vec<&str> = values
        .filter_map(|value| match value {
            paceline_spec::InitialValue::Program(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    let is_named = |name: &str| name == trial.program || named.contains(&name);
    let mut programs: Vec<_> = object.programs().iter().filter(|spec| is_named(&spec.name)).collect();
    programs.sort_by_key(|spec| spec.name != trial.program);
    programs
}

fn packets(trial: &Trial<'_>, loaded: &KernelObject) -> Result<Observation, Stopped> {
    let Some(program) = loaded.programs.first() else {
        return Err(Stopped::Refused("no program".to_owned()));
    };
    let mut observation = Observation::default();
    for (run, input) in trial.inputs.iter().enumerate() {
        let packet = Packet { data: &input.data, meta: &input.meta, ..Packet::default() };
        let ran = program.test_run(&packet);
        let ran = ran.map_err(|error| Stopped::Run { run, reason: error.to_string() })?;
        let left = Left { code: ran.retval, r0: None, data: ran.data, meta: ran.meta, redirect: None };
        observation.packets.push(left);
    }
    let read = |map: &kernel::Map| map.contents(trial.cpu);
    let maps = loaded.maps.iter().map(read).collect::<Result<Vec<_>, _>>();
    observation.maps = maps.map_err(|error| Stopped::Refused(paceline::with_causes(&error)))?;
    Ok(observation)
}
