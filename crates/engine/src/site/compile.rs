//! Dispatchers as generated code.

use std::mem::{offset_of, transmute};

use crate::exec::{Arena, Code, CodeMap, Function, Relocation};
use paceline_compiler::native::{Case, Dispatcher, Otherwise, RUN, TokenArgument, dispatchers};
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{BurstEntry, Entry};

use super::error::{Fallback, UpdateError};
use super::image::{self, Image, PASS_BURST, PASS_PACKET};
use crate::engine::Engine;

/// Whether this process can generate dispatchers, which are x86-64 code.
pub(super) fn is_native() -> bool {
    cfg!(target_arch = "x86_64") && Engine::Jit.is_available() && Arena::global().is_ok()
}

fn cases(cases: &[image::Case]) -> Vec<Case> {
    let case = |&image::Case { key, target, token }: &image::Case| Case { key, target, token };
    cases.iter().map(case).collect()
}

/// The image with generated code, unless the code cannot reach its targets.
pub(super) fn compile(image: Image, fallback: Option<Fallback>) -> Result<Image, UpdateError> {
    let memory = |error: &dyn std::error::Error| UpdateError::Memory(error.to_string());
    let arena = Arena::global().map_err(|error| memory(&error))?;
    let near = |case: &image::Case| arena.is_near(case.target as usize);
    if !image.packets.iter().chain(&image.bursts).all(near) || !arena.is_near(PASS_PACKET as usize) {
        return Ok(image);
    }
    let otherwise = |pass: u64| match fallback {
        Some(fallback) => Otherwise::Indirect {
            retpoline: fallback == Fallback::Retpoline,
            count: offset_of!(Host, counts.misses) as i32,
        },
        None => Otherwise::Target(pass),
    };
    let (code, starts) = dispatchers(&[
        Dispatcher {
            cases: &cases(&image.packets),
            otherwise: otherwise(PASS_PACKET as usize as u64),
            token: TokenArgument::Second,
            run: RUN,
        },
        Dispatcher {
            cases: &cases(&image.bursts),
            otherwise: otherwise(PASS_BURST as usize as u64),
            token: TokenArgument::Third,
            run: RUN,
        },
    ])
    .map_err(|error| memory(&error))?;
    let relocations: Vec<Relocation> = code
        .relocations
        .iter()
        .map(|relocation| Relocation {
            offset: relocation.offset as usize,
            target: relocation.target as usize,
        })
        .collect();
    let functions = functions(&starts, code.bytes.len() as u32);
    let code = Code::new(&code.bytes).relocations(&relocations).functions(functions);
    let block = arena.install(&code).map_err(|error| memory(&error))?;
    let address = |index: usize| block.address() + starts.get(index).map_or(0, |&start| start as usize);
    // SAFETY: the code there takes what programs take, and a key in the fourth argument.
    let (packet, burst) =
        unsafe { (transmute::<usize, Entry>(address(0)), transmute::<usize, BurstEntry>(address(1))) };
    Ok(Image { packet, burst, block: Some(block), ..image })
}

/// Names of the code for debuggers and profilers.
fn functions(starts: &[u32], len: u32) -> Vec<Function> {
    let ends = starts.iter().skip(1).copied().chain([len]);
    let named = ["dispatcher", "dispatcher.burst"].into_iter().zip(starts).zip(ends);
    named
        .map(|((name, &start), end)| Function {
            name: name.to_owned(),
            start,
            len: end - start,
            map: CodeMap::new(Vec::new()),
            lines: [].into(),
        })
        .collect()
}
