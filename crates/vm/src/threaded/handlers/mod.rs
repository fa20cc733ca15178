//! What operations do.
//!
//! There is one handler for each [`Kind`], made from [`operation`] with the kind as a constant. A handler ends by going
//! on to the next operation as its [`Dispatch`] says.

mod call;
mod codes;
mod fused;
mod memory;

use paceline_isa::{Size, SwapOrder, eval};

use super::kind::{KINDS, Kind, MAX_KINDS, Reach, Source};
use super::machine::Machine;
use super::op::{Handler, Op};
pub(super) use codes::each_code;

/// How to go on to the next operation.
pub(super) trait Dispatch {
    /// # Safety
    /// `ip` must be an operation of a program that the machine runs, or [`end`].
    unsafe fn go(ip: *const Op, machine: *mut Machine) -> *const Op;
}

/// Returns to a loop, which calls the handler.
pub(super) struct Loop;

impl Dispatch for Loop {
    #[inline(always)]
    unsafe fn go(ip: *const Op, _: *mut Machine) -> *const Op {
        ip
    }
}

/// Jumps to the handler. It is a call as the last thing that a handler does, which the compiler makes a jump when it
/// optimizes; `tests/tail_jumps.rs` looks whether it did.
#[cfg(all(tail_jumps, not(debug_assertions)))]
pub(super) struct Jump;

#[cfg(all(tail_jumps, not(debug_assertions)))]
impl Dispatch for Jump {
    #[inline(always)]
    unsafe fn go(ip: *const Op, machine: *mut Machine) -> *const Op {
        // SAFETY: the caller vouches for `ip`, and the first part of an operation has a handler.
        unsafe { ((*ip).head.handler)(ip, machine) }
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

/// The same, but each returns the next operation instead of going on to it.
pub(super) static STEPS: [Handler; MAX_KINDS] = each_code!(steps);

static END: Op = Op::new(finish);

/// An operation that ends the run.
#[inline]
pub(super) fn end() -> *const Op {
    &raw const END
}

unsafe extern "C" fn finish(_: *const Op, _: *mut Machine) -> *const Op {
    std::ptr::null()
}

/// The value of a register.
///
/// # Safety
/// The number must be a register's.
#[inline(always)]
unsafe fn get(machine: *mut Machine, register: u8) -> u64 {
    // SAFETY: the machine is this run's, the number a register's.
    unsafe { *(&raw const (*machine).registers).cast::<u64>().add(usize::from(register)) }
}

#[inline(always)]
unsafe fn set(machine: *mut Machine, register: u8, value: u64) {
    // SAFETY: the machine is this run's, the number a register's.
    unsafe { *(&raw mut (*machine).registers).cast::<u64>().add(usize::from(register)) = value };
}

/// The second operand.
#[inline(always)]
unsafe fn operand(op: &Op, machine: *mut Machine, source: Source) -> u64 {
    match source {
        // SAFETY: as the caller's.
        Source::Reg => unsafe { get(machine, op.src) },
        Source::Imm => op.imm as u64,
    }
}

/// The handler of the kind with a code.
///
/// # Safety
/// `ip` must be an operation of that kind, made from a verified program, which runs on the machine and came to this
/// operation.
#[cfg_attr(feature = "match-dispatch", inline(always))]
pub(super) unsafe extern "C" fn operation<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    machine: *mut Machine,
) -> *const Op {
    // SAFETY: for all of it: operations are made by `translate`, which puts register numbers, offsets and second parts
    // where their kind has them, and follows each operation but jumps by the one that comes next. The verifier has
    // shown that the program comes only to what it may do.
    unsafe {
        let op = &*ip;
        match const { KINDS[CODE] } {
            Kind::Nop => {}
            Kind::Alu { width, op: alu, src } => {
                let b = operand(op, machine, src);
                set(machine, op.dst, eval::alu(width, alu, get(machine, op.dst), b));
            }
            Kind::Neg(width) => set(machine, op.dst, eval::neg(width, get(machine, op.dst))),
            Kind::MovSx { width, from } => {
                let value = eval::sign_extend(from, get(machine, op.src));
                set(machine, op.dst, eval::truncate(width, value));
            }
            Kind::Reverse(size) => {
                set(machine, op.dst, eval::swap(SwapOrder::Always, size, get(machine, op.dst)));
            }
            Kind::LoadImm64 => {
                set(machine, op.dst, second(ip).head.word);
                return D::go(ip.add(2), machine);
            }
            Kind::Load { size, signed, reach } => {
                let address = memory::load_address(op, machine);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return load_unaligned::<D, CODE>(ip, machine);
                }
                let value = memory::load(address, size, reach);
                set(machine, op.dst, if signed { eval::sign_extend(size, value) } else { value });
            }
            Kind::Store { size, src, reach } => {
                let address = memory::store_address(op, machine);
                if reach == Reach::Any && !is_aligned(address, size) {
                    return store_unaligned::<D, CODE>(ip, machine);
                }
                memory::store(address, size, reach, operand(op, machine, src));
            }
            Kind::LoadAcquire(size) => memory::load_acquire(op, machine, size),
            Kind::StoreRelease(size) => memory::store_release(op, machine, size),
            Kind::Atomic { width, op: atomic } => memory::atomic(op, machine, width, atomic),
            Kind::LoadFrame(size) => set(machine, op.dst, memory::load_frame(op, machine, size)),
            Kind::LoadContext(size) => {
                let field = second(ip).head.word;
                set(machine, op.dst, memory::load_context(op, machine, field, size));
                return D::go(ip.add(2), machine);
            }
            Kind::LoadScratch(size) => set(machine, op.dst, memory::load_scratch(op, machine, size)),
            Kind::StoreScratch { size, src } => {
                memory::store_scratch(op, machine, size, operand(op, machine, src));
            }
            Kind::LoadPacket { size, indexed } => match memory::load_packet(op, machine, size, indexed) {
                Some(value) => set(machine, 0, value),
                // It returns from the function, as the kernel's code for it does.
                None => {
                    set(machine, 0, 0);
                    return D::go((*machine).leave(), machine);
                }
            },
            Kind::Goto => return D::go(ip.offset(op.imm as isize), machine),
            Kind::JumpIf { width, condition, src } => {
                let b = operand(op, machine, src);
                if eval::compare(width, condition, get(machine, op.dst), b) {
                    return D::go(ip.offset(op.offset as isize), machine);
                }
            }
            Kind::Zero => {
                memory::zero(machine, second(ip).head.word);
                return D::go(ip.add(2), machine);
            }
            Kind::CallHelper => {
                call::helper(machine, second(ip).head.word);
                return D::go(ip.add(2), machine);
            }
            Kind::LookupArray => {
                call::lookup_array(op, second(ip), machine);
                return D::go(ip.add(2), machine);
            }
            Kind::CallSubprogram => {
                (*machine).enter(ip.add(1));
                return D::go(ip.offset(op.imm as isize), machine);
            }
            Kind::TailCall => return D::go(call::tail_call(ip, machine), machine),
            Kind::Exit => return D::go((*machine).leave(), machine),
            Kind::End => return std::ptr::null(),
            Kind::Fused(fused) => return fused::run::<D>(fused, ip, machine),
        }
        D::go(ip.add(1), machine)
    }
}

