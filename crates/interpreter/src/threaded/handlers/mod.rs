//! Handlers of operations.
//!
//! Each [`Kind`] has a handler, [`operation`] with the kind as a constant. A handler ends by continuing
//! with the next operation as its [`Dispatch`] defines.

mod call;
mod codes;
mod fused;
mod memory;
mod packet_field;

use paceline_isa::{Size, SwapOrder, eval};
use paceline_runtime::host::Host;
use paceline_runtime::machine::Machine;

use super::kind::{KINDS, Kind, MAX_KINDS, Reach, Source};
use super::op::{Handler, Op, Packet};

pub(super) use codes::each_code;

/// Dispatch of the next operation. The results of handlers are for its [`run`](Self::run).
pub(super) trait Dispatch {
    /// Runs from an operation to the end; returns `r0`.
    ///
    /// # Safety
    /// `ip` must be an operation of a verified program whose maps live, which came to it on this host's machine.
    unsafe fn run(ip: *const Op, host: *mut Host) -> u64;

    /// # Safety
    /// `ip` must be an operation of a program that the machine runs, or [`end`]; the packet is the host's.
    unsafe fn go(ip: *const Op, host: *mut Host, packet: Packet) -> u64;

    /// Ends the run with `r0`.
    ///
    /// # Safety
    /// The machine must be this run's.
    unsafe fn end(host: *mut Host) -> u64;

    /// Ends the run with a number.
    ///
    /// # Safety
    /// The machine must be this run's.
    unsafe fn end_with(host: *mut Host, r0: u64) -> u64;
}

/// Returns the address of the next operation to a loop, which calls the handler; 0 at the end.
pub(super) struct Loop;

impl Dispatch for Loop {
    unsafe fn run(mut ip: *const Op, host: *mut Host) -> u64 {
        // SAFETY: the caller vouches for the first operation, and each gives one that follows it.
        unsafe {
            while !ip.is_null() {
                ip = ((*ip).head.handler)(ip, host, Packet::of(host)) as *const Op;
            }
            get(host, 0)
        }
    }

    #[inline(always)]
    unsafe fn go(ip: *const Op, _: *mut Host, _: Packet) -> u64 {
        ip as u64
    }

    #[inline(always)]
    unsafe fn end(_: *mut Host) -> u64 {
        0
    }

    #[inline(always)]
    unsafe fn end_with(host: *mut Host, r0: u64) -> u64 {
        // SAFETY: the caller vouches for it.
        unsafe { set(host, 0, r0) };
        0
    }
}

/// Jumps to the handler; the last one returns `r0`. The call in tail position becomes a jump in optimized
/// builds, which `vm/tests/tail_jumps.rs` checks.
#[cfg(all(tail_jumps, not(debug_assertions)))]
pub(super) struct Jump;

#[cfg(all(tail_jumps, not(debug_assertions)))]
impl Dispatch for Jump {
    #[inline(always)]
    unsafe fn run(ip: *const Op, host: *mut Host) -> u64 {
        // SAFETY: the caller vouches for it.
        unsafe { Self::go(ip, host, Packet::of(host)) }
    }

    #[inline(always)]
    unsafe fn go(ip: *const Op, host: *mut Host, packet: Packet) -> u64 {
        // SAFETY: the caller vouches for `ip`, and the first part of an operation has a handler.
        unsafe { ((*ip).head.handler)(ip, host, packet) }
    }

    #[inline(always)]
    unsafe fn end(host: *mut Host) -> u64 {
        // SAFETY: the caller vouches for it.
        unsafe { get(host, 0) }
    }

    #[inline(always)]
    unsafe fn end_with(_: *mut Host, r0: u64) -> u64 {
        r0
    }
}

#[cfg(not(all(tail_jumps, not(debug_assertions))))]
pub(super) use Loop as Jump;

macro_rules! jumps {
    ($($code:literal)*) => { [$(operation::<Jump, $code>),*] };
}

macro_rules! steps {
    ($($code:literal)*) => { [$(operation::<Loop, $code>),*] };
}

/// The handlers by the code of their kind.
pub(super) static HANDLERS: [Handler; MAX_KINDS] = each_code!(jumps);

/// Handlers that return the next operation instead of jumping to it.
pub(super) static STEPS: [Handler; MAX_KINDS] = each_code!(steps);

static END: Op = Op::new(finish);

/// An operation that ends the run.
#[inline]
pub(super) fn end() -> *const Op {
    &raw const END
}

/// Leaves the running function; returns the operation to continue with.
#[inline(always)]
fn leave(machine: &mut Machine) -> *const Op {
    machine.leave().map_or_else(end, |next| next.cast())
}

unsafe extern "C" fn finish(_: *const Op, host: *mut Host, _: Packet) -> u64 {
    // SAFETY: called for a run's machine, as handlers are.
    unsafe { Jump::end(host) }
}

