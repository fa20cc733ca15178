//! Fills an engine's stack before a program runs, so that uninitialized bytes show.

use paceline::{Burst, FrameMeta, Host, Program};
use paceline_isa::assemble;
use paceline_spec::{FunctionInfo, Linkage, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};

use crate::AnyEngine;

/// Depth of nested functions, as in random programs.
const DEPTH: usize = 5;
/// Stack size of each function in bytes, slightly below the limit at that depth.
const BYTES: usize = 96;

/// A program that fills the stack of its functions.
pub(super) struct Dirt {
    program: Program,
    burst: Burst,
}

impl Dirt {
    /// For an engine.
    pub(super) fn new(engine: AnyEngine) -> Result<Self, String> {
        let verified = verify(&spec()?, &[], None, &Options::default())
            .map_err(|error| paceline::with_causes(&error))?;
        let program = engine.load(&verified, Vec::new()).map_err(|error| paceline::with_causes(&error))?;
        let mut burst = Burst::new(1);
        burst.push(&[0; 64], FrameMeta::default()).map_err(|error| paceline::with_causes(&error))?;
        Ok(Self { program, burst })
    }

    /// Fills the stack with bytes that no program expects.
    pub(super) fn leave(&mut self, host: &mut Host) -> Result<(), String> {
        self.program.run(&mut self.burst.frame_mut(0), host).map(drop).map_err(|fault| fault.to_string())
    }
}

/// Each function fills its stack, passes it to a helper, so that the stores are not elided, and calls the next one.
fn spec() -> Result<ProgramSpec, String> {
    let mut text = String::new();
    let mut functions = Vec::new();
    let mut slots = Vec::new();
    for depth in 0..DEPTH {
        text.clear();
        text.push_str("r6 = 0x7b7c7d7e7f7a7978 ll\n");
        for offset in (8..=BYTES).step_by(8) {
            text.push_str(&format!("*(u64 *)(r10 - {offset}) = r6\n"));
        }
        text.push_str(&format!("r1 = r10\nr1 += -{BYTES}\nr2 = {BYTES}\nr3 = 0\nr4 = 0\nr5 = 0\n"));
        text.push_str("call 28\n");
        if depth + 1 < DEPTH {
            // The next function starts after the exit, which follows `r0 = 0`.
            text.push_str("call pc+2\n");
        }
        text.push_str("r0 = 0\nexit");
        let code =
            assemble(&text, &()).map(|code| code.encode()).map_err(|error| paceline::with_causes(&error))?;
        let start = slots.len();
        functions.push(FunctionInfo {
            start,
            name: format!("dirt_{depth}"),
            linkage: if depth == 0 { Linkage::Global } else { Linkage::Static },
            btf_id: 0,
        });
        slots.extend(code.map_err(|error| paceline::with_causes(&error))?);
    }
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let mut spec = ProgramSpec::new("dirt", kind, slots);
    spec.license = "GPL".to_owned();
    spec.functions = functions;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_every_function_is_filled() {
        let mut host = Host::new(0);
        for engine in [AnyEngine::Plain, AnyEngine::Threaded] {
            Dirt::new(engine).expect("a good program").leave(&mut host).expect("no fault");
        }
        let program = spec().expect("good instructions");
        let verified = verify(&program, &[], None, &Options::default()).expect("a good program");
        assert_eq!(verified.functions().len(), DEPTH);
        assert!(verified.functions().iter().all(|function| function.stack as usize == BYTES));
    }
}
