//! Addresses and offsets that code is linked with.

use std::mem::offset_of;
use std::sync::Arc;

use crate::exec::Arena;
use paceline_compiler::internal::Internal;
use paceline_compiler::native::{
    ArrayLink, CompileError, HelperLink, HostOffsets, Links, LookUpLink, MapLink, ProgArrayLink,
};
use paceline_frame::Frame;
use paceline_maps::Map;
use paceline_runtime::context;
use paceline_runtime::helpers::{HelperFn, helper_fn, kfunc_fn};
use paceline_runtime::host::{Area, Host, MAX_TAIL_CALLS};
use paceline_runtime::interpreter::image::{Image, cpus_of};
use paceline_spec::ProgramSpec;
use paceline_spec::context::{AreaUse, Rule};

const NO_CPU: extern "C" fn(&mut Host) -> u64 = no_cpu;
const FIND_PROGRAM: unsafe extern "C" fn(u64, u64) -> u64 = find_program;
const PACKET_LEN: unsafe extern "C" fn(u64) -> u64 = packet_len;
const PACKET_TYPE: unsafe extern "C" fn(u64) -> u64 = packet_type;
const PROTOCOL: unsafe extern "C" fn(u64) -> u64 = protocol;
const RX_QUEUE: unsafe extern "C" fn(u64) -> u64 = rx_queue;
const IFINDEX: unsafe extern "C" fn(u64) -> u64 = ifindex;
const END: extern "C" fn(&mut Host) = end;
const ENTER: unsafe extern "C" fn(&mut Host, u64, u64) = enter;

/// The functions of the engine that code calls, by name.
pub(crate) fn runtime_functions() -> Vec<(&'static str, u64)> {
    vec![
        ("no_cpu", NO_CPU as usize as u64),
        ("find_program", FIND_PROGRAM as usize as u64),
        ("packet_len", PACKET_LEN as usize as u64),
        ("packet_type", PACKET_TYPE as usize as u64),
        ("protocol", PROTOCOL as usize as u64),
        ("rx_queue", RX_QUEUE as usize as u64),
        ("ifindex", IFINDEX as usize as u64),
        ("enter", ENTER as usize as u64),
        ("end", END as usize as u64),
    ]
}

/// Links of a program. The maps must keep their addresses as long as the code exists.
pub(crate) fn links(spec: &ProgramSpec, maps: &[Arc<Map>], arena: &Arena) -> Result<Links, CompileError> {
    let count =
        i32::try_from(maps.len()).map_err(|_| CompileError::from(Internal("more maps than indices")))?;
    let link = |function: Option<HelperFn>| Some(HelperLink { address: function? as usize as u64 });
    Ok(Links {
        helper: |helper, kind| Some(HelperLink { address: helper_fn(helper.id, kind)? as usize as u64 }),
        kfuncs: spec
            .kfuncs
            .iter()
            .map(|kfunc| link(kfunc.kfunc().and_then(|kfunc| kfunc_fn(kfunc.name))))
            .collect(),
        maps: maps.iter().map(map_link).collect(),
        readable: (maps.as_ptr() as u64, count),
        host: HostOffsets {
            frame: Host::OFFSET_FRAME as i32,
            tail_calls: offset_of!(Host, run.tail_calls) as i32,
            max_tail_calls: MAX_TAIL_CALLS as i32,
            area: offset_of!(Host, area.words) as i32,
            arriving: (offset_of!(Host, area) + Area::OFFSET_ARRIVING) as i32,
            cpu: Host::OFFSET_CPU as i32,
            fault: offset_of!(Host, run.fault) as i32,
            readable: offset_of!(Host, run.readable) as i32,
            counts: Host::OFFSET_CHAIN_COUNTS as i32,
        },
        tail_entry: offset_of!(Image, entries.tail) as i32,
        no_cpu: NO_CPU as usize as u64,
        find_program: FIND_PROGRAM as usize as u64,
        rules: [PACKET_LEN, PACKET_TYPE, PROTOCOL, RX_QUEUE, IFINDEX].map(|rule| rule as usize as u64),
        enter: ENTER as usize as u64,
        end: END as usize as u64,
        // The runtime is contiguous text.
        near: arena.is_near(map_link as fn(&Arc<Map>) -> MapLink as usize),
    })
}

