//! The kernel's JIT, by test-run.
//!
//! A test run repeats one packet, and every figure includes its overhead: compare differences.

use std::error::Error;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use paceline::{FrameMut, Object, ProgramSpec};
use paceline_testkit::kernel::{KernelObject, Packet, Program, Request};

use super::contender::{Chain, Contender, Role};
use super::workload::{OBJECT, Workload};
use crate::kernel;

/// The workload in the kernel, which repeats one packet.
pub(super) fn contender<'a>(workload: Workload) -> Result<Contender<'a>, Box<dyn Error>> {
    let object = Object::parse(OBJECT)?;
    let index = object.programs().iter().position(|program| program.name == workload.program());
    let (index, counts) =
        (index.ok_or("no such program")?, object.maps().iter().position(|map| map.name == "counts"));
    let loaded = Rc::new(kernel::load(&object)?);
    let map_of = loaded.clone();
    let run = move |frames: &mut [FrameMut<'_>], count: usize| {
        let (Some(program), Some(frame)) = (loaded.programs.get(index), frames.first()) else {
            return u64::MAX;
        };
        if count == 1 {
            return program.test_run(&Packet::new(frame.packet())).map_or(u64::MAX, |run| run.retval.into());
        }
        program.time(frame.packet(), count as u32).map_or(u64::MAX, u64::from)
    };
    let counted = move || {
        let map = counts.and_then(|index| map_of.maps.get(index));
        let contents = map.and_then(|map| map.contents(0).ok().flatten()).unwrap_or_default();
        let value = |bytes: &Vec<u8>| bytes.as_slice().try_into().map_or(0, u64::from_ne_bytes);
        contents.values().map(value).collect()
    };
    Ok(Contender::looping(kernel::name(), Role::Kernel, run).with_counts(counted))
}

/// A program of a type without maps, in the kernel, which repeats one packet.
pub(super) fn program<'a>(spec: &ProgramSpec, kind: &str) -> Result<Contender<'a>, Box<dyn Error>> {
    let program = Program::load(&Request { kind: spec.kind, ..Request::xdp(&spec.insns) })?;
    let run = move |frames: &mut [FrameMut<'_>], count: usize| {
        let Some(frame) = frames.first() else { return u64::MAX };
        if count == 1 {
            return program.test_run(&Packet::new(frame.packet())).map_or(u64::MAX, |run| run.retval.into());
        }
        program.time(frame.packet(), count as u32).map_or(u64::MAX, u64::from)
    };
    Ok(Contender::looping(format!("{}, {kind}", kernel::name()), Role::Kernel, run))
}

/// W5 in the kernel.
pub(super) struct KernelChain(KernelObject);

impl KernelChain {
    pub(super) fn new(object: &Object) -> Result<Self, Box<dyn Error>> {
        Ok(Self(kernel::load(object)?))
    }

    fn first(&self) -> Result<&Program, Box<dyn Error>> {
        Ok(self.0.programs.first().ok_or("the object has no program")?)
    }
}

impl Chain for KernelChain {
    fn install(&mut self, index: usize, program: usize) -> Result<(), Box<dyn Error>> {
        let (Some(array), Some(program)) = (self.0.maps.first(), self.0.programs.get(program)) else {
            return Err("the object has no such program".into());
        };
        let descriptor = program.fd().as_raw_fd();
        Ok(array.update(&(index as u32).to_ne_bytes(), &descriptor.to_ne_bytes(), 0)?)
    }

    fn verdict(&mut self, frame: &mut FrameMut<'_>) -> Result<u64, Box<dyn Error>> {
        Ok(self.first()?.test_run(&Packet::new(frame.packet()))?.retval.into())
    }

    fn repeat(&mut self, frame: &mut FrameMut<'_>, count: usize) -> Result<(), Box<dyn Error>> {
        self.first()?.time(frame.packet(), count as u32)?;
        Ok(())
    }
}
