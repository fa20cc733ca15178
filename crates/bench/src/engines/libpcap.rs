//! libpcap: its interpreter of classic BPF, on the output of its compiler for tcpdump's expressions.
#![allow(unsafe_code, reason = "calls C")]

use std::error::Error;
use std::ffi::{CStr, c_char};

use paceline::FrameMut;
use pcap::{BpfInstruction, Capture, Linktype};

use super::contender::{Contender, Role};
use super::workload::Workload;

unsafe extern "C" {
    fn bpf_filter(program: *const BpfInstruction, packet: *const u8, len: u32, captured: u32) -> u32;
    fn pcap_lib_version() -> *const c_char;
}

/// `PASS` and `DROP` of workloads.h: a filter returns the number of bytes to keep.
const VERDICTS: [u64; 2] = [1, 2];

/// The interpreter on the workload's expression, if it has one. No expression needs a netmask.
pub(super) fn contenders<'a>(workload: Workload) -> Result<Vec<Contender<'a>>, Box<dyn Error>> {
    let Some(expression) = workload.expression else { return Ok(Vec::new()) };
    let program = Capture::dead(Linktype::ETHERNET)?.compile(expression, true)?;
    let run = move |frame: &mut FrameMut<'_>| {
        let (len, instructions) = (frame.len() as u32, program.get_instructions());
        // SAFETY: libpcap compiled the program, and the length is the packet's.
        let kept = unsafe { bpf_filter(instructions.as_ptr(), frame.data(), len, len) };
        VERDICTS[usize::from(kept != 0)]
    };
    Ok(vec![Contender::new(format!("{} bpf_filter", version()), Role::Libpcap, run)])
}

/// `libpcap 1.10.3` of `libpcap version 1.10.3 (with TPACKET_V3)`.
fn version() -> String {
    // SAFETY: a static string.
    let text = unsafe { CStr::from_ptr(pcap_lib_version()) }.to_string_lossy();
    text.split(" (").next().unwrap_or_default().replace(" version", "")
}
