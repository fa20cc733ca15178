//! Handlers of operations.
//!
//! Each [`Sequence`] has a handler, [`operation`] with the sequence as a constant. A handler ends by continuing
//! with the next operation as its [`Dispatch`] defines.

mod call;
mod codes;
pub(super) mod dispatch;
mod memory;

use crate::host::Host;
use paceline_isa::{Size, SwapOrder, eval};

use super::kind::{Kind, Reach, Source};
use super::sequence::{MAX_KINDS, MOST, Part, SEQUENCES, Sequence};
use crate::interpreter::op::{DST, Handler, OTHER, Op, Packet, SRC};

use dispatch::{Dispatch, Jump, get, set};

pub(super) use codes::each_code;

macro_rules! jumps {
    ($($code:literal)*) => { [$(operation::<Jump, $code>),*] };
}

/// The handlers by the code of their sequence.
pub(super) static HANDLERS: [Handler; MAX_KINDS] = each_code!(jumps);

/// Where a handler continues.
enum Flow {
    /// With the operation that follows.
    Next,
    To(*const Op),
    /// The packet may have moved, and the window may be another one.
    Afresh(*const Op),
    /// Out of the running function, with its result.
    Leave(u64),
    End(u64),
    /// In the part of it that is out of line.
    Rare,
}

/// The handler of the sequence with a code.
///
/// # Safety
/// `ip` must be the first operation of such a sequence, made from a verified program, which runs on the host's machine and came to
/// this operation; packet and window are the host's.
#[cfg_attr(all(feature = "variants", not(debug_assertions)), inline(always))]
pub(super) unsafe extern "C" fn operation<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
    window: *mut u64,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe { execute::<D>(const { SEQUENCES[CODE] }, unaligned::<D, CODE>, ip, host, packet, window) }
}

/// The body of all handlers. Optimized builds have a copy in each handler, of which the constant sequence leaves what it needs. Others
/// would leave all arms in 512 copies, whose translation takes longer than that of the rest of the crate: there the handlers share one.
///
/// # Safety
/// As of [`operation`].
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn execute<D: Dispatch>(
    sequence: Sequence,
    rare: Handler,
    mut ip: *const Op,
    host: *mut Host,
    packet: Packet,
    window: *mut u64,
) -> u64 {
    let (start, mut last) = (ip, 0);
    macro_rules! part {
        ($($number:literal)*) => {
            $(if $number < sequence.len {
                let part = sequence.parts[$number];
                // SAFETY: as the caller's.
                match unsafe { step(part, &mut last, [start, ip], host, packet, window) } {
                    // SAFETY: an operation follows that may be continued behind.
                    Flow::Next => ip = unsafe { ip.add(part.kind.len()) },
                    // SAFETY: a jump leads to an operation of the program.
                    Flow::To(target) => return unsafe { D::go(target, host, packet, window) },
                    // SAFETY: a call leads to an operation of a program.
                    Flow::Afresh(target) => return unsafe {
                        D::go(target, host, Packet::of(host), (*host).machine.window())
                    },
                    // SAFETY: the machine is this run's.
                    Flow::Leave(value) => return unsafe { leave::<D>(host, packet, value) },
                    // SAFETY: the machine is this run's.
                    Flow::End(value) => return unsafe { D::end(host, value) },
                    // SAFETY: as the caller's.
                    Flow::Rare => return unsafe { rare(ip, host, packet, window) },
                }
            })*
        };
    }
    const { assert!(MOST == 6) };
    part!(0 1 2 3 4 5);
    // SAFETY: the last part does not end the program, so that an operation follows.
    unsafe { D::go(ip, host, packet, window) }
}

/// Returns from the running function.
#[inline(always)]
unsafe fn leave<D: Dispatch>(host: *mut Host, packet: Packet, value: u64) -> u64 {
    // SAFETY: the machine is this run's, and what waits in it are operations of its program.
    unsafe {
        match (*host).machine.leave(value) {
            Some(next) => D::go(next.cast(), host, packet, (*host).machine.window()),
            None => D::end(host, value),
        }
    }
}

