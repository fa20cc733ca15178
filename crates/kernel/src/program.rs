//! Kernel programs: loading, and test runs on a packet.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use paceline_isa::RawInsn;
use paceline_spec::context::{SK_BUFF, SkBuff, TC_SK_BUFF};
use paceline_spec::{Errno, KfuncRef, MemberError, ProgramKind, SkBuffMember, XdpAttach};

use crate::error::KernelError;
use crate::map::Map;
use crate::map::object_name;
use crate::sys::{self, FuncInfo, ProgLoad};
use crate::types::with_kernel_functions;

/// Minimum packet length of a test run: an Ethernet header.
pub const MIN_PACKET: usize = 14;

/// Maximum length of packet and metadata in one buffer of a test run: a page without headroom and tailroom
/// (`bpf_prog_test_run_xdp` in `net/bpf/test_run.c`, 64-byte cache lines). Longer packets have fragments.
pub const MAX_PACKET: usize = 4096 - 256 - 320;

/// Bytes that a test run removes from the packet for programs that start at the network header.
pub const ETHERNET_LEN: usize = 14;

/// Index of the loopback device, the ingress interface of test runs.
const LOOPBACK: u32 = 1;

const ATTACH_XDP_DEVMAP: u32 = 33;
const ATTACH_XDP_CPUMAP: u32 = 35;
const ATTACH_XDP: u32 = 37;
/// `BPF_TCX_EGRESS`
const ATTACH_EGRESS: u32 = 47;
const F_XDP_HAS_FRAGS: u32 = 1 << 5;

/// The log level with reasons and statistics, without instructions (`BPF_LOG_STATS`).
pub(super) const LOG_STATS: u32 = 4;

/// Whether a test run supports a packet of these lengths in bytes.
#[must_use]
pub const fn check_packet(packet: usize, meta: usize) -> bool {
    packet >= MIN_PACKET && packet + meta <= MAX_PACKET
}

/// A program to load.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Its name; the kernel keeps 15 bytes.
    pub name: &'a str,
    /// Its type.
    pub kind: ProgramKind,
    /// Its slots; maps by index into `maps`.
    pub insns: &'a [RawInsn],
    /// The kernel functions that it calls, by index.
    pub kfuncs: &'a [KfuncRef],
    /// Maps by index.
    pub maps: &'a [Map],
    /// License; helpers for GPL programs need a compatible one.
    pub license: &'a str,
    /// BTF, and the first slot and type id of every function, which make subprograms global.
    pub btf: Option<(BorrowedFd<'a>, Vec<(u32, u32)>)>,
    /// The verifier's log level if loading fails: 1 logs states at branches, 2 every instruction.
    pub log_level: u32,
}

impl<'a> Request<'a> {
    /// An XDP program without maps, under the GPL.
    #[must_use]
    pub fn xdp(insns: &'a [RawInsn]) -> Self {
        Self {
            name: "",
            kind: ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false },
            insns,
            kfuncs: &[],
            maps: &[],
            license: "GPL",
            btf: None,
            log_level: 2,
        }
    }
}

/// A packet for a test run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// The packet.
    pub data: &'a [u8],
    /// Metadata before it.
    pub meta: &'a [u8],
    /// Interface it comes in on; 0 for the loopback device of the test run.
    pub ingress_ifindex: u32,
    /// Queue of that interface.
    pub rx_queue: u32,
    /// Members of the `sk_buff` of a TC classifier that do not come from the packet: those of [`SK_BUFF_MEMBERS`].
    pub sk_buff: SkBuff,
}

impl<'a> Packet<'a> {
    /// A packet without metadata, on the default interface and queue.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, ..Self::default() }
    }
}

/// Result of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    /// Low 32 bits of `r0`.
    pub retval: u32,
    /// The packet.
    pub data: Vec<u8>,
    /// The metadata before it.
    pub meta: Vec<u8>,
    /// The `__sk_buff` of a TC classifier.
    pub sk_buff: Option<SkBuffBytes>,
}

/// A `struct __sk_buff`.
pub type SkBuffBytes = [u8; SK_BUFF.size as usize];

/// Lengths of a loaded program in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Instructions after the verifier rewrote them.
    pub translated: u32,
    /// Native code; 0 without a JIT.
    pub native: u32,
}

/// A program in the kernel.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
    kind: ProgramKind,
}

