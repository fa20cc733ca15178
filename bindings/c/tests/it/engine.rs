//! Text cases through the C library.

use std::cell::RefCell;
use std::ptr;
use std::thread::sleep;
use std::time::Duration;

use paceline_c::*;
use paceline_spec::{InitialValue, Linkage, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::case::{Case, CaseKind, Run};
use paceline_testkit::engine::{Engine, Unsupported};
use paceline_testkit::outcome::{Finished, Outcome, Ran, Refusal, Return};
use paceline_testkit::{Contents, has_byte_contents, kernel};

use crate::door::*;
use crate::library::c;

/// How packets reach a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One by one, copied.
    Alone,
    /// As bursts, copied.
    Pushed,
    /// As bursts, in memory of the caller.
    Placed,
}

/// An engine of the library.
pub(crate) struct LibraryEngine {
    pub(crate) name: &'static str,
    /// Name of the Rust library's engine that is the same.
    pub(crate) like: &'static str,
    pub(crate) number: paceline_engine,
    pub(crate) verifies: bool,
    pub(crate) way: Way,
}

/// A case that the library cannot run, or a refusal.
enum Not {
    Supported(Unsupported),
    Accepted(Refusal),
}

/// Handles that are freed in the end.
#[derive(Default)]
struct Made {
    builder: Option<*mut paceline_builder>,
    object: Option<*mut paceline_object>,
    collection: Option<*mut paceline_collection>,
    programs: Vec<*mut paceline_program>,
    maps: Vec<*mut paceline_map>,
    host: Option<*mut paceline_host>,
    burst: Option<*mut paceline_burst>,
    pool: Option<*mut paceline_pool>,
    memory: RefCell<Vec<u8>>,
}

impl Drop for Made {
    fn drop(&mut self) {
        // The collection first: programs and maps must not need it.
        let statuses = [
            self.collection.map(c::paceline_collection_free),
            self.object.map(c::paceline_object_free),
            self.builder.map(c::paceline_builder_free),
            self.host.map(c::paceline_host_free),
            self.burst.map(c::paceline_burst_free),
            self.pool.map(c::paceline_pool_free),
        ];
        let each = self.programs.iter().map(|program| Some(c::paceline_program_free(*program)));
        let each = each.chain(self.maps.iter().map(|map| Some(c::paceline_map_free(*map))));
        assert!(statuses.into_iter().chain(each).flatten().all(|status| status == paceline_status::Ok));
    }
}

impl Engine for LibraryEngine {
    fn name(&self) -> &str {
        self.name
    }

    fn answers_to(&self, name: &str) -> bool {
        name == self.like || self.verifies && name == "paceline"
    }

    fn verifies(&self) -> bool {
        self.verifies
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        if case.kind == CaseKind::Raw {
            return Err(Unsupported::RawMemory);
        }
        if case.classic.is_some() {
            // Converted programs call functions that no other program may.
            return Err(Unsupported::NoKernelFunction("classic filters are no programs here".to_owned()));
        }
        let cpu = kernel::pin().cpu();
        let mut made = Made::default();
        let loaded = self.load(case, cpu, &mut made);
        match loaded {
            Ok(()) if case.runs.is_empty() => Ok(Outcome::Ran(Ran { runs: Vec::new(), maps: Vec::new() })),
            Ok(()) => self.run_all(case, cpu, &mut made).map(Outcome::Ran),
            Err(Not::Supported(unsupported)) => Err(unsupported),
            Err(Not::Accepted(refusal)) => Ok(Outcome::Refused(refusal)),
        }
    }
}