/// Executes an operation.
///
/// # Safety
/// As of [`operation`]; `last` is the last result of the sequence, which starts at `start`.
#[cfg_attr(not(debug_assertions), inline(always))]
unsafe fn step(
    part: Part,
    last: &mut u64,
    [start, ip]: [*const Op; 2],
    host: *mut Host,
    packet: Packet,
    window: *mut u64,
) -> Flow {
    // SAFETY: for all of it: operations are made by `select`, which puts register numbers, offsets and second parts
    // where their kind has them, and follows each operation but jumps by the one that comes next. The verifier has
    // shown that the program comes only to what it may do.
    unsafe {
        let op = &*ip;
        let first = |place: u8| if part.takes_last { *last } else { get(window, op.register(place)) };
        let second = |source: Source, place: u8| match source {
            Source::Reg => get(window, op.register(place)),
            Source::Imm | Source::Wide => op.imm() as u64,
        };
        let result = match part.kind {
            Kind::Move => get(window, op.register(SRC)),
            Kind::Spill => {
                *window.add(op.imm() as usize) = get(window, op.register(SRC));
                return Flow::Next;
            }
            Kind::Reload => *window.add(op.imm() as usize),
            Kind::Number => op.imm() as u64,
            Kind::Word => word(ip),
            Kind::Clear => u64::from(get(window, op.register(SRC)) as u32),
            Kind::Binary { ty, op: binary, src } => binary.eval(ty, first(SRC), second(src, OTHER)),
            Kind::Neg(width) => eval::neg(width, get(window, op.register(SRC))),
            Kind::SignExtend { width, from } => {
                eval::truncate(width, eval::sign_extend(from, get(window, op.register(SRC))))
            }
            Kind::Reverse(size) => eval::swap(SwapOrder::Always, size, first(SRC)),
            Kind::Compare { width, condition, src } => {
                eval::compare(width, condition, get(window, op.register(SRC)), second(src, OTHER)).into()
            }
            Kind::Function => ip.offset((*ip.add(1)).imm() as isize) as u64,
            Kind::Load { size, signed, reach } => {
                let base = if reach == Reach::Start { packet.start } else { first(SRC) };
                let address = base.wrapping_add(op.imm() as u64);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return Flow::Rare;
                }
                let value = memory::load(address, size, reach);
                if signed { eval::sign_extend(size, value) } else { value }
            }
            Kind::Store { size, src: Source::Reg, reach } => {
                let address = memory::address(op, DST, reach, packet, window);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return Flow::Rare;
                }
                memory::store(address, size, reach, first(SRC));
                return Flow::Next;
            }
            Kind::Store { size, src: Source::Imm | Source::Wide, reach } => {
                let address = memory::address_beside(op, reach, packet, window);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return Flow::Rare;
                }
                memory::store(address, size, reach, op.imm() as u64);
                return Flow::Next;
            }
            Kind::LoadAcquire(size) => memory::load_acquire(op, window, size),
            Kind::StoreRelease(size) => {
                memory::store_release(op, window, size);
                return Flow::Next;
            }
            Kind::Atomic { width, op: atomic } => {
                let old = memory::atomic(op, window, width, atomic);
                if !atomic.fetches() {
                    return Flow::Next;
                }
                old
            }
            Kind::LoadFrame(size) => memory::load_frame(op, host, size),
            Kind::LoadContext(size) => memory::load_context(op, host, word(ip), size),
            Kind::LoadHost(size) => memory::load_host(op, host, size),
            Kind::StoreHost { size, src, below_max } => {
                let value = second(src, SRC);
                if !below_max || value < u64::MAX >> (64 - 8 * size.bytes()) {
                    memory::store_host(op, host, size, value);
                }
                return Flow::Next;
            }
            Kind::LoadPacket { size, indexed } => memory::load_packet(op, window, packet, size, indexed),
            Kind::Goto => return jump(true, op, start),
            Kind::JumpIf { width, condition, holds, src } => {
                let other = match src {
                    Source::Reg => get(window, op.register(SRC)),
                    Source::Imm => op.short().into(),
                    Source::Wide => (*ip.add(1)).imm() as u64,
                };
                return jump(eval::compare(width, condition, first(DST), other) == holds, op, start);
            }
            Kind::EndIf { equal } => {
                let is_equal = first(DST) as u32 == u32::from(op.short());
                return if is_equal == equal { Flow::End(op.imm() as u64) } else { Flow::Next };
            }
            Kind::JumpLen { shorter } => {
                return jump((packet.len < u64::from(op.short())) == shorter, op, start);
            }
            Kind::JumpEnd { before } => {
                let end = packet.start.wrapping_add(packet.len);
                return jump((first(DST).wrapping_add(op.short().into()) > end) == before, op, start);
            }
            Kind::AllowRounds => {
                (*host).machine.allow_rounds();
                return Flow::Next;
            }
            Kind::MayGoto { exhausted } => return jump((*host).machine.may_go_on() != exhausted, op, start),
            Kind::Zero => {
                memory::zero(host, word(ip));
                return Flow::Next;
            }
            Kind::Cpu => (*host).cpu() as u64,
            Kind::Address => {
                // It is not what the next part takes.
                set(window, op.register(DST), packet.start.wrapping_add(op.imm() as u64));
                return Flow::Next;
            }
            Kind::AddressSum => packet.start.wrapping_add(op.imm() as u64).wrapping_add(first(SRC)),
            Kind::Element => first(SRC).wrapping_mul(op.imm() as u64).wrapping_add(word(ip)),
            Kind::CallHelper => {
                call::helper(op, word(ip), host, window);
                return Flow::Afresh(ip.add(2));
            }
            Kind::CallFunction => return Flow::Afresh(call::function(ip, host, window)),
            Kind::CallBack(callback) => return Flow::Afresh(call::call_back(ip, host, callback)),
            Kind::CalledBack => return Flow::Afresh(call::called_back(ip, host)),
            Kind::TailCall => return Flow::Afresh(call::tail_call(ip, host)),
            Kind::Exit(src) => return Flow::Leave(second(src, SRC)),
            Kind::End(src) => return Flow::End(second(src, SRC)),
        };
        if part.keeps {
            set(window, op.register(DST), result);
        }
        *last = result;
        Flow::Next
    }
}

