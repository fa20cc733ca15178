//! Random programs that take and release spin locks of values from several sources: look-ups, walks over maps and walks within walks,
//! timers, contexts of callbacks that keep values of earlier rounds. The plain interpreter knows which lock a program has: it must find
//! nothing wrong with a program that the verifier accepts.

use std::fmt::Write;
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FaultKind, FrameMeta, Host, Limits, Map, Program, TimeSource};
use paceline_verifier::{Options, verify};

use crate::case::{Case, parse_file};
use crate::engine::fill_map;
use crate::kernel::{KernelObject, LoadError, LoadOptions};

const TYPES: &str = "types:
    struct bpf_spin_lock { u32 val; };
    struct bpf_timer { u64 opaque[2]; };
    struct account { struct bpf_spin_lock lock; u32 x; u64 n; };
    struct timed { struct bpf_timer timer; struct bpf_spin_lock lock; u32 x; };
map: accounts hash key u32 value account entries 4
    u32 0 = u32 0 u32 0 u64 0
    u32 1 = u32 0 u32 0 u64 0
map: timers array key u32 value timed entries 3
";

/// A map of values with a lock at an offset; the context has a pointer to one of its values at its own offset.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    map: &'static str,
    lock: i32,
    slot: i32,
}

const KINDS: [Kind; 2] =
    [Kind { map: "accounts", lock: 0, slot: 0 }, Kind { map: "timers", lock: 16, slot: 8 }];

/// The text of one program.
struct Text<'a> {
    rng: &'a mut Rng,
    /// The functions that are finished.
    functions: String,
    labels: usize,
}

impl Text<'_> {
    fn kind(&mut self) -> Kind {
        KINDS[self.rng.usize(..2)]
    }

    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    /// Puts a value of a map, or zero, in a register: the function's own, one from the context, one that is found now.
    fn value(&mut self, body: &mut String, register: u8, kind: Kind, own: Option<Kind>, skip: usize) {
        let found = match self.rng.u8(..4) {
            0 | 1 if own == Some(kind) => format!("r{register} = r6\n"),
            0..3 => format!("r{register} = *(u64 *)(r7 + {})\n", kind.slot),
            _ => format!(
                "*(u32 *)(r10 - 4) = {}\nr1 = map[{}] ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\nr{register} = r0\n",
                self.rng.u8(..3),
                kind.map
            ),
        };
        *body += &found;
        // Only a value that may be null is compared, so that the other way is not impossible.
        writeln!(body, "if r{register} == 0 goto skip{skip}").expect("to a string");
    }

    /// Takes a lock, and releases it or that of another value.
    fn lock(&mut self, body: &mut String, own: Option<Kind>) {
        let (kind, skip) = (self.kind(), self.label());
        self.value(body, 8, kind, own, skip);
        let released = match self.rng.u8(..5) {
            0 | 1 => 8,
            2 => {
                *body += "*(u64 *)(r10 - 16) = r8\nr9 = *(u64 *)(r10 - 16)\n";
                9
            }
            _ => {
                self.value(body, 9, kind, own, skip);
                9
            }
        };
        write!(
            body,
            "r1 = r8\nr1 += {0}\ncall bpf_spin_lock\nr1 = r{released}\nr1 += {0}\ncall bpf_spin_unlock\nskip{skip}:\n",
            kind.lock
        )
        .expect("to a string");
    }

    /// Calls a new function for each element of a map, with this context.
    fn walk(&mut self, body: &mut String, context: &str, depth: u8) {
        let kind = self.kind();
        let function = self.function(kind, true, depth);
        write!(
            body,
            "r1 = map[{}] ll\nr2 = subprog[{function}] ll\n{context}r4 = 0\ncall bpf_for_each_map_elem\n",
            kind.map
        )
        .expect("to a string");
    }

    /// A function for elements of a map, whose own value is in r6 and whose context is in r7. Returns its name.
    fn function(&mut self, kind: Kind, has_context: bool, depth: u8) -> String {
        let name = format!("f{}", self.label());
        let mut body = format!("{name}:\nr6 = r3\n");
        body += if has_context {
            "r7 = r4\n"
        } else {
            "*(u64 *)(r10 - 32) = 0\n*(u64 *)(r10 - 24) = 0\nr7 = r10\nr7 += -32\n"
        };
        for _ in 0..self.rng.u8(1..4) {
            match self.rng.u8(..6) {
                0 => writeln!(body, "*(u64 *)(r7 + {}) = r6", kind.slot).expect("to a string"),
                1 if depth > 0 => self.walk(&mut body, "r3 = r7\n", depth - 1),
                _ => self.lock(&mut body, Some(kind)),
            }
        }
        body += "r0 = 0\nexit\n";
        self.functions += &body;
        name
    }

    fn timer(&mut self, body: &mut String) {
        let (skip, function) = (self.label(), self.function(KINDS[1], false, 1));
        write!(
            body,
            "*(u32 *)(r10 - 4) = {}\nr1 = map[timers] ll\nr2 = r10\nr2 += -4\ncall bpf_map_lookup_elem\nif r0 == 0 goto skip{skip}\n\
             r8 = r0\nr1 = r8\nr2 = map[timers] ll\nr3 = 1\ncall bpf_timer_init\nr1 = r8\nr2 = subprog[{function}] ll\n\
             call bpf_timer_set_callback\nr1 = r8\nr2 = 0\nr3 = 0\ncall bpf_timer_start\nskip{skip}:\n",
            self.rng.u8(..3)
        )
        .expect("to a string");
    }
}