impl LibraryEngine {
    fn load(&self, case: &Case, cpu: usize, made: &mut Made) -> Result<(), Not> {
        let types = case.btf.to_bytes();
        let builder =
            handle(|error| c::paceline_builder_new(bytes(&types), types.len(), error)).map_err(other)?;
        made.builder = Some(builder);
        for (index, map) in case.maps.iter().enumerate() {
            add_map(builder, case, index, map)?;
        }
        case.programs.iter().try_for_each(|program| add_program(builder, program)).map_err(other)?;
        let object = handle(|error| c::paceline_builder_object(builder, error)).map_err(other)?;
        made.object = Some(object);
        let options = paceline_load_options {
            engine: self.number as u32,
            cpus: kernel::possible_cpus() as u32,
            map_memory: 1 << 30,
            ..zeroed()
        };
        let lacks =
            |told: Told| if case.runs.is_empty() { Not::Supported(Unsupported::Lacks) } else { other(told) };
        let collection =
            handle(|error| c::paceline_object_load(object, given(&options), error)).map_err(lacks)?;
        made.collection = Some(collection);
        for (index, program) in case.programs.iter().enumerate() {
            let name = c_string(&program.name);
            let loaded = handle(|error| match self.verifies {
                true => c::paceline_collection_program(collection, text(&name), error),
                false => c::paceline_collection_program_unverified(collection, text(&name), error),
            });
            made.programs.push(loaded.map_err(|told| refused(case, index, told))?);
        }
        if case.runs.is_empty() {
            return Ok(());
        }
        for map in &case.maps {
            let name = c_string(&map.name);
            let map = handle(|error| c::paceline_collection_map(collection, text(&name), error));
            made.maps.push(map.map_err(other)?);
        }
        for (index, map) in case.maps.iter().enumerate() {
            for (key, value) in &map.contents {
                if !(matches!(value, InitialValue::Bytes(_)) && starts_with(map)) {
                    put(case, made, index, key, Some(value), cpu).map_err(other)?;
                }
            }
        }
        made.host = Some(handle(|error| c::paceline_host_new(cpu as u32, error)).map_err(other)?);
        let host = made.host.unwrap_or(ptr::null_mut());
        if let Some(network) = &case.network {
            let lines = c_string(&network.text);
            status(|error| c::paceline_host_set_network(host, text(&lines), error)).map_err(other)?;
        }
        Ok(())
    }

    fn run_all(&self, case: &Case, cpu: usize, made: &mut Made) -> Result<Ran, Unsupported> {
        let mut runs = Vec::new();
        let mut left = case.runs.as_slice();
        while let Some((run, rest)) = left.split_first() {
            let joined = |run: &&Run| run.changes.is_empty() && run.wait_ms == 0;
            let together =
                if self.way == Way::Alone { 0 } else { rest.iter().take_while(joined).count().min(63) };
            let (these, later) = left.split_at(1 + together);
            left = later;
            match change(case, made, run, cpu) {
                Err(told) => runs.push(Err(told.message)),
                Ok(()) if self.way == Way::Alone => runs.push(run_alone(case, made, run)),
                Ok(()) => runs.extend(self.run_burst(case, made, these)),
            }
        }
        let maps = case.maps.iter().zip(&made.maps).map(|(spec, map)| contents(spec, *map, cpu)).collect();
        Ok(Ran { runs, maps })
    }

    fn run_burst(&self, case: &Case, made: &mut Made, runs: &[Run]) -> Vec<Result<Finished, String>> {
        let burst =
            *made.burst.get_or_insert_with(|| handle(|error| c::paceline_burst_new(64, error)).unwrap());
        status(|error| c::paceline_burst_clear(burst, error)).unwrap();
        let fill = if self.way == Way::Placed { place(made, burst, runs) } else { push(burst, runs) };
        if let Err(told) = fill {
            return runs.iter().map(|_| Err(told.message.clone())).collect();
        }
        let (program, host) = (made.programs[0], made.host.unwrap());
        let failed = status(|error| c::paceline_program_run_burst(program, burst, host, error)).err();
        let mut frames = vec![zeroed::<paceline_frame>(); 64];
        let mut count = 0;
        status(|error| c::paceline_burst_frames(burst, filled(&mut frames[0]), 64, out(&mut count), error))
            .unwrap();
        assert_eq!(count, runs.len());
        let done = failed.as_ref().map_or(count, |told| told.index as usize);
        let of = case.programs[0].kind;
        let code = |frame: &paceline_frame| match of.rules().meaning.translated() {
            Some(_) => Return::Verdict { code: frame.return_value as u32, of },
            None => Return::Low(frame.return_value as u32),
        };
        let ended = frames[..done].iter().map(|frame| Ok(finished(case, made, frame, code(frame))));
        let mut ended: Vec<_> = ended.collect();
        if let Some(told) = failed {
            ended.push(Err(told.message));
            if let [_, later @ ..] = &runs[done..]
                && !later.is_empty()
            {
                ended.extend(self.run_burst(case, made, later));
            }
        }
        ended
    }
}