/// The way of a jump of a sequence.
#[inline(always)]
unsafe fn jump(holds: bool, op: &Op, start: *const Op) -> Flow {
    // SAFETY: the caller's operation is a jump, which leads to one of the program.
    if holds { Flow::To(unsafe { start.byte_offset(op.imm() as isize) }) } else { Flow::Next }
}

/// The word of the second part of an operation.
#[inline(always)]
unsafe fn word(ip: *const Op) -> u64 {
    // SAFETY: the caller's operation has one, which holds a number.
    unsafe { (*ip.add(1)).head.word }
}

#[inline(always)]
fn is_aligned(address: u64, size: Size) -> bool {
    address.is_multiple_of(size.bytes() as u64)
}

/// The out-of-line part of a load or store. The handler jumps here, so that it saves no registers.
///
/// # Safety
/// As of [`operation`].
#[cold]
#[inline(never)]
unsafe extern "C" fn unaligned<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
    window: *mut u64,
) -> u64 {
    use crate::memory as unsure;
    // SAFETY: as in `step`.
    unsafe {
        let op = &*ip;
        match const { SEQUENCES[CODE].parts[0].kind } {
            Kind::Load { size, signed, reach } => {
                let value = unsure::load(memory::address(op, SRC, reach, packet, window), size);
                let value = if signed { eval::sign_extend(size, value) } else { value };
                set(window, op.register(DST), value);
            }
            Kind::Store { size, src: Source::Reg, reach } => {
                let address = memory::address(op, DST, reach, packet, window);
                unsure::store(address, size, get(window, op.register(SRC)));
            }
            Kind::Store { size, src: Source::Imm | Source::Wide, reach } => {
                let address = memory::address_beside(op, reach, packet, window);
                unsure::store(address, size, op.imm() as u64);
            }
            _ => {}
        }
        D::go(ip.add(1), host, packet, window)
    }
}
