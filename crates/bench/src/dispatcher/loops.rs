//! Loops over a burst in machine code, which differ only in the call of the program.
#![allow(unsafe_code, reason = "runs the loops")]

use std::cell::RefCell;
use std::error::Error;
use std::mem::transmute;

use paceline::{Burst, CallSite, Fallback, Host, Target, Verdict};
use paceline_compiler::native::machine::x64::{Alu, Assembler, Cond, Fill, Gpr, Mem, OpSize, Width};
use paceline_engine::exec::{Arena, Code, CodeBlock, Relocation};
use paceline_frame::Frame;

use super::setup::{FRAMES, TURN, burst, bursts, measure, site};
use crate::measure::{Timing, Work};
use crate::settings::Settings;

/// Kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Direct,
    Indirect,
    Retpoline,
    Dispatcher,
    HardenedDispatcher,
}

impl Call {
    pub(super) const ALL: [Self; 5] =
        [Self::Direct, Self::Indirect, Self::Retpoline, Self::Dispatcher, Self::HardenedDispatcher];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct call",
            Self::Indirect => "indirect call",
            Self::Retpoline => "retpoline",
            Self::Dispatcher => "dispatcher",
            Self::HardenedDispatcher => "dispatcher, retpoline where there is no slot",
        }
    }
}

/// `extern "C" fn(frames, address of the program, host)`
type Loop = unsafe extern "C" fn(*mut Frame, u64, *mut u8);

/// One loop per program if the call has the target in its code, otherwise one loop for all.
struct Loops {
    blocks: Vec<CodeBlock>,
}

impl Loops {
    fn new(call: Call, targets: &[Target], dispatcher: u64) -> Result<Self, Box<dyn Error>> {
        let blocks: Result<Vec<_>, Box<dyn Error>> = match call {
            Call::Direct => targets.iter().map(|target| assemble(call, target.address())).collect(),
            _ => assemble(call, dispatcher).map(|block| vec![block]),
        };
        Ok(Self { blocks: blocks? })
    }

    fn of(&self, index: usize) -> Loop {
        let block = &self.blocks[index % self.blocks.len()];
        // SAFETY: the block contains a function of this type, and outlives the call.
        unsafe { transmute::<*const u8, Loop>(block.as_ptr()) }
    }
}

/// Calls the program for each frame, with the frame in the first argument, the address of the program in the fourth and the
/// host in the sixth, and stores the result.
fn assemble(call: Call, callee: u64) -> Result<CodeBlock, Box<dyn Error>> {
    const FRAME: Gpr = Gpr::Rbx;
    const END: Gpr = Gpr::Rbp;
    const PROGRAM: Gpr = Gpr::R12;
    const HOST: Gpr = Gpr::R13;
    let mut asm = Assembler::new();
    let (again, thunk) = (asm.new_label(), asm.new_label());
    let saved = [FRAME, END, PROGRAM, HOST, Gpr::R14];
    saved.iter().for_each(|&gpr| asm.push(gpr));
    asm.mov_rr(Width::Q64, FRAME, Gpr::Rdi);
    asm.lea(Width::Q64, END, Mem::at(Gpr::Rdi, (FRAMES * size_of::<Frame>()) as i32));
    asm.mov_rr(Width::Q64, PROGRAM, Gpr::Rsi);
    asm.mov_rr(Width::Q64, HOST, Gpr::Rdx);
    asm.align(5, Fill::Nop);
    asm.bind(again);
    asm.mov_rr(Width::Q64, Gpr::Rdi, FRAME);
    asm.mov_rr(Width::Q64, Gpr::Rcx, PROGRAM);
    asm.mov_rr(Width::Q64, Gpr::R9, HOST);
    match call {
        Call::Direct | Call::Dispatcher | Call::HardenedDispatcher => asm.call_extern(callee),
        Call::Indirect => asm.call_r(Gpr::Rcx),
        Call::Retpoline => asm.call(thunk),
    }
    asm.store(OpSize::D32, Mem::at(FRAME, Frame::OFFSET_VERDICT as i32), Gpr::Rax);
    asm.alu_ri(Alu::Add, Width::Q64, FRAME, size_of::<Frame>() as i32);
    asm.alu_rr(Alu::Cmp, Width::Q64, FRAME, END);
    asm.jcc(Cond::Ne, again);
    saved.iter().rev().for_each(|&gpr| asm.pop(gpr));
    asm.ret();
    // As compilers emit it (-mretpoline): `__llvm_retpoline_rcx`.
    let (captured, replaced) = (asm.new_label(), asm.new_label());
    asm.align(4, Fill::Int3);
    asm.bind(thunk);
    asm.call(replaced);
    asm.bind(captured);
    asm.pause();
    asm.lfence();
    asm.jmp(captured);
    asm.align(4, Fill::Int3);
    asm.bind(replaced);
    asm.store(OpSize::Q64, Mem::at(Gpr::Rsp, 0), Gpr::Rcx);
    asm.ret();
    let code = asm.finish()?;
    let relocations: Vec<Relocation> = code
        .relocations
        .iter()
        .map(|relocation| Relocation {
            offset: relocation.offset as usize,
            target: relocation.target as usize,
        })
        .collect();
    Ok(Arena::global()?.install(&Code::new(&code.bytes).relocations(&relocations))?)
}

/// All loops, with dispatchers of this number of entries.
pub(super) struct Looped<'a> {
    targets: &'a [Target],
    sites: [CallSite; 2],
    host: RefCell<Box<Host>>,
    burst: RefCell<Burst>,
}

impl<'a> Looped<'a> {
    pub(super) fn new(targets: &'a [Target], entries: usize) -> Result<Self, Box<dyn Error>> {
        let site = |fallback| site(&targets[..entries], fallback);
        let sites = [site(Fallback::Indirect)?, site(Fallback::Retpoline)?];
        Ok(Self { targets, sites, host: RefCell::default(), burst: RefCell::new(burst()?) })
    }

    /// Calls the chosen programs in turn.
    pub(super) fn measure(
        &self,
        settings: Settings,
        chosen: &[Target],
        calls: &[Call],
    ) -> Result<Vec<Timing>, Box<dyn Error>> {
        debug_assert!(chosen.len() <= self.targets.len());
        let mut works: Vec<Work<'_>> = Vec::new();
        for &call in calls {
            let site = &self.sites[usize::from(call == Call::HardenedDispatcher)];
            let code = site.code().ok_or("the dispatcher has no code")?;
            let start = code.functions().first().map_or(0, |function| u64::from(function.start));
            let loops = Loops::new(call, chosen, code.address() + start)?;
            let passes = bursts(settings, chosen.len());
            works.push(Box::new(move || {
                let mut burst = self.burst.borrow_mut();
                let host: *mut Host = &mut **self.host.borrow_mut();
                // SAFETY: frames do not move.
                let frames = unsafe { burst.descriptors_mut() }.as_mut_ptr();
                for pass in 0..passes {
                    let index = pass / TURN % chosen.len();
                    // SAFETY: as many frames as the loop's arguments say; the programs, which drop, do not read them. The
                    // dispatcher's site does not change meanwhile.
                    unsafe { loops.of(index)(frames, chosen[index].address(), host.cast()) };
                }
                let dropped = burst.iter().all(|frame| frame.verdict() == Verdict::Drop);
                if dropped {
                    Ok((passes * FRAMES) as u64)
                } else {
                    Err(format!("{call:?}: not dropped").into())
                }
            }));
        }
        measure(settings, &mut works)
    }
}