fn run_alone(case: &Case, made: &Made, run: &Run) -> Result<Finished, String> {
    let mut frame: paceline_frame = zeroed();
    let (program, host, packet) = (made.programs[0], made.host.unwrap(), packet_of(run));
    status(|error| c::paceline_program_run(program, host, given(&packet), filled(&mut frame), error))
        .map_err(|told| told.message)?;
    Ok(finished(case, made, &frame, Return::Full(frame.return_value)))
}

fn packet_of(run: &Run) -> paceline_packet {
    paceline_packet {
        metadata: bytes(&run.meta),
        metadata_length: run.meta.len(),
        ingress_ifindex: run.context.ingress_ifindex,
        egress_ifindex: run.context.egress_ifindex,
        rx_queue: run.context.rx_queue_index,
        ..packet(&run.data)
    }
}

fn push(burst: *mut paceline_burst, runs: &[Run]) -> Result<(), Told> {
    let packets: Vec<_> = runs.iter().map(packet_of).collect();
    let mut pushed = 0;
    status(|error| c::paceline_burst_push(burst, all(&packets), packets.len(), out(&mut pushed), error))?;
    assert_eq!(pushed, runs.len());
    Ok(())
}

/// Bytes of a frame of the caller, and of its buffer.
const STRIDE: usize = 4096 + 192;
const BUFFER: usize = 4096;
const OFFSET: usize = 128;

/// Puts the packets into frames of the caller's memory, and those into the burst.
fn place(made: &mut Made, burst: *mut paceline_burst, runs: &[Run]) -> Result<(), Told> {
    if runs.iter().any(|run| run.data.len() > BUFFER - PACELINE_HEADROOM - PACELINE_TAILROOM) {
        return push(burst, runs);
    }
    let memory = made.memory.get_mut();
    if made.pool.is_none() {
        memory.resize(64 * STRIDE, 0xa5);
        let options = paceline_pool_options {
            // SAFETY: the memory lives until the pool is freed, and is only written below.
            memory: unsafe { Memory::new(memory.as_mut_ptr().cast()) },
            stride: STRIDE,
            count: 64,
            offset: OFFSET as u32,
            buffer_length: BUFFER as u32,
            ..zeroed()
        };
        made.pool = Some(handle(|error| c::paceline_pool_new(given(&options), error))?);
    }
    let mut packets = Vec::new();
    for (run, frame) in runs.iter().zip(memory.chunks_mut(STRIDE).rev()) {
        let start = OFFSET + PACELINE_HEADROOM;
        let metadata = frame.get_mut(start - run.meta.len()..start).unwrap_or_default();
        metadata.copy_from_slice(&run.meta);
        let metadata = bytes(metadata);
        let data = &mut frame[start..start + run.data.len()];
        data.copy_from_slice(&run.data);
        packets.push(paceline_packet { data: bytes(data), metadata, ..packet_of(run) });
    }
    let (pool, mut placed) = (made.pool.unwrap(), 0);
    status(|error| {
        c::paceline_burst_place(burst, pool, all(&packets), packets.len(), out(&mut placed), error)
    })?;
    assert_eq!(placed, runs.len());
    Ok(())
}

fn finished(case: &Case, made: &Made, frame: &paceline_frame, r0: Return) -> Finished {
    // SAFETY: the library says that so many bytes are there until the next call.
    let copy = |start: *const u8, length| unsafe { std::slice::from_raw_parts(start, length) }.to_vec();
    let redirects = matches!(case.kind, CaseKind::Xdp | CaseKind::SchedCls)
        && frame.return_value as u32 == paceline_verdict::Redirect as u32;
    Finished {
        data: copy(frame.data, frame.length),
        meta: copy(frame.metadata, frame.metadata_length),
        redirect: redirects.then(|| target(case, made, frame)),
        ..Finished::new(r0)
    }
}

fn target(case: &Case, made: &Made, frame: &paceline_frame) -> String {
    if frame.redirect == paceline_redirect::None as u32 {
        return "nowhere".to_owned();
    }
    if frame.redirect == paceline_redirect::Interface as u32 {
        return format!("interface {}", frame.target);
    }
    let found = case.maps.iter().zip(&made.maps).find(|(_, map)| info(**map).id == frame.target);
    format!("{} {}", found.map_or("another map", |(spec, _)| &spec.name), frame.key)
}

