//! A site's image: the dispatcher for single packets and that for bursts, as generated code or as a search in Rust.

use std::mem::{offset_of, transmute};

use paceline_exec::{Arena, Code, CodeBlock, CodeMap, Function, Relocation};
use paceline_frame::{Frame, Verdict};
use paceline_interpreter::image::{BurstEntry, Entry, Unset};
use paceline_jit::{Case, Dispatcher, Otherwise, RUN, TokenArgument, dispatchers};
use paceline_runtime::host::Host;

use super::{Fallback, UpdateError};
use crate::engine::Engine;
use crate::target::Target;

/// What workers find. Its address is the fifth argument of its entries, the key the fourth.
pub(super) struct Image {
    pub(super) packet: Entry,
    pub(super) burst: BurstEntry,
    /// By ascending key.
    packets: Box<[Case]>,
    bursts: Box<[Case]>,
    /// The generated code, where there is some.
    pub(super) block: Option<CodeBlock>,
    /// By ascending slot. They keep what the code jumps to.
    pub(super) targets: Vec<(u64, Target)>,
}

impl Image {
    /// What has the slot.
    pub(super) fn target(&self, slot: u64) -> Option<&Target> {
        let index = self.targets.binary_search_by_key(&slot, |&(slot, _)| slot).ok()?;
        self.targets.get(index).map(|(_, target)| target)
    }
}

/// How images are made.
#[derive(Clone, Copy)]
pub(super) struct Maker {
    /// Whether there is generated code.
    native: bool,
    /// For addresses as keys; keys are numbers otherwise.
    fallback: Option<Fallback>,
}

const PASS_PACKET: Entry = pass_packet;
const PASS_BURST: BurstEntry = pass_burst;

impl Maker {
    pub(super) fn by_program(fallback: Fallback) -> Self {
        Self { native: Self::is_native(), fallback: Some(fallback) }
    }

    pub(super) fn by_key() -> Self {
        Self { native: Self::is_native(), fallback: None }
    }

    #[cfg(feature = "variants")]
    pub(super) fn without_code(self) -> Self {
        Self { native: false, ..self }
    }

    /// Whether this process can have generated code: where it cannot, there are no programs of it either.
    fn is_native() -> bool {
        Engine::Jit.is_available() && Arena::global().is_ok()
    }

    /// An image without slots.
    pub(super) fn empty(self) -> Image {
        self.searching(Vec::new())
    }

    pub(super) fn make(self, targets: Vec<(u64, Target)>) -> Result<Image, UpdateError> {
        let image = self.searching(targets);
        if self.native && !image.targets.is_empty() { self.compile(image) } else { Ok(image) }
    }

    fn searching(self, targets: Vec<(u64, Target)>) -> Image {
        let cases = |address: fn(&Target) -> u64| {
            let case = |(key, target): &(u64, Target)| match self.fallback {
                Some(_) => Case { key: address(target), target: address(target), token: None },
                None => Case { key: *key, target: address(target), token: Some(target.token) },
            };
            let mut cases: Vec<Case> = targets.iter().map(case).collect();
            cases.sort_by_key(|case| case.key);
            // Engines that are no compilers have one entry for all programs.
            cases.dedup_by_key(|case| case.key);
            cases.into_boxed_slice()
        };
        let packets = cases(Target::address);
        let bursts = cases(|target| target.burst_entry as usize as u64);
        let (packet, burst): (Entry, BurstEntry) = match self.fallback {
            Some(_) => (search_packet::<true>, search_burst::<true>),
            None => (search_packet::<false>, search_burst::<false>),
        };
        Image { packet, burst, packets, bursts, block: None, targets }
    }

    /// The same with generated code, unless it cannot reach what it jumps to.
    fn compile(self, image: Image) -> Result<Image, UpdateError> {
        let memory = |error: &dyn std::error::Error| UpdateError::Memory(error.to_string());
        let arena = Arena::global().map_err(|error| memory(&error))?;
        let near = |case: &Case| arena.is_near(case.target as usize);
        if !image.packets.iter().chain(&image.bursts).all(near) || !arena.is_near(PASS_PACKET as usize) {
            return Ok(image);
        }
        let otherwise = |pass: u64| match self.fallback {
            Some(fallback) => Otherwise::Indirect {
                retpoline: fallback == Fallback::Retpoline,
                count: offset_of!(Host, misses) as i32,
            },
            None => Otherwise::Target(pass),
        };
        let (code, starts) = dispatchers(&[
            Dispatcher {
                cases: &image.packets,
                otherwise: otherwise(PASS_PACKET as usize as u64),
                token: TokenArgument::Second,
                run: RUN,
            },
            Dispatcher {
                cases: &image.bursts,
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
}

/// What profilers and debuggers call the code.
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

fn find(cases: &[Case], key: u64) -> Option<&Case> {
    cases.binary_search_by_key(&key, |case| case.key).ok().and_then(|index| cases.get(index))
}

/// # Safety
/// As for the program's entry; `key` must be set, to the address of an entry if `ADDRESSES`, and `image` to that of an image.
unsafe extern "C" fn search_packet<const ADDRESSES: bool>(
    frame: u64,
    token: u64,
    r3: Unset,
    key: Unset,
    image: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for both.
    let (key, image) = unsafe { (key.assume_init(), &*(image.assume_init() as *const Image)) };
    let case = find(&image.packets, key);
    host.misses += u64::from(case.is_none());
    let (address, token) = match case {
        Some(case) => (case.target, case.token.unwrap_or(token)),
        None if ADDRESSES => (key, token),
        None => return Verdict::Pass as u64,
    };
    // SAFETY: it is the address of an entry, and the token is what it takes.
    unsafe { transmute::<usize, Entry>(address as usize)(frame, token, r3, r3, r3, host) }
}

/// # Safety
/// As [`search_packet`], for a program's burst entry.
unsafe extern "C" fn search_burst<const ADDRESSES: bool>(
    first: u64,
    end: u64,
    token: u64,
    key: Unset,
    image: Unset,
    host: &mut Host,
) -> u64 {
    let unset = Unset::uninit();
    // SAFETY: the caller vouches for both.
    let (key, image) = unsafe { (key.assume_init(), &*(image.assume_init() as *const Image)) };
    let case = find(&image.bursts, key);
    let (address, token) = match case {
        Some(case) => (case.target, case.token.unwrap_or(token)),
        None if ADDRESSES => {
            host.misses += 1;
            (key, token)
        }
        // SAFETY: the caller vouches for the frames.
        None => return unsafe { pass_burst(first, end, token, unset, unset, host) },
    };
    // SAFETY: it is the address of an entry, and the token is what it takes.
    unsafe { transmute::<usize, BurstEntry>(address as usize)(first, end, token, unset, unset, host) }
}

/// Where packets go whose key has no program.
///
/// # Safety
/// None is needed; the type asks for it.
unsafe extern "C" fn pass_packet(_: u64, _: u64, _: Unset, _: Unset, _: Unset, host: &mut Host) -> u64 {
    host.misses += 1;
    Verdict::Pass as u64
}

/// Where bursts go whose key has no program.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call.
unsafe extern "C" fn pass_burst(first: u64, end: u64, _: u64, _: Unset, _: Unset, host: &mut Host) -> u64 {
    host.misses += 1;
    let mut frame = first;
    while frame != end {
        // SAFETY: the frame is one of the burst's.
        unsafe { &mut *(frame as *mut Frame) }.set_code(Verdict::Pass as u32);
        frame += size_of::<Frame>() as u64;
    }
    end
}