impl Program {
    /// Verifies and loads a program.
    ///
    /// # Errors
    /// The kernel's refusal with the verifier's log.
    pub fn load(request: &Request<'_>) -> Result<Self, KernelError> {
        let fd = with_prog_load(request, load)?;
        Ok(Self { fd, kind: request.kind })
    }

    /// The same, with the verifier's log of an accepted program.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with_log(request: &Request<'_>) -> Result<(Self, String), KernelError> {
        let (fd, log) = with_prog_load(request, load_with_log)?;
        Ok((Self { fd, kind: request.kind }, log))
    }

    /// The program's descriptor.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Attaches an XDP program to an interface, until the returned link is dropped.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn attach(&self, ifindex: u32) -> Result<OwnedFd, KernelError> {
        sys::link_create(self.fd(), ifindex, ATTACH_XDP).map_err(|errno| KernelError::new("attach", errno))
    }

    /// Attaches a classifier to what an interface sends, until the returned link is dropped.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn attach_egress(&self, ifindex: u32) -> Result<OwnedFd, KernelError> {
        sys::link_create(self.fd(), ifindex, ATTACH_EGRESS).map_err(|errno| KernelError::new("attach", errno))
    }

    pub(super) fn raw_fd(&self) -> u32 {
        self.fd.as_raw_fd().cast_unsigned()
    }

    /// Runs the program once.
    ///
    /// # Errors
    /// The kernel's refusal: [`Errno::EINVAL`] for packets that [`check_packet`] refuses, metadata whose length is not a
    /// multiple of 4 up to 252 bytes, or an interface without such a queue.
    pub fn test_run(&self, packet: &Packet<'_>) -> Result<TestRun, KernelError> {
        match self.kind {
            ProgramKind::SocketFilter => return self.test_filter(packet),
            ProgramKind::SchedCls => return self.test_classifier(packet),
            _ => {}
        }
        let joined;
        let data = match packet.meta {
            [] => packet.data,
            meta => {
                joined = [meta, packet.data].concat();
                &joined
            }
        };
        // `bpf_xdp_adjust_head` and `_tail` cannot extend it beyond the buffer.
        let mut data_out = vec![0; data.len().max(4096)];
        let mut ctx_out = [0; 24];
        let ctx = xdp_md(packet, data.len());
        let error = |errno| KernelError::new("test run", errno);
        let run = sys::prog_test_run(self.fd(), 1, data, &ctx, &mut data_out, &mut ctx_out).map_err(error)?;
        data_out.truncate(run.data_len);
        // The output starts at the metadata; `xdp_md.data` is its length.
        let meta_len = u32::from_ne_bytes([ctx_out[0], ctx_out[1], ctx_out[2], ctx_out[3]]) as usize;
        let data = data_out.split_off(meta_len.min(data_out.len()));
        Ok(TestRun { retval: run.retval, data, meta: data_out, sk_buff: None })
    }

    /// Runs a socket filter over the whole packet. The kernel's test run first removes an Ethernet header, from which it
    /// takes the protocol. Packet sockets show filters this header, so a copy of it is prepended.
    fn test_filter(&self, packet: &Packet<'_>) -> Result<TestRun, KernelError> {
        let mut header = [0; ETHERNET_LEN];
        let len = packet.data.len().min(ETHERNET_LEN);
        header[..len].copy_from_slice(&packet.data[..len]);
        let data = [&header, packet.data].concat();
        let mut data_out = vec![0; data.len()];
        let ctx = sk_buff(packet);
        let error = |errno| KernelError::new("test run", errno);
        let run = sys::prog_test_run(self.fd(), 1, &data, &ctx, &mut data_out, &mut []).map_err(error)?;
        data_out.truncate(run.data_len);
        // The output starts with the bytes of the removed header, zeroed.
        data_out.drain(..ETHERNET_LEN.min(run.data_len));
        Ok(TestRun { retval: run.retval, data: data_out, meta: Vec::new(), sk_buff: None })
    }

    /// Runs a TC classifier, whose test run keeps the Ethernet header.
    fn test_classifier(&self, packet: &Packet<'_>) -> Result<TestRun, KernelError> {
        self.test_with_context(packet.data, &sk_buff(packet))
    }

    /// Runs the program on a packet that another test run left, and for TC classifiers with the `__sk_buff` that it left; all of it
    /// is zero if there is none.
    ///
    /// # Errors
    /// As [`test_run`](Self::test_run).
    pub fn test_run_after(&self, data: &[u8], sk_buff: Option<&SkBuffBytes>) -> Result<TestRun, KernelError> {
        match self.kind {
            ProgramKind::SchedCls => {
                self.test_with_context(data, sk_buff.unwrap_or(&[0; SK_BUFF.size as usize]))
            }
            _ => self.test_run(&Packet::new(data)),
        }
    }

    fn test_with_context(&self, data: &[u8], ctx: &SkBuffBytes) -> Result<TestRun, KernelError> {
        let mut data_out = vec![0; data.len() + 4096];
        let mut sk_buff_out = [0; SK_BUFF.size as usize];
        let error = |errno| KernelError::new("test run", errno);
        let run =
            sys::prog_test_run(self.fd(), 1, data, ctx, &mut data_out, &mut sk_buff_out).map_err(error)?;
        data_out.truncate(run.data_len);
        Ok(TestRun { retval: run.retval, data: data_out, meta: Vec::new(), sk_buff: Some(sk_buff_out) })
    }

    /// Nanoseconds per run, averaged and rounded by the kernel over `repeat` runs on the same packet.
    ///
    /// # Errors
    /// As [`test_run`](Self::test_run).
    pub fn time(&self, data: &[u8], repeat: u32) -> Result<u32, KernelError> {
        let mut data_out = vec![0; data.len().max(4096)];
        sys::prog_test_run(self.fd(), repeat, data, &[], &mut data_out, &mut [])
            .map(|run| run.duration)
            .map_err(|errno| KernelError::new("test run", errno))
    }

    /// Runs the XDP program on `count` packets with these bytes, as if an interface received them: redirected ones are sent
    /// (`BPF_F_TEST_XDP_LIVE_FRAMES`, `Documentation/bpf/bpf_prog_run.rst`).
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn run_live(&self, data: &[u8], count: u32) -> Result<(), KernelError> {
        sys::prog_run_live(self.fd(), count, data).map_err(|errno| KernelError::new("live run", errno))
    }

    /// Lengths of the program in the kernel.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn lengths(&self) -> Result<Lengths, KernelError> {
        let info = sys::prog_info(self.fd()).map_err(|errno| KernelError::new("program info", errno))?;
        Ok(Lengths { translated: info.xlated_len, native: info.jited_len })
    }
}

