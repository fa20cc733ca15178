//! libpcap: its interpreter of classic BPF, on what its compiler makes of tcpdump's expressions.
#![allow(unsafe_code, reason = "calls C")]

use std::error::Error;
use std::ffi::{CStr, c_char};

use paceline::{Engine, FrameMut, Host, Program};
use paceline_load::classic::{ConvertOptions, Filter, Purpose, Returns, SockFilter};
use paceline_verifier::{Options, verify};
use pcap::{BpfInstruction, Capture, Linktype};

use super::Workload;
use super::contender::{Contender, Role};

unsafe extern "C" {
    fn bpf_filter(program: *const BpfInstruction, packet: *const u8, len: u32, captured: u32) -> u32;
    fn pcap_lib_version() -> *const c_char;
}

/// `PASS` and `DROP` of workloads.h: a filter returns how many bytes to keep.
const VERDICTS: [u64; 2] = [1, 2];

/// The interpreter on the workload's expression, if it has one. No test of the expressions asks for a netmask.
pub(super) fn contenders<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let Some(expression) = workload.expression else { return Ok(Vec::new()) };
    let program = Capture::dead(Linktype::ETHERNET)?.compile(expression, true)?;
    let run = move |frame: &mut FrameMut<'_>| {
        let (len, instructions) = (frame.len() as u32, program.get_instructions());
        // SAFETY: libpcap made the program, and the packet is as long as it is told.
        let kept = unsafe { bpf_filter(instructions.as_ptr(), frame.data(), len, len) };
        VERDICTS[usize::from(kept != 0)]
    };
    Ok(vec![Contender::new(format!("{} bpf_filter", version()), Role::Libpcap, run)])
}

/// Our fast engines on the same filter as the converter makes a program of it.
pub(super) fn converted<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let Some(expression) = workload.expression else { return Ok(Vec::new()) };
    let program = Capture::dead(Linktype::ETHERNET)?.compile(expression, true)?;
    let insns: Result<_, _> = program.get_instructions().iter().map(instruction).collect();
    let [unmatched, matched] = VERDICTS.map(|verdict| verdict as u32);
    let returns = Returns::Verdict { matched, unmatched };
    let options = ConvertOptions { returns, ..ConvertOptions::default() };
    let spec = Filter::new(insns?, Purpose::Socket)?.to_xdp(workload.name, &options)?;
    let verified = verify(&spec, &[], None, &Options::default())?;
    let engines = [Engine::Threaded, Engine::Jit].into_iter().filter(|engine| engine.is_available());
    let contender = |engine: Engine| {
        let (program, mut host) = (Program::load(&verified, Vec::new(), engine)?, Host::default());
        let run = move |frame: &mut FrameMut<'_>| program.run(frame, &mut host).unwrap_or(u64::MAX);
        Ok(Contender::new(format!("{engine}, converted filter"), Role::Converted(engine), run))
    };
    engines.map(contender).collect()
}

/// An instruction of libpcap's, which shows its four numbers.
fn instruction(insn: &BpfInstruction) -> Result<SockFilter, Box<dyn Error>> {
    let text = insn.to_string();
    let mut numbers = text.split(' ').map(str::parse::<u32>);
    let mut next =
        || numbers.next().ok_or("an instruction has four numbers")?.map_err(Box::<dyn Error>::from);
    let (code, jt, jf, k) = (next()?, next()?, next()?, next()?);
    Ok(SockFilter { code: code.try_into()?, jt: jt.try_into()?, jf: jf.try_into()?, k })
}

/// `libpcap 1.10.3` of `libpcap version 1.10.3 (with TPACKET_V3)`.
fn version() -> String {
    // SAFETY: a static string.
    let text = unsafe { CStr::from_ptr(pcap_lib_version()) }.to_string_lossy();
    text.split(" (").next().unwrap_or_default().replace(" version", "")
}
