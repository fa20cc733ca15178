//! The kernel as a subject.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use paceline_isa::{AluOp, Callee, Imm64, Insn, Operand, Reg};
use paceline_spec::kfunc::KfuncArg;
use paceline_spec::{Errno, MapSpec, ProgramKind, ProgramSpec};
use paceline_verifier::Verified;

use super::engine::random_array;
use super::subject::{Left, Stopped, Subject};
use super::work::Work;
use super::work::contents;
use crate::Contents;
use crate::kernel::{self, KernelError, Map, Packet, Program, Request};
use crate::random::{btf_image, cells, is_unlike_template, maps};

/// The kernel, with maps that are reused for all programs.
pub struct KernelSubject {
    specs: Vec<MapSpec>,
    maps: Vec<Map>,
    btf: OwnedFd,
    cpu: usize,
}

impl KernelSubject {
    /// The kernel, for a pinned thread.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn new(cpu: usize) -> Result<Self, KernelError> {
        let specs = maps();
        let made = Map::create_all(&specs, cpu)?;
        Ok(Self { specs, maps: made, btf: kernel::load_btf(btf_image())?, cpu })
    }

    fn load(&self, program: &ProgramSpec) -> Result<Program, KernelError> {
        let types = || program.functions.iter().map(|f| (f.start as u32, f.btf_id)).collect();
        let is_typed = program.functions.iter().all(|f| f.btf_id != 0);
        Program::load(&Request {
            name: "",
            kind: program.kind,
            insns: &program.insns,
            maps: &self.maps,
            license: &program.license,
            btf: is_typed.then(|| (self.btf.as_fd(), types())),
            kfuncs: &program.kfuncs,
            log_level: 1,
        })
    }

    /// Ring buffers are created anew, which discards records of earlier programs.
    fn renew_rings(&mut self, work: &Work) -> Result<(), KernelError> {
        for &index in &work.used {
            let (Some(spec), Some(map)) = (self.specs.get(index), self.maps.get_mut(index)) else { continue };
            if spec.kind.is_ring_buffer() {
                *map = Map::create(spec, None, None)?;
            }
        }
        Ok(())
    }

    fn fill(&self, work: &Work) -> Result<(), KernelError> {
        for &index in &work.used {
            let (Some(spec), Some(map)) = (self.specs.get(index), self.maps.get(index)) else { continue };
            if spec.kind.is_keyed() {
                for key in map.contents(self.cpu)?.unwrap_or_default().into_keys() {
                    map.delete(&key)?;
                }
            }
            for (key, value) in contents(spec, index, work.seed) {
                map.update(&key, &value, self.cpu)?;
            }
        }
        Ok(())
    }

    /// Sets programs in the array for their type, and clears the other entries.
    fn install(&self, kind: ProgramKind, targets: &[Program]) -> Result<(), KernelError> {
        let Some(array) = self.maps.get(random_array(kind)) else { return Ok(()) };
        let entries = self.specs.get(random_array(kind)).map_or(0, |spec| spec.max_entries);
        for index in 0..entries {
            let key = index.to_ne_bytes();
            match targets.get(index as usize) {
                Some(target) => array.update(&key, &target.fd().as_raw_fd().to_ne_bytes(), self.cpu)?,
                None => match array.delete(&key) {
                    Err(error) if error.errno != Errno::ENOENT => return Err(error),
                    _ => {}
                },
            }
        }
        Ok(())
    }
}

impl Subject for KernelSubject {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn may_refuse(&self) -> bool {
        true
    }

    fn run(&mut self, work: &Work, left: &mut [Left]) -> Result<Vec<Option<Contents>>, Stopped> {
        let refused = |error: KernelError| Stopped::Refused(paceline::with_causes(&error));
        let Some((main, targets)) = work.programs.split_first() else { return Ok(Vec::new()) };
        if let Some(reason) = work.programs.iter().find_map(withheld) {
            return Err(Stopped::Refused(reason.to_owned()));
        }
        let kind = main.program().kind;
        self.renew_rings(work).map_err(refused)?;
        let program = self.load(main.program()).map_err(refused)?;
        if main.has_tail_calls() {
            let targets = targets.iter().map(|target| self.load(target.program()));
            let targets = targets.collect::<Result<Vec<_>, _>>().map_err(refused)?;
            self.install(kind, &targets).map_err(refused)?;
        }
        self.fill(work).map_err(refused)?;
        for (run, (input, left)) in work.inputs.iter().zip(left).enumerate() {
            let packet = Packet { data: &input.data, meta: meta_of(kind, &input.meta), ..Packet::default() };
            let ran = program.test_run(&packet);
            let ran = ran.map_err(|error| Stopped::Run { run, reason: error.to_string() })?;
            let code = kind.rules().meaning.code(ran.retval.into());
            *left = Left { code, r0: None, data: ran.data, meta: ran.meta, redirect: None };
        }
        let maps = work.used.iter().filter_map(|&index| self.maps.get(index));
        maps.map(|map| map.contents(self.cpu).map_err(refused)).collect()
    }
}

/// Other program types have no metadata, and their test runs refuse it.
fn meta_of(kind: ProgramKind, meta: &[u8]) -> &[u8] {
    if matches!(kind, ProgramKind::Xdp { .. }) { meta } else { &[] }
}