/// Links of a slice: its look-ups begin walks, and there is nothing else that it could call.
pub(crate) fn ahead(links: &Links, maps: &[Arc<Map>]) -> Links {
    let map = |(link, map): (&MapLink, &Arc<Map>)| MapLink {
        array: None,
        cpus: None,
        programs: None,
        look_up: map.for_programs().ahead_function().map(|ahead| LookUpLink {
            address: ahead.function as usize as u64,
            context: ahead.context,
            key_bytes: ahead.by_word.then(|| map.spec().key_size as u8),
            member: Some(offset_of!(Host, ahead.walks) as i32),
        }),
        ..*link
    };
    let maps = links.maps.iter().zip(maps).map(map).collect();
    Links { helper: |_, _| None, kfuncs: Vec::new(), maps, ..links.clone() }
}

fn map_link(map: &Arc<Map>) -> MapLink {
    let cpus = cpus_of(map).map(|cpus| cpus as u32);
    let array = map.for_programs().array_layout().map(|layout| ArrayLink {
        base: layout.base.as_ptr() as u64,
        stride: layout.stride as u64,
        cpu_stride: if cpus == Some(1) { 0 } else { layout.cpu_stride as u64 },
        entries: layout.entries,
    });
    let programs = map.for_programs().prog_array().map(|array| {
        let layout = array.token_layout();
        ProgArrayLink {
            base: layout.base.as_ptr() as u64,
            stride: layout.stride as u64,
            entries: layout.entries,
        }
    });
    MapLink {
        handle: Arc::as_ptr(map) as u64,
        value: map.for_programs().direct_value(0).ok().map(|value| value.as_ptr() as u64),
        array,
        cpus,
        programs,
        look_up: map.for_programs().lookup_function().map(|lookup| LookUpLink {
            // default: functions for words are only some maps'.
            address: lookup.by_word.unwrap_or(lookup.function) as usize as u64,
            context: lookup.context,
            key_bytes: lookup.by_word.map(|_| map.spec().key_size as u8),
            member: lookup.takes_cpu.then_some(Host::OFFSET_CPU as i32),
        }),
    }
}

extern "C" fn end(host: &mut Host) {
    host.put_tag();
}

extern "C" fn no_cpu(host: &mut Host) -> u64 {
    host.lacks_cpu()
}

/// # Safety
/// `map` must be the handle of a map.
unsafe extern "C" fn find_program(map: u64, index: u64) -> u64 {
    // SAFETY: a handle is the map's address.
    let map = unsafe { &*(map as *const Map) };
    map.for_programs()
        .prog_array()
        .and_then(|array| array.token(index as u32))
        .map_or(0, std::num::NonZeroU64::get)
}

/// Functions that compute a number of the context.
macro_rules! rules {
    ($($name:ident: $rule:ident;)*) => {$(
        /// # Safety
        /// `frame` must be the address of a frame.
        unsafe extern "C" fn $name(frame: u64) -> u64 {
            // SAFETY: the address is guaranteed by the caller.
            u64::from(context::number(unsafe { &*(frame as *const Frame) }, Rule::$rule))
        }
    )*};
}

rules! {
    packet_len: PacketLen;
    packet_type: PacketType;
    protocol: Protocol;
    rx_queue: RxQueue;
    ifindex: Ifindex;
}

/// # Safety
/// `frame` must be the address of a frame.
unsafe extern "C" fn enter(host: &mut Host, frame: u64, uses: u64) {
    // SAFETY: the address is guaranteed by the caller.
    host.area.enter(unsafe { &*(frame as *const Frame) }, AreaUse::from_bits(uses as u32));
}