fn attach(kind: ProgramKind) -> (u32, u32) {
    match kind {
        ProgramKind::Xdp { attach, frags } => {
            let attach = match attach {
                XdpAttach::Interface => ATTACH_XDP,
                XdpAttach::DevMap => ATTACH_XDP_DEVMAP,
                XdpAttach::CpuMap => ATTACH_XDP_CPUMAP,
            };
            (attach, if frags { F_XDP_HAS_FRAGS } else { 0 })
        }
        // Other types have no such attribute.
        _ => (0, 0),
    }
}

fn host_order(insn: RawInsn) -> [u8; 8] {
    if cfg!(target_endian = "little") { insn.to_le_bytes() } else { insn.to_be_bytes() }
}

/// Converts a request to the arguments of the system call.
fn with_prog_load<T>(
    request: &Request<'_>,
    load: impl FnOnce(&ProgLoad<'_>) -> Result<T, KernelError>,
) -> Result<T, KernelError> {
    let insns = with_kernel_functions(request.insns, request.kfuncs)?;
    let insns: Vec<[u8; 8]> = insns.into_iter().map(host_order).collect();
    let fds: Vec<RawFd> = request.maps.iter().map(|map| map.raw_fd().cast_signed()).collect();
    let license = CString::new(request.license).unwrap_or_default();
    let (expected_attach_type, prog_flags) = attach(request.kind);
    let (btf, functions) = match &request.btf {
        Some((fd, functions)) => (Some(*fd), functions.as_slice()),
        None => (None, &[][..]),
    };
    let func_info: Vec<FuncInfo> =
        functions.iter().map(|&(insn_off, type_id)| FuncInfo { insn_off, type_id }).collect();
    load(&ProgLoad {
        prog_type: request.kind.rules().number,
        expected_attach_type,
        prog_flags,
        insns: &insns,
        license: &license,
        name: object_name(request.name),
        fd_array: &fds,
        btf,
        func_info: &func_info,
        log_level: request.log_level,
    })
}

/// Loads without a log, which is faster, and with one if that fails.
fn load(request: &ProgLoad<'_>) -> Result<OwnedFd, KernelError> {
    match sys::prog_load(request, &mut []) {
        Ok(fd) => Ok(fd),
        // After a million simulated instructions the log of each takes minutes and adds no information.
        Err(Errno::E2BIG) => {
            let brief = ProgLoad { log_level: LOG_STATS, ..*request };
            match load_with_log(&brief) {
                Err(error) if !error.reason().starts_with("BPF program is too large") => {
                    load_with_log(request).map(|(fd, _)| fd)
                }
                result => result.map(|(fd, _)| fd),
            }
        }
        Err(_) => load_with_log(request).map(|(fd, _)| fd),
    }
}

fn load_with_log(request: &ProgLoad<'_>) -> Result<(OwnedFd, String), KernelError> {
    let mut log = vec![0; 1 << 20];
    loop {
        let result = sys::prog_load(request, &mut log);
        if matches!(result, Err(Errno::ENOSPC)) && log.len() < 1 << 26 {
            log.resize(log.len() * 4, 0);
            continue;
        }
        let text =
            CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default().into_owned();
        return match result {
            Ok(fd) => Ok((fd, text)),
            Err(errno) => Err(KernelError { operation: "load program", errno, log: text }),
        };
    }
}

/// `struct xdp_md` of a test run, with `len` bytes of metadata and packet.
fn xdp_md(packet: &Packet<'_>, len: usize) -> [u8; 24] {
    let mut ctx = [0; 24];
    let fields = [packet.meta.len() as u32, len as u32, 0, packet.ingress_ifindex, packet.rx_queue, 0];
    for (place, field) in ctx.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_ne_bytes());
    }
    ctx
}