/// The value of a register.
///
/// # Safety
/// The number must be a register's.
#[inline(always)]
unsafe fn get(host: *mut Host, register: u8) -> u64 {
    // SAFETY: the machine is this run's, the number a register's.
    unsafe { *(&raw const (*host).machine.registers).cast::<u64>().add(usize::from(register)) }
}

#[inline(always)]
unsafe fn set(host: *mut Host, register: u8, value: u64) {
    // SAFETY: the machine is this run's, the number a register's.
    unsafe { *(&raw mut (*host).machine.registers).cast::<u64>().add(usize::from(register)) = value };
}

/// The second operand.
#[inline(always)]
unsafe fn operand(op: &Op, host: *mut Host, source: Source) -> u64 {
    match source {
        // SAFETY: as the caller's.
        Source::Reg => unsafe { get(host, op.src) },
        Source::Imm => op.imm as u64,
    }
}

/// The handler of the kind with a code.
///
/// # Safety
/// `ip` must be an operation of that kind, made from a verified program, which runs on the host's machine and came to
/// this operation; the packet is the host's.
#[cfg_attr(all(feature = "variants", not(debug_assertions)), inline(always))]
pub(super) unsafe extern "C" fn operation<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    let rare = const { Rare { load: load_unaligned::<D, CODE>, store: store_unaligned::<D, CODE> } };
    // SAFETY: as the caller's.
    unsafe { execute::<D>(const { KINDS[CODE] }, rare, ip, host, packet) }
}

/// Out-of-line parts of an operation.
#[derive(Clone, Copy)]
struct Rare {
    load: Handler,
    store: Handler,
}

/// The body of all handlers. Optimized builds have a copy in each handler, of which the constant kind leaves one arm. Others
/// would leave all arms in 512 copies, whose translation takes longer than that of the rest of the crate: there the handlers share one.
///
/// # Safety
/// As of [`operation`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn execute<D: Dispatch>(
    kind: Kind,
    rare: Rare,
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: for all of it: operations are made by `translate`, which puts register numbers, offsets and second parts
    // where their kind has them, and follows each operation but jumps by the one that comes next. The verifier has
    // shown that the program comes only to what it may do.
    unsafe {
        let op = &*ip;
        match kind {
            Kind::Nop => {}
            Kind::Alu { width, op: alu, src } => {
                let b = operand(op, host, src);
                set(host, op.dst, eval::alu(width, alu, get(host, op.dst), b));
            }
            Kind::Neg(width) => set(host, op.dst, eval::neg(width, get(host, op.dst))),
            Kind::MovSx { width, from } => {
                let value = eval::sign_extend(from, get(host, op.src));
                set(host, op.dst, eval::truncate(width, value));
            }
            Kind::Reverse(size) => {
                set(host, op.dst, eval::swap(SwapOrder::Always, size, get(host, op.dst)));
            }
            Kind::LoadImm64 => {
                set(host, op.dst, second(ip).head.word);
                return D::go(ip.add(2), host, packet);
            }
            Kind::LoadFunction => set(host, op.dst, ip.offset(op.imm as isize) as u64),
            Kind::Load { size, signed, reach } => {
                let address = memory::load_address(op, host);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return (rare.load)(ip, host, packet);
                }
                let value = memory::load(address, size, reach);
                set(host, op.dst, if signed { eval::sign_extend(size, value) } else { value });
            }
            Kind::Store { size, src, reach } => {
                let address = memory::store_address(op, host);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return (rare.store)(ip, host, packet);
                }
                memory::store(address, size, reach, operand(op, host, src));
            }
            Kind::LoadAcquire(size) => memory::load_acquire(op, host, size),
            Kind::StoreRelease(size) => memory::store_release(op, host, size),
            Kind::Atomic { width, op: atomic } => memory::atomic(op, host, width, atomic),
            Kind::LoadFrame(size) => set(host, op.dst, memory::load_frame(op, host, size)),
            Kind::LoadContext(size) => {
                let field = second(ip).head.word;
                set(host, op.dst, memory::load_context(op, host, field, size));
                return D::go(ip.add(2), host, packet);
            }
            Kind::LoadHost(size) => set(host, op.dst, memory::load_host(op, host, size)),
            Kind::StoreHost { size, src, below_max } => {
                let value = operand(op, host, src);
                if !below_max || value < u64::MAX >> (64 - 8 * size.bytes()) {
                    memory::store_host(op, host, size, value);
                }
            }
            Kind::LoadPacket { size, indexed } => match memory::load_packet(op, host, size, indexed) {
                Some(value) => set(host, 0, value),
                // A failed load returns from the function, as in the kernel.
                None => {
                    set(host, 0, 0);
                    return D::go(leave(&mut (*host).machine), host, packet);
                }
            },
            Kind::Goto => return D::go(ip.offset(op.imm as isize), host, packet),
            Kind::JumpIf { width, condition, src } => {
                let b = operand(op, host, src);
                if eval::compare(width, condition, get(host, op.dst), b) {
                    return D::go(ip.offset(op.offset as isize), host, packet);
                }
            }
            Kind::AllowRounds => (*host).machine.allow_rounds(),
            Kind::MayGoto => {
                if !(*host).machine.may_go_on() {
                    return D::go(ip.offset(op.offset as isize), host, packet);
                }
            }
            Kind::Zero => {
                memory::zero(host, second(ip).head.word);
                return D::go(ip.add(2), host, packet);
            }
            Kind::CallHelper => {
                call::helper(host, second(ip).head.word);
                return go_afresh::<D>(ip.add(2), host);
            }
            Kind::LookupArray => {
                call::lookup_array(op, second(ip), host);
                return D::go(ip.add(2), host, packet);
            }
            Kind::CallSubprogram => {
                (*host).machine.enter(ip.add(1).cast());
                return D::go(ip.offset(op.imm as isize), host, packet);
            }
            Kind::CallBack(callback) => return go_afresh::<D>(call::call_back(ip, host, callback), host),
            Kind::CalledBack => return go_afresh::<D>(call::called_back(ip, host), host),
            Kind::TailCall => return go_afresh::<D>(call::tail_call(ip, host), host),
            Kind::Exit => return D::go(leave(&mut (*host).machine), host, packet),
            Kind::End => return D::end(host),
            Kind::Sum => set(host, op.dst, get(host, op.src).wrapping_add(op.imm as u64)),
            Kind::Address => set(host, op.dst, packet.start.wrapping_add(op.imm as u64)),
            Kind::LoadPart { size, anchor, reversed, shift } => {
                set(host, op.dst, packet_field::load(ip, size, anchor, reversed, shift, host, packet));
                return D::go(ip.add(1 + usize::from(shift.is_some())), host, packet);
            }
            Kind::AddressPart { anchor, shift } => {
                set(host, op.dst, packet_field::address(ip, anchor, shift, host, packet));
                return D::go(ip.add(2), host, packet);
            }
            Kind::JumpLen { shorter } => {
                return packet_field::jump::<D>(
                    packet_field::is_shorter(op, packet) == shorter,
                    ip,
                    host,
                    packet,
                );
            }
            Kind::JumpEnd { before } => {
                let ends = packet_field::ends_before(get(host, op.src), op, packet);
                return packet_field::jump::<D>(ends == before, ip, host, packet);
            }
            Kind::Test { size, anchor, masked, equal } => {
                return packet_field::test::<D>(size, anchor, masked, equal, ip, host, packet);
            }
            Kind::Return(width) => return D::end_with(host, eval::truncate(width, op.imm as u64)),
            Kind::Fused(fused) => return fused::run::<D>(fused, ip, host, packet),
        }
        D::go(ip.add(1), host, packet)
    }
}