/// Reason why a program does not run in the kernel: programs that 6.18 accepts may corrupt memory, or have varying results.
fn withheld(verified: &Verified) -> Option<&'static str> {
    let insns: Vec<(usize, Insn)> = verified.code().iter().map(|(slot, insn)| (slot, *insn)).collect();
    let lends_buffer = |(index, (_, insn)): (usize, &(usize, Insn))| {
        takes_buffer(verified.program(), insn) && !passes_null(&insns, index)
    };
    if insns.iter().enumerate().any(lends_buffer) {
        return Some("not run: writes to a slice may be writes to its buffer");
    }
    if insns.iter().any(|(_, insn)| uses_unlike(insn)) {
        return Some("not run: a map is shorter than its template");
    }
    let functions = verified.functions().iter().enumerate();
    let is_unwritten =
        functions.map(|(index, function)| function.zeroed & cells(index)).any(|words| words != 0);
    is_unwritten.then_some("not run: stack is read that nobody wrote")
}

/// Whether a call passes a buffer in `r3`.
fn takes_buffer(program: &ProgramSpec, insn: &Insn) -> bool {
    let Insn::Call(Callee::Kfunc { btf_id, .. }) = insn else { return false };
    // An unknown kernel function may have one.
    program.kfunc(*btf_id).is_none_or(|kfunc| kfunc.args.contains(&KfuncArg::BufferOrNull))
}

/// Whether `r3` is certainly 0 at a call: set directly before it, without a jump target in between.
fn passes_null(insns: &[(usize, Insn)], call: usize) -> bool {
    let is_target = |slot: usize| insns.iter().any(|(at, insn)| insn.jump_target(*at) == Some(slot as i64));
    let (before, rest) = insns.split_at(call);
    let mut next = rest.first().map_or(0, |(slot, _)| *slot);
    for (slot, insn) in before.iter().rev() {
        match insn {
            _ if is_target(next) => return false,
            Insn::Alu { op: AluOp::Mov, dst: Reg::R3, src: Operand::Imm(0), .. } => return true,
            Insn::Alu { dst, .. } if *dst != Reg::R3 => next = *slot,
            _ => return false,
        }
    }
    false
}

fn uses_unlike(insn: &Insn) -> bool {
    match insn {
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => {
            usize::try_from(*index).is_ok_and(is_unlike_template)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::assemble;
    use paceline_spec::{KfuncRef, XdpAttach};
    use paceline_verifier::{Options, verify};

    use super::*;

    /// A program that requests a slice after `buffer` sets `r3`.
    fn slice_with(buffer: &str) -> Verified {
        let text = format!(
            "r6 = r1\nr2 = 0\nr3 = r10\nr3 += -120\ncall 0\n*(u64 *)(r10 - 24) = 0\n{buffer}\n\
             r1 = r10\nr1 += -120\nr2 = 0\nr4 = 8\ncall 1\nr0 = 2\nexit"
        );
        let mut slots = assemble(&text, &()).expect("good text").encode().expect("good instructions");
        // Calls of helpers 0 and 1 become calls of kernel functions.
        slots.iter_mut().filter(|insn| insn.opcode == 0x85).for_each(|insn| insn.src = 2);
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let mut program = ProgramSpec::new("slice", kind, slots);
        "GPL".clone_into(&mut program.license);
        let named = |name: &str| KfuncRef { name: name.to_owned(), weak: false, btf_id: 0, converted: false };
        program.kfuncs = ["bpf_dynptr_from_xdp", "bpf_dynptr_slice_rdwr"].map(named).to_vec();
        verify(&program, &[], None, &Options::default()).expect("a good program")
    }

    #[test]
    fn slices_with_a_buffer_are_withheld() {
        assert_eq!(withheld(&slice_with("r3 = 0")), None);
        let reason = Some("not run: writes to a slice may be writes to its buffer");
        assert_eq!(withheld(&slice_with("r3 = r10\nr3 += -24")), reason);
        // A jump target between the null and the call.
        let joined = "r5 = *(u32 *)(r6 + 12)\nr3 = r10\nr3 += -24\nif r5 == 1 goto over\nr3 = 0\nover:";
        assert_eq!(withheld(&slice_with(joined)), reason);
    }

    #[test]
    fn maps_that_are_shorter_than_their_template_are_withheld() {
        let specs = maps();
        let index = (0..specs.len()).find(|&index| is_unlike_template(index)).expect("one at least");
        let insn = |index: usize| Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapIndex(index as i32) };
        assert!(uses_unlike(&insn(index)) && !uses_unlike(&insn(0)));
        // In maps that are not withheld, all inner arrays have the length of their template.
        for (index, spec) in specs.iter().enumerate().filter(|(index, _)| !is_unlike_template(*index)) {
            let Some(like) = spec.inner.as_ref().filter(|like| like.kind != paceline_spec::MapKind::Hash)
            else {
                continue;
            };
            for (_, value) in &spec.contents {
                let paceline_spec::InitialValue::Map(inner) = value else { continue };
                assert_eq!(specs[*inner].max_entries, like.max_entries, "map {index}");
            }
        }
    }
}
