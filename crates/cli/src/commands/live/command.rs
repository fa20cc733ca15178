//! Runs programs on ports until a signal, the time or an error ends the run.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use paceline::LiveChain;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::args::LiveArgs;
use super::report::Counts;
use super::workers::{self, Common, LiveError, LiveOrWorker};
use crate::chain::{ChainError, LoadHow, load, reload, write_warnings};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::report::Report as _;
use crate::common::watch::SignalError;
use crate::object::Opener;
use crate::ports::{OpenedPort, Opening};

/// Time between two looks at signals and the clock.
const LOOK: Duration = Duration::from_millis(20);

/// Runs programs on ports.
pub(crate) fn live(args: &LiveArgs) -> Result<ExitCode, Failure> {
    // Before an interface is attached, so that none stays attached longer than needed.
    let signals = Signals::new()?;
    let workers = usize::from(args.workers);
    let how = LoadHow {
        budget: paceline::DEFAULT_BUDGET,
        engine: args.engine(),
        unverified: false,
        restore: None,
        opener: Rc::new(Opener::new(&args.source.object)),
        cpus: workers,
    };
    let mut loaded = load(&args.source, &how)?;
    console::warnings(|out| write_warnings(out, &loaded.live.layout()));
    let specs = args.specs();
    let mut opening = Opening::new(&specs, args.frames, workers, loaded.taken.clone())?;
    let mut ports = opening.open_all(&specs)?;
    let mut pass = args.pass.as_ref().and_then(|_| ports.pop());
    attach(&loaded.live, &ports)?;
    announce(&ports, pass.as_ref());
    let names: Vec<_> = ports.iter().chain(&pass).map(|port| (port.ifindex, port.name.clone())).collect();
    let shares = workers::shares(&mut ports, pass.as_mut(), workers);
    let pipeline = loaded.live.pipeline().clone();
    let common = Common { pipeline: &pipeline, pool: opening.pool(), stop: &signals.stop, idle: args.idle() };
    let cpus = if args.pin { workers::cpus()? } else { Vec::new() };
    let start = Instant::now();
    let counts = |failure: Option<&Failure>| Counts {
        pipeline: &pipeline,
        ports: &names,
        has_pass: args.pass.is_some(),
        time: start.elapsed(),
        error: failure.map(Failure::to_string),
    };
    let ended = thread::scope(|scope| {
        // Disconnected when the last worker ends.
        let (running, ended) = channel();
        let mut threads = Vec::new();
        for (number, share) in shares.into_iter().enumerate() {
            let cpu = cpus.get(number % cpus.len().max(1)).copied();
            threads.push(workers::start(scope, &common, number, cpu, share, Sender::clone(&running))?);
        }
        drop(running);
        let mut shown = start;
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout)
            && !signals.stop.load(Ordering::Relaxed)
        {
            if signals.reload.swap(false, Ordering::Relaxed) {
                reload(&args.source, &how, &mut loaded, pipeline.counts().packets());
            }
            if args.seconds.is_some_and(|seconds| start.elapsed() >= seconds) {
                break;
            }
            if args.every.is_some_and(|every| shown.elapsed() >= every) {
                shown = Instant::now();
                counts(None).print(args.json, false)?;
            }
        }
        signals.stop.store(true, Ordering::Relaxed);
        join(threads, &names)
    });
    let printed = counts(ended.as_ref().err()).print(args.json, false);
    ended.map_err(Failure::reported).and(printed).map(|()| ExitCode::SUCCESS)
}

/// Lets the packets of all ports run through the chain.
fn attach(chain: &LiveChain, ports: &[OpenedPort]) -> Result<(), Failure> {
    for port in ports {
        let name = || port.name.clone();
        chain.attach(port.ifindex).map_err(|source| ChainError::Change { name: name(), source })?;
    }
    Ok(())
}

/// Tells how the ports work.
fn announce(ports: &[OpenedPort], pass: Option<&OpenedPort>) {
    for port in ports.iter().chain(pass).filter(|port| !port.details.is_empty()) {
        console::note(format_args!("{}: {}", port.name, port.details));
    }
}

fn join(
    threads: Vec<thread::ScopedJoinHandle<'_, Result<(), LiveOrWorker>>>,
    names: &[(u32, String)],
) -> Result<(), Failure> {
    let mut result = Ok(());
    for thread in threads {
        let ended = match thread.join() {
            Ok(ended) => ended.map_err(|error| match error {
                LiveOrWorker::Live(error) => error,
                LiveOrWorker::Worker(error) => LiveError::new(error, names),
            }),
            Err(_) => Err(LiveError::Panic),
        };
        result = result.and(ended);
    }
    Ok(result?)
}

/// Flags that signals set.
struct Signals {
    /// SIGINT and SIGTERM; a second one ends the process.
    stop: Arc<AtomicBool>,
    /// SIGHUP: read the chain file again.
    reload: Arc<AtomicBool>,
}

impl Signals {
    fn new() -> Result<Self, SignalError> {
        let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&interrupted)).map_err(SignalError)?;
            flag::register(signal, Arc::clone(&interrupted)).map_err(SignalError)?;
            flag::register(signal, Arc::clone(&stop)).map_err(SignalError)?;
        }
        flag::register(SIGHUP, Arc::clone(&reload)).map_err(SignalError)?;
        Ok(Self { stop, reload })
    }
}