/// Continues after an operation that may have moved the packet.
///
/// # Safety
/// As of [`Dispatch::go`].
#[inline(always)]
unsafe fn go_afresh<D: Dispatch>(ip: *const Op, host: *mut Host) -> u64 {
    // SAFETY: the caller vouches for it.
    unsafe { D::go(ip, host, Packet::of(host)) }
}

#[inline(always)]
fn is_aligned(address: u64, size: Size) -> bool {
    address.is_multiple_of(size.bytes() as u64)
}

/// The out-of-line part of a load. The handler jumps here, so that it saves no registers.
///
/// # Safety
/// As of [`operation`].
#[cold]
#[inline(never)]
unsafe extern "C" fn load_unaligned<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as in `operation`.
    unsafe {
        if let Kind::Load { size, signed, .. } = const { KINDS[CODE] } {
            let value = paceline_runtime::memory::load(memory::load_address(&*ip, host), size);
            set(host, (*ip).dst, if signed { eval::sign_extend(size, value) } else { value });
        }
        D::go(ip.add(1), host, packet)
    }
}

/// The out-of-line part of a store.
///
/// # Safety
/// As of [`operation`].
#[cold]
#[inline(never)]
unsafe extern "C" fn store_unaligned<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as in `operation`.
    unsafe {
        if let Kind::Store { size, src, .. } = const { KINDS[CODE] } {
            let value = operand(&*ip, host, src);
            paceline_runtime::memory::store(memory::store_address(&*ip, host), size, value);
        }
        D::go(ip.add(1), host, packet)
    }
}

/// The second part of an operation.
///
/// # Safety
/// It must have one.
#[inline(always)]
unsafe fn second<'a>(ip: *const Op) -> &'a Op {
    // SAFETY: the caller vouches for it.
    unsafe { &*ip.add(1) }
}
