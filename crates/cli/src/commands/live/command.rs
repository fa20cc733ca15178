//! Runs programs on ports until a signal, the time or an error ends the run.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use paceline::{LiveChain, Pipeline};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::answer::answer;
use super::args::LiveArgs;
use super::report::Counts;
use super::sandbox;
use super::workers::{self, Common, LiveError, LiveOrWorker};
use crate::chain::{ChainError, LoadHow, Loaded, load, reload, write_warnings};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::report::Report as _;
use crate::common::watch::SignalError;
use crate::control::{MetricsServer, Question, Server};
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
    let loaded = load(&args.source, &how)?;
    console::warnings(|out| write_warnings(out, &loaded.live.layout()));
    let specs = args.specs();
    let mut opening = Opening::new(&specs, args.frames, workers, args.keep_privileges, loaded.taken.clone())?;
    let mut ports = opening.open_all(&specs)?;
    let mut pass = args.pass.as_ref().and_then(|_| ports.pop());
    attach(&loaded.live, &ports)?;
    announce(&ports, pass.as_ref());
    let names: Vec<_> = ports.iter().chain(&pass).map(|port| (port.ifindex, port.name.clone())).collect();
    let shares = workers::shares(&mut ports, pass.as_mut(), workers);
    let pipeline = loaded.live.pipeline().clone();
    let common = Common { pipeline: &pipeline, pool: opening.pool(), stop: &signals.stop, idle: args.idle() };
    let cpus = if args.pin { workers::cpus()? } else { Vec::new() };
    let server = args.control.as_deref().map(Server::bind).transpose()?;
    let metrics = args.metrics.map(MetricsServer::bind).transpose()?;
    if !args.keep_privileges {
        sandbox::enter(specs.iter().any(|spec| spec.is_dpdk()))?;
    }
    let mut run = Run { args, how, loaded, pipeline: &pipeline, ports: &names, start: Instant::now() };
    let ended = thread::scope(|scope| {
        let (sender, events) = channel();
        let mut threads = Vec::new();
        let mut started = Ok(());
        for (number, share) in shares.into_iter().enumerate() {
            let cpu = cpus.get(number % cpus.len().max(1)).copied();
            match workers::start(scope, &common, number, cpu, share, Ended(Sender::clone(&sender))) {
                Ok(thread) => threads.push(thread),
                Err(error) => started = started.and(Err(error.into())),
            }
        }
        if let Some(server) = &server {
            server.start(scope, &sender, &signals.stop);
        }
        if let Some(metrics) = &metrics {
            metrics.start(scope, &sender, &signals.stop);
        }
        let watched = started.and_then(|()| run.watch(&events, threads.len(), &signals));
        // Whatever ended the run: the threads end, too.
        signals.stop.store(true, Ordering::Relaxed);
        join(threads, &names).and(watched)
    });
    let printed = run.counts(ended.as_ref().err()).print(args.json, false);
    ended.map_err(Failure::reported).and(printed).map(|()| ExitCode::SUCCESS)
}

/// What the thread of the command waits for.
pub(super) enum Event {
    /// A worker has ended.
    Ended,
    /// A request on the control socket.
    Question(Question),
}

impl From<Question> for Event {
    fn from(question: Question) -> Self {
        Self::Question(question)
    }
}

/// Sends [`Event::Ended`] when the worker that has it ends.
pub(super) struct Ended(Sender<Event>);

impl Drop for Ended {
    fn drop(&mut self) {
        // Without a receiver, nobody waits.
        let _ = self.0.send(Event::Ended);
    }
}

/// A live run, as the thread of the command sees it.
struct Run<'a> {
    args: &'a LiveArgs,
    how: LoadHow,
    loaded: Loaded,
    pipeline: &'a Pipeline,
    /// Interface numbers and names.
    ports: &'a [(u32, String)],
    start: Instant,
}

impl Run<'_> {
    /// Follows signals, the time and requests until the run is to end.
    fn watch(&mut self, events: &Receiver<Event>, workers: usize, signals: &Signals) -> Result<(), Failure> {
        let (mut running, mut shown) = (workers, self.start);
        while running > 0 && !signals.stop.load(Ordering::Relaxed) {
            match events.recv_timeout(LOOK) {
                Ok(Event::Ended) => running -= 1,
                Ok(Event::Question(question)) => self.answer(&question, signals),
                Err(_) => {}
            }
            if signals.reload.swap(false, Ordering::Relaxed) {
                reload(&self.args.source, &self.how, &mut self.loaded, self.pipeline.counts().packets());
            }
            if self.args.seconds.is_some_and(|seconds| self.start.elapsed() >= seconds) {
                return Ok(());
            }
            if self.args.every.is_some_and(|every| shown.elapsed() >= every) {
                shown = Instant::now();
                self.counts(None).print(self.args.json, false)?;
            }
        }
        Ok(())
    }

    fn answer(&self, question: &Question, signals: &Signals) {
        let stop = || signals.stop.store(true, Ordering::Relaxed);
        let answer = answer(&question.request, &self.loaded, &self.counts(None), stop);
        // The client may have gone.
        let _ = question.answer.send(answer);
    }

    fn counts(&self, failure: Option<&Failure>) -> Counts<'_> {
        Counts {
            pipeline: self.pipeline,
            ports: self.ports,
            has_pass: self.args.pass.is_some(),
            time: self.start.elapsed(),
            error: failure.map(Failure::to_string),
        }
    }
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