/// `struct __sk_buff` of a test run; other fields than these cannot be set.
fn sk_buff(packet: &Packet<'_>) -> SkBuffBytes {
    let mut ctx = [0; SK_BUFF.size as usize];
    let interface = packet.ingress_ifindex.max(LOOPBACK).to_ne_bytes();
    for field in SK_BUFF.fields.iter().filter(|field| field.name.ends_with("ifindex")) {
        let start = usize::from(field.offset);
        ctx[start..start + interface.len()].copy_from_slice(&interface);
    }
    for (member, (start, size)) in members() {
        let value = member.of(&packet.sk_buff);
        // All of them are numbers of the machine's order, in fields of 4 or 8 bytes.
        let bytes =
            if size == 8 { value.to_ne_bytes().to_vec() } else { (value as u32).to_ne_bytes().to_vec() };
        ctx[start..start + size].copy_from_slice(&bytes);
    }
    ctx
}

/// The members of an `sk_buff` that test runs take and give (`convert___skb_to_skb` and `convert_skb_to___skb` in `net/bpf/test_run.c`).
pub const SK_BUFF_MEMBERS: [&str; 8] =
    ["mark", "priority", "cb[0]", "cb[1]", "cb[2]", "cb[3]", "cb[4]", "tstamp"];

/// Those members with their place in `struct __sk_buff`: offset and size in bytes.
fn members() -> impl Iterator<Item = (&'static SkBuffMember, (usize, usize))> {
    SK_BUFF_MEMBERS.into_iter().filter_map(|name| {
        let (field, word) = match name.strip_prefix("cb[").and_then(|rest| rest.strip_suffix(']')) {
            Some(word) => ("cb", Some(word.parse::<usize>().ok()?)),
            None => (name, None),
        };
        let field = TC_SK_BUFF.fields.iter().find(|known| known.name == field)?;
        let (start, size) = (usize::from(field.offset), usize::from(field.size));
        Some((SkBuffMember::named(name)?, word.map_or((start, size), |word| (start + 4 * word, 4))))
    })
}

/// The members of [`SK_BUFF_MEMBERS`] that a `__sk_buff` has.
///
/// # Errors
/// A member that packets do not arrive with, which none of them is.
pub fn members_of(ctx: &SkBuffBytes) -> Result<SkBuff, MemberError> {
    let mut skb = SkBuff::default();
    for (member, (start, size)) in members() {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&ctx[start..start + size]);
        let value = if size == 8 {
            u64::from_ne_bytes(bytes)
        } else {
            u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).into()
        };
        skb.set(member.name, value)?;
    }
    Ok(skb)
}

/// Loads BTF and returns its descriptor.
///
/// # Errors
/// The kernel's refusal with its log.
pub fn load_btf(btf: &[u8]) -> Result<OwnedFd, KernelError> {
    if let Ok(fd) = sys::btf_load(btf, &mut []) {
        return Ok(fd);
    }
    let mut log = vec![0; 1 << 20];
    sys::btf_load(btf, &mut log).map_err(|errno| {
        let text = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
        KernelError { operation: "load BTF", errno, log: text.into_owned() }
    })
}