#[inline(always)]
fn is_aligned(address: u64, size: Size) -> bool {
    address.is_multiple_of(size.bytes() as u64)
}

/// The rare half of a load. The handler goes on here instead of calling it, so that it has nothing to save.
///
/// # Safety
/// As of [`operation`].
#[cold]
#[inline(never)]
unsafe extern "C" fn load_unaligned<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    machine: *mut Machine,
) -> *const Op {
    // SAFETY: as in `operation`.
    unsafe {
        if let Kind::Load { size, signed, .. } = const { KINDS[CODE] } {
            let value = crate::memory::load(memory::load_address(&*ip, machine), size);
            set(machine, (*ip).dst, if signed { eval::sign_extend(size, value) } else { value });
        }
        D::go(ip.add(1), machine)
    }
}

/// The rare half of a store.
///
/// # Safety
/// As of [`operation`].
#[cold]
#[inline(never)]
unsafe extern "C" fn store_unaligned<D: Dispatch, const CODE: usize>(
    ip: *const Op,
    machine: *mut Machine,
) -> *const Op {
    // SAFETY: as in `operation`.
    unsafe {
        if let Kind::Store { size, src, .. } = const { KINDS[CODE] } {
            let value = operand(&*ip, machine, src);
            crate::memory::store(memory::store_address(&*ip, machine), size, value);
        }
        D::go(ip.add(1), machine)
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