fn info(map: *mut paceline_map) -> paceline_map_info {
    let mut info = zeroed();
    status(|error| c::paceline_map_read_info(map, filled(&mut info), error)).unwrap();
    info
}

/// Whether the library fills the map with its bytes; values of one CPU are set afterwards.
fn starts_with(map: &MapSpec) -> bool {
    !map.kind.is_per_cpu()
}

fn add_map(builder: *mut paceline_builder, case: &Case, index: usize, map: &MapSpec) -> Result<(), Not> {
    let like = |wanted: &MapSpec| case.maps[..index].iter().position(|map| is_like(map, wanted));
    let inner = match map.inner.as_deref() {
        None => 0,
        Some(template) => 1 + like(template).ok_or(Not::Supported(Unsupported::Lacks))? as u32,
    };
    let name = c_string(&map.name);
    let spec = paceline_map_spec {
        name: text(&name),
        kind: map.kind.number(),
        key_size: map.key_size,
        value_size: map.value_size,
        max_entries: map.max_entries,
        flags: map.flags.0,
        key_type: map.key_type,
        value_type: map.value_type,
        frozen: map.frozen.into(),
        extra: map.extra,
        inner,
        ..zeroed()
    };
    status(|error| c::paceline_builder_add_map(builder, given(&spec), error)).map_err(other)?;
    for (key, value) in map.contents.iter().filter(|_| starts_with(map)) {
        if let InitialValue::Bytes(value) = value {
            let set = |error| {
                let (number, key_length, length) = (index as u32, key.len(), value.len());
                c::paceline_builder_set(builder, number, bytes(key), key_length, bytes(value), length, error)
            };
            status(set).map_err(other)?;
        }
    }
    Ok(())
}

/// Whether a map is the one that a template was made of.
fn is_like(map: &MapSpec, template: &MapSpec) -> bool {
    let bare =
        |map: &MapSpec| MapSpec { name: String::new(), contents: Vec::new(), frozen: false, ..map.clone() };
    bare(map) == bare(template)
}

fn add_program(builder: *mut paceline_builder, program: &ProgramSpec) -> Result<(), Told> {
    let (program_type, frags) = match program.kind {
        ProgramKind::SocketFilter => (paceline_program_type::SocketFilter, false),
        ProgramKind::SchedCls => (paceline_program_type::SchedCls, false),
        ProgramKind::Xdp { attach: XdpAttach::DevMap, frags } => (paceline_program_type::XdpDevmap, frags),
        ProgramKind::Xdp { attach: XdpAttach::CpuMap, frags } => (paceline_program_type::XdpCpumap, frags),
        ProgramKind::Xdp { frags, .. } => (paceline_program_type::Xdp, frags),
        _ => panic!("a type of programs that C has no number for"),
    };
    let (name, license) = (c_string(&program.name), c_string(&program.license));
    let names: Vec<_> = program.functions.iter().map(|function| c_string(&function.name)).collect();
    let function = |(function, name): (&paceline_spec::FunctionInfo, &std::ffi::CString)| paceline_function {
        name: text(name),
        slot: function.start as u32,
        type_id: function.btf_id,
        is_global: (function.linkage == Linkage::Global).into(),
        ..zeroed()
    };
    let functions: Vec<_> = program.functions.iter().zip(&names).map(function).collect();
    let called: Vec<_> = program.kfuncs.iter().map(|kfunc| c_string(&kfunc.name)).collect();
    let called: Vec<_> = called.iter().map(|name| text(name)).collect();
    let instructions: Vec<_> = program
        .insns
        .iter()
        .map(|insn| {
            let encoded =
                if cfg!(target_endian = "little") { insn.to_le_bytes() } else { insn.to_be_bytes() };
            let (code, registers) = (encoded[0], encoded[1]);
            paceline_instruction { code, registers, offset: insn.offset, immediate: insn.imm }
        })
        .collect();
    let spec = paceline_program_spec {
        name: text(&name),
        license: text(&license),
        instructions: list(&instructions),
        instruction_count: instructions.len(),
        program_type: program_type as u32,
        frags: frags.into(),
        functions: all(&functions),
        function_count: functions.len(),
        kernel_functions: list(&called),
        kernel_function_count: called.len(),
        ..zeroed()
    };
    status(|error| c::paceline_builder_add_program(builder, given(&spec), error))
}

