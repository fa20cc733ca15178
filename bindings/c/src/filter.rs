//! Packet filters: tcpdump's expressions, and classic BPF.

use std::sync::Arc;

use paceline::chain::RunConfig;
use paceline::filter::{
    ConvertOptions, Filter, FilterError, Libpcap, PacketFilter, Packets, Purpose, Rules, SockFilter, Target,
    text as classic,
};

use crate::bound::Bound;
use crate::burst::BURSTS;
use crate::call;
use crate::handles::Table;
use crate::host::HOSTS;
use crate::kinds::engine;
use crate::object::of_refused;
use crate::opaque::{paceline_burst, paceline_filter, paceline_host, paceline_program};
use crate::raw::{Given, List, Out, Text, given};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

static FILTERS: Table<Arc<PacketFilter>, paceline_filter> = Table::new();

/// An instruction of classic BPF: struct sock_filter of linux/filter.h, struct bpf_insn of pcap.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_classic_instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if a jump is taken.
    pub jt: u8,
    /// Instructions to skip if it is not taken.
    pub jf: u8,
    /// Constant.
    pub k: u32,
}

/// How a filter is made. All zero, apart from the size, is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_filter_options {
    /// sizeof(struct paceline_filter_options)
    pub size: usize,
    /// One of enum paceline_engine.
    pub engine: u32,
    /// LINKTYPE_ number of the packets; 0 for 1, Ethernet.
    pub link_type: u32,
    /// Not 0 if the packets come from a capture and not from an interface, which affects some rules of libpcap. They are of this machine's
    /// byte order.
    pub is_capture: u32,
    /// 0.
    pub reserved: u32,
}

given!(paceline_filter_options);

/// Compiles an expression of tcpdump, such as "tcp port 22", with the libpcap of the system, which is loaded at the first call.
/// `options` may be null. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_compile(
    expression: Text,
    options: Given<paceline_filter_options>,
    error: ErrorOut,
) -> *mut paceline_filter {
    call::handle(error, || {
        let expression = expression.required("the expression")?;
        let given = options.optional()?;
        let libpcap = Libpcap::open().map_err(wrong)?;
        let insns = libpcap.compile(expression, target(given.as_ref())).map_err(wrong)?;
        make(Filter::new(insns, Purpose::UserSpace).map_err(wrong)?, Rules::Libpcap, given.as_ref())
    })
}

/// A filter from its instructions, such as those of pcap_compile, by the rules of the kernel's socket filters. `options` may be null. Null
/// on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_from_instructions(
    instructions: List<paceline_classic_instruction>,
    count: usize,
    options: Given<paceline_filter_options>,
    error: ErrorOut,
) -> *mut paceline_filter {
    call::handle(error, || {
        let insns = instructions.slice(count)?.iter().map(|insn| {
            let paceline_classic_instruction { code, jt, jf, k } = *insn;
            SockFilter { code, jt, jf, k }
        });
        let filter = Filter::new(insns.collect(), Purpose::Socket).map_err(wrong)?;
        make(filter, Rules::Kernel, options.optional()?.as_ref())
    })
}

/// A filter from text: what `tcpdump -d`, `-dd` or `-ddd` prints, or bpf_asm's language. `options` may be null. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_from_text(
    text: Text,
    options: Given<paceline_filter_options>,
    error: ErrorOut,
) -> *mut paceline_filter {
    call::handle(error, || {
        let insns = classic::parse(text.required("the text")?).map_err(wrong)?;
        let filter = Filter::new(insns, Purpose::Socket).map_err(wrong)?;
        make(filter, Rules::Kernel, options.optional()?.as_ref())
    })
}

/// Frees a filter. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_free(filter: *mut paceline_filter) -> paceline_status {
    call::plain_status(|| FILTERS.free(filter))
}

/// Matching packets of a burst: `matches` gets a bit each, from the lowest.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_matches(
    filter: *const paceline_filter,
    burst: *mut paceline_burst,
    host: *mut paceline_host,
    matches: Out<u64>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let filter = FILTERS.get(filter)?;
        let mut host = HOSTS.lock(host)?;
        let mut held = BURSTS.lock(burst)?;
        let run = host.run_with(held.burst(), |burst, host| filter.matches(burst, host));
        matches.write(run.map_err(|fault| Failure::of(paceline_status::Fault, &fault).at(fault.index))?);
        Ok(())
    })
}

/// The filter as an XDP program that passes what matches and drops the rest, for chains. By the rules of libpcap the length of a packet
/// is that of its bytes here. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_filter_program(
    filter: *const paceline_filter,
    error: ErrorOut,
) -> *mut paceline_program {
    call::handle(error, || {
        let filter = FILTERS.get(filter)?;
        Bound::give(Bound::verified(filter.program().clone(), RunConfig::default()))
    })
}

fn target(given: Option<&paceline_filter_options>) -> Target {
    let mut target = Target::default();
    if let Some(given) = given {
        if given.link_type != 0 {
            target.link_type = given.link_type;
        }
        if given.is_capture != 0 {
            target.packets = Packets::Capture { big_endian: cfg!(target_endian = "big") };
        }
    }
    target
}

fn make(
    filter: Filter,
    rules: Rules,
    given: Option<&paceline_filter_options>,
) -> Result<*mut paceline_filter, Failure> {
    let engine = engine(given.map_or(0, |given| given.engine))?;
    let filter = PacketFilter::new("filter", filter, &ConvertOptions::default().rules(rules), engine);
    FILTERS.give(Arc::new(filter.map_err(|error| match error {
        FilterError::Refused(refused) => of_refused(&refused),
        error => wrong(error),
    })?))
}

fn wrong(error: impl std::error::Error) -> Failure {
    Failure::of(paceline_status::Filter, &error)
}
