//! Numbers of C for engines, verdicts and types of programs.

use paceline::{Engine, ProgramKind, XdpAttach};

use crate::status::{Failure, paceline_status};

/// How programs run. All engines give the same results.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_engine {
    /// The fastest of this machine.
    Best = 0,
    /// Native code, on x86-64.
    Jit = 1,
    /// The fast interpreter.
    Threaded = 2,
    /// The interpreter that checks everything.
    Plain = 3,
}

/// Verdict of a packet: enum xdp_action.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_verdict {
    /// The program failed; the packet is dropped.
    Aborted = 0,
    /// The packet is dropped.
    Drop = 1,
    /// The packet goes on to the network stack.
    Pass = 2,
    /// The packet goes back out of the interface it came in on.
    Tx = 3,
    /// The packet goes to the frame's redirect target.
    Redirect = 4,
}

/// The type of a program.
#[derive(Clone, Copy)]
#[repr(C)]
pub enum paceline_program_type {
    /// XDP, attached to an interface.
    Xdp = 0,
    /// XDP, in an entry of a device map.
    XdpDevmap = 1,
    /// XDP, in an entry of a CPU map.
    XdpCpumap = 2,
    /// A socket filter.
    SocketFilter = 3,
    /// A TC classifier.
    SchedCls = 4,
}

impl paceline_program_type {
    pub(crate) fn kind(number: u32) -> Option<ProgramKind> {
        let xdp = |attach| ProgramKind::Xdp { attach, frags: false };
        Some(match number {
            0 => xdp(XdpAttach::Interface),
            1 => xdp(XdpAttach::DevMap),
            2 => xdp(XdpAttach::CpuMap),
            3 => ProgramKind::SocketFilter,
            4 => ProgramKind::SchedCls,
            _ => return None,
        })
    }
}

/// The number of a type; unknown ones, which a later library may have, count as XDP.
pub(crate) fn number_of(kind: ProgramKind) -> paceline_program_type {
    match kind {
        ProgramKind::SocketFilter => paceline_program_type::SocketFilter,
        ProgramKind::SchedCls => paceline_program_type::SchedCls,
        ProgramKind::Xdp { attach: XdpAttach::DevMap, .. } => paceline_program_type::XdpDevmap,
        ProgramKind::Xdp { attach: XdpAttach::CpuMap, .. } => paceline_program_type::XdpCpumap,
        _ => paceline_program_type::Xdp,
    }
}

/// The engine of a number, which this machine must have.
pub(crate) fn engine(number: u32) -> Result<Engine, Failure> {
    let engine = match number {
        0 => Engine::best(),
        1 => Engine::Jit,
        2 => Engine::Threaded,
        3 => Engine::Plain,
        _ => return Err(Failure::argument(format!("{number} is no enum paceline_engine"))),
    };
    if engine.is_available() {
        Ok(engine)
    } else {
        Err(Failure::new(
            paceline_status::Unsupported,
            format!("engine {engine} is not available on this machine"),
        ))
    }
}

/// The number of an engine.
pub(crate) fn engine_number(engine: Engine) -> paceline_engine {
    match engine {
        Engine::Jit => paceline_engine::Jit,
        Engine::Threaded => paceline_engine::Threaded,
        Engine::Plain => paceline_engine::Plain,
    }
}