/// Changes of the maps by user space before a run.
fn change(case: &Case, made: &Made, run: &Run, cpu: usize) -> Result<(), Told> {
    for change in &run.changes {
        put(case, made, change.map, &change.key, change.value.as_ref(), cpu)?;
    }
    if run.wait_ms > 0 {
        sleep(Duration::from_millis(run.wait_ms));
        let host = made.host.unwrap();
        status(|error| c::paceline_host_fire_timers(host, unwanted(), error))?;
    }
    Ok(())
}

fn put(
    case: &Case,
    made: &Made,
    index: usize,
    key: &[u8],
    value: Option<&InitialValue>,
    cpu: usize,
) -> Result<(), Told> {
    let (spec, map) = (&case.maps[index], made.maps[index]);
    let update = |value: &[u8]| {
        status(|error| {
            c::paceline_map_update(map, bytes(key), key.len(), bytes(value), value.len(), 0, error)
        })
    };
    match value {
        None => status(|error| c::paceline_map_delete(map, bytes(key), key.len(), error)),
        Some(InitialValue::Bytes(one)) => {
            let mut full = vec![0; info(map).user_value_size];
            let stride = (spec.value_size as usize).next_multiple_of(8);
            let start = if spec.kind.is_per_cpu() { cpu * stride } else { 0 };
            full[start..start + one.len()].copy_from_slice(one);
            update(&full)
        }
        Some(InitialValue::Map(inner)) => update(&info(made.maps[*inner]).id.to_ne_bytes()),
        Some(InitialValue::Program(name)) => {
            let program = case.programs.iter().position(|program| program.name == *name).unwrap();
            let index = u32::from_ne_bytes(key.try_into().unwrap());
            status(|error| c::paceline_program_install(made.programs[program], map, index, error))
        }
    }
}

/// All elements, for per-CPU maps the values of one CPU.
fn contents(spec: &MapSpec, map: *mut paceline_map, cpu: usize) -> Option<Contents> {
    if !has_byte_contents(spec.kind) {
        return None;
    }
    let mut contents = Contents::new();
    let mut value = vec![0; info(map).user_value_size];
    if spec.kind.is_queue() {
        for place in 0_u32.. {
            let mut value = vec![0; spec.value_size as usize];
            if status(|error| c::paceline_map_pop(map, room(&mut value), spec.value_size as usize, error))
                .is_err()
            {
                return Some(contents);
            }
            contents.insert(place.to_be_bytes().to_vec(), value);
        }
    }
    let mut key: Option<Vec<u8>> = None;
    loop {
        let mut next = vec![0; spec.key_size as usize];
        let (capacity, before) = (next.len(), key.as_deref());
        let after = before.map_or(no_bytes(), bytes);
        let found = status(|error| {
            c::paceline_map_next_key(
                map,
                after,
                before.map_or(0, <[u8]>::len),
                room(&mut next),
                capacity,
                error,
            )
        });
        match found {
            Ok(()) => {}
            Err(Told { status: paceline_status::NotFound, .. }) => return Some(contents),
            Err(_) => return None,
        }
        let capacity = value.len();
        let found = status(|error| {
            c::paceline_map_lookup(map, bytes(&next), next.len(), room(&mut value), capacity, error)
        });
        if found.is_ok() {
            let size = spec.value_size as usize;
            let start = if spec.kind.is_per_cpu() { cpu * size.next_multiple_of(8) } else { 0 };
            contents.insert(next.clone(), value[start..start + size].to_vec());
        }
        key = Some(next);
    }
}

/// A refusal of a program: by the verifier if an instruction is named, and otherwise for what the library lacks.
fn refused(case: &Case, index: usize, told: Told) -> Not {
    if told.slot == PACELINE_UNKNOWN {
        let lacks = case.runs.is_empty();
        return if lacks { Not::Supported(Unsupported::Lacks) } else { other(told) };
    }
    let named = case.programs.iter().position(|program| Some(&program.name) == told.program.as_ref());
    let place = Some((named.unwrap_or(index), told.slot as usize));
    Not::Accepted(Refusal { reason: told.message, place, in_our_words: true })
}

fn other(told: Told) -> Not {
    Not::Accepted(told.message.into())
}
