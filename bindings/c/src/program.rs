//! Functions of programs.

use std::ffi::c_char;

use paceline::InstallError;

use crate::bound::PROGRAMS;
use crate::burst::BURSTS;
use crate::call;
use crate::host::HOSTS;
use crate::kinds::{engine_number, paceline_engine};
use crate::map::MAPS;
use crate::object::paceline_program_info;
use crate::opaque::{paceline_burst, paceline_host, paceline_map, paceline_program};
use crate::packet::{paceline_frame, paceline_packet};
use crate::raw::{Filled, Given};
use crate::status::{Failure, Report, paceline_status};
use crate::told::ErrorOut;

/// Frees a program. It stays as long as it runs, in maps and in chains. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_free(program: *mut paceline_program) -> paceline_status {
    call::plain_status(|| PROGRAMS.free(program))
}

/// The name of a program, which lives as long as the handle; an empty text if it is no handle.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_name(program: *const paceline_program) -> *const c_char {
    call::plain(c"".as_ptr(), || Ok(PROGRAMS.get(program)?.names[0].as_ptr()))
}

/// Properties of a program.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_read_info(
    program: *const paceline_program,
    info: Filled<paceline_program_info>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let bound = PROGRAMS.get(program)?;
        info.write(paceline_program_info::new(&bound.names, bound.program.spec()))
    })
}

/// The engine that runs the program; PACELINE_ENGINE_BEST if it is no handle.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_engine(program: *const paceline_program) -> paceline_engine {
    call::plain(paceline_engine::Best, || Ok(engine_number(PROGRAMS.get(program)?.program.engine())))
}

/// Number of the program, unique in the process, by which entries of device and CPU maps name it; 0 if it is no handle.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_id(program: *const paceline_program) -> u32 {
    call::plain(0, || Ok(PROGRAMS.get(program)?.program.id()))
}

/// Puts a program into a program array, for tail calls.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_install(
    program: *const paceline_program,
    map: *const paceline_map,
    index: u32,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let (bound, held) = (PROGRAMS.get(program)?, MAPS.get(map)?);
        bound.program.install(held.map(), index).map_err(|error| {
            let errno = if let InstallError::Refused(errno) = error { errno.0.into() } else { 0 };
            Failure::told(Report {
                status: Some(paceline_status::Map),
                message: format!("map {}, index {index}: {error}", held.map().spec().name),
                map: Some(held.map().spec().name.clone()),
                error_number: errno,
                ..Report::default()
            })
        })
    })
}

/// Runs a program over one packet, which is copied. `frame` gets the packet as the program left it; its bytes are the host's, and good
/// until the next call with the host, to which they may be passed: so a packet goes through several programs. `frame` may be null.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_run(
    program: *const paceline_program,
    host: *mut paceline_host,
    packet: Given<paceline_packet>,
    frame: Filled<paceline_frame>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut host = HOSTS.lock(host)?;
        let packet = packet.required()?;
        let (value, verdict) = host.run_one(program, &packet)?;
        if !frame.is_wanted() {
            return Ok(());
        }
        frame
            .write(paceline_frame { verdict: verdict as u32, ..paceline_frame::of(host.last_frame(), value) })
    })
}

/// Runs a program over the packets of a burst, in order; paceline_burst_frames has what became of them. On PACELINE_STATUS_FAULT
/// `index` in the error's details is the packet's: those before it ran, those after it did not.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_program_run_burst(
    program: *const paceline_program,
    burst: *mut paceline_burst,
    host: *mut paceline_host,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let mut host = HOSTS.lock(host)?;
        let mut held = BURSTS.lock(burst)?;
        host.run_burst(program, held.burst())
    })
}