/// The program of a seed, as a text case.
fn case(seed: u64) -> Case {
    let mut rng = Rng::with_seed(seed);
    let mut text = Text { rng: &mut rng, functions: String::new(), labels: 0 };
    let mut body = "*(u64 *)(r10 - 32) = 0\n*(u64 *)(r10 - 24) = 0\nr7 = r10\nr7 += -32\n".to_owned();
    for _ in 0..text.rng.u8(1..4) {
        match text.rng.u8(..4) {
            0 => text.lock(&mut body, None),
            1 => text.timer(&mut body),
            _ => text.walk(&mut body, "r3 = r7\n", 1),
        }
    }
    let lines = body + "r0 = 2\nexit\n" + &text.functions;
    let program: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    let whole = format!("case: locks\n{TYPES}program:\n{program}r0: 2\n");
    match parse_file(&whole) {
        Ok(mut cases) => cases.remove(0),
        Err(error) => panic!("{error}:\n{whole}"),
    }
}

/// The judgement of one program.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockTrial {
    /// The verifier accepts it.
    pub accepted: bool,
    /// The kernel's verifier alone accepts it.
    pub only_kernel: bool,
    /// The plain interpreter stops it at a lock that it does not have.
    pub stopped: bool,
}

/// Verifies the program of a seed, here and if asked in the kernel, and runs it on the plain interpreter, accepted or not.
///
/// # Errors
/// A program is accepted here and not in the kernel, or stops at a lock; or one is refused here alone for another reason than its locks.
pub fn try_locks(seed: u64, kernel: bool) -> Result<LockTrial, String> {
    let case = case(seed);
    let program = case.programs.first().ok_or("a case without a program")?;
    let ours = verify(program, &case.maps, Some(&case.btf), &Options::default());
    let mut trial = LockTrial { accepted: ours.is_ok(), ..LockTrial::default() };
    if kernel {
        let options = LoadOptions { btf: Some(&case.btf), ..LoadOptions::default() };
        let theirs = match KernelObject::load(&case.maps, [program], options) {
            Ok(_) => Ok(()),
            Err(LoadError::Program { error, .. }) => Err(error.reason().to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        match (&ours, theirs) {
            (Ok(_), Err(reason)) => return Err(format!("only the kernel refuses: {reason}")),
            (Err(refusal), Ok(())) if refusal.cause.to_string().contains("another lock is held") => {
                trial.only_kernel = true;
            }
            (Err(refusal), Ok(())) => return Err(format!("only we refuse: {refusal}")),
            _ => {}
        }
    }
    let limits = Limits { cpus: 1, memory: 1 << 20 };
    let mut maps: Vec<Arc<Map>> = Vec::new();
    for spec in &case.maps {
        let map = Map::create(spec, &limits).map_err(|error| paceline::with_causes(&error))?;
        fill_map(&map, spec, &maps, 0).map_err(|error| paceline::with_causes(&error))?;
        maps.push(map);
    }
    let program =
        Program::new(Arc::new(program.clone()), maps).map_err(|error| paceline::with_causes(&error))?;
    let mut host = Host::new(0);
    host.set_time(TimeSource::Packets);
    let mut burst = Burst::new(1);
    burst.push(&[0; 60], FrameMeta::default()).map_err(|error| paceline::with_causes(&error))?;
    host.arrive(&burst);
    let ran = program.run(&mut burst.frame_mut(0), &mut host).map(drop);
    let ran = ran.and_then(|()| host.fire_timers().map(drop));
    if let Err(fault) = ran {
        trial.stopped = matches!(fault.kind, FaultKind::Argument { expected: "spin lock that it has", .. });
        if trial.accepted {
            return Err(format!("a program that is accepted stops: {fault}"));
        }
    }
    Ok(trial)
}
