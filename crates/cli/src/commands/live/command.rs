//! Runs programs on ports until a signal, the time or an error ends the run.

use paceline::with_causes;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use paceline::device::Interface;
use paceline::port::FramePool;
use paceline::{LiveChain, Pipeline};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::answer::answer;
use super::args::LiveArgs;
use super::beats::{Beats, Watched};
use super::recorder::{Recorder, Wanted, record_file};
use super::report::{Counts, PortNames};
use super::sandbox::{self, Needs};
use super::sockets;
use super::threads::{self, Common, LiveError, LiveOrWorker, Share};
use crate::chain::{ChainError, LoadHow, Loaded, Part, load, reload, write_warnings};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{FileError, Opened, Taken};
use crate::common::report::{Report as _, StdoutError};
use crate::common::watch::SignalError;
use crate::control::{Answer, Capture, MetricsServer, Question, Request, Server};
use crate::object::Opener;
use crate::ports::{OpenedPort, Opening, PortSpec, Waiting};

/// Time between two looks at signals and the clock.
const LOOK: Duration = Duration::from_millis(20);
/// Time after which it is told that nothing went on.
const STALLED: Duration = Duration::from_secs(1);
/// Time after a request for a sample of packets in which one is taken.
const SAMPLE: Duration = Duration::from_secs(5);
/// Time between two attempts to open ports.
const RETRY: Duration = Duration::from_millis(100);

/// Runs programs on ports.
pub(crate) fn live(args: &LiveArgs) -> Result<ExitCode, Failure> {
    args.check().unwrap_or_else(|usage| usage.exit());
    // Before an interface is attached, so that none stays attached longer than needed.
    let signals = Signals::new()?;
    let how = LoadHow {
        engine: args.engine(),
        unverified: false,
        opener: Rc::new(Opener::new(&args.source.object)),
        cpus: usize::from(args.workers),
    };
    let loaded = load(&args.source, &how)?;
    // Before ports, which start their captures and attach to interfaces.
    sockets::check(&args.sockets, &loaded.parts)?;
    console::warnings(|out| write_warnings(out, &loaded.live.layout()));
    let pipeline = loaded.live.pipeline().clone();
    let cpus = if args.pin { threads::cpus()? } else { Vec::new() };
    let (sender, events) = channel();
    let start = Instant::now();
    // Before the ports, which may write captures, too.
    let mut taken = loaded.taken.clone();
    taken.extend(args.source.object.restored());
    taken.extend(args.specs().iter().filter_map(|spec| spec.input()));
    let capture = args.capture.as_deref().map(|path| Opened::open(path, "--capture", &mut taken));
    let capture = capture.transpose()?;
    let mut run = Run {
        args,
        how,
        loaded,
        taken,
        pipeline: &pipeline,
        names: PortNames::new(&args.specs(), args.pass.is_some()),
        socket_numbers: Vec::new(),
        cpus,
        start,
        attended: start,
        resumed: start,
        sampled: None,
        shown: start,
        signals,
        events,
    };
    let Some(first) = run.open_or_wait()? else { return Ok(ExitCode::SUCCESS) };
    let beside = Beside::begin(args, capture)?;
    let ended = beside.run(&mut run, first, &sender);
    let printed = run.counts(ended.as_ref().err()).print(args.json, args.print);
    ended.map_err(Failure::reported).and(printed).map(|()| ExitCode::SUCCESS)
}

/// The capture file, the metrics endpoint and the control socket of a run, each served by a thread.
struct Beside {
    /// The file of `--capture` and its name.
    capture: Option<(File, String)>,
    /// Standard output, where packets are printed.
    print: Option<File>,
    metrics: Option<MetricsServer>,
    server: Option<Server>,
}

impl Beside {
    /// Opens what the ports do not need, and gives up privileges.
    fn begin(args: &LiveArgs, capture: Option<Opened>) -> Result<Self, Failure> {
        let capture = capture.map(Opened::start_text).transpose()?;
        let stdout = || io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(StdoutError);
        let print = args.print.then(stdout).transpose()?;
        let metrics = args.metrics.map(MetricsServer::bind).transpose()?;
        // The last one: the socket tells others that the run is ready.
        let server = args.control.as_deref().map(Server::bind).transpose()?;
        if !args.keeps_privileges() {
            let any = |has: fn(&PortSpec) -> bool| args.specs().into_iter().any(has);
            sandbox::enter(Needs { dpdk: any(PortSpec::is_dpdk), memif: any(PortSpec::is_memif) })?;
        }
        Ok(Self { capture, print, metrics, server })
    }

    /// Runs until the end, and answers, serves and records meanwhile.
    fn run(&self, run: &mut Run<'_>, first: Round, sender: &Sender<Event>) -> Result<(), Failure> {
        let ending = AtomicBool::new(false);
        thread::scope(|scope| {
            let capture = self.capture.as_ref().map(|(file, name)| {
                let (recorder, ending) =
                    (Recorder::new(run.pipeline, &run.names, Wanted::default()), &ending);
                let failed = |source| FileError::Write { name: name.clone(), source };
                scope.spawn(move || record_file(recorder, file, ending).map_err(failed))
            });
            let printer = self.print.as_ref().map(|file| {
                let (recorder, ending) =
                    (Recorder::new(run.pipeline, &run.names, Wanted::default()), &ending);
                scope.spawn(move || recorder.print(file, || ending.load(Ordering::Relaxed)))
            });
            let server = self.server.as_ref().map(|server| server.start(scope, sender, &ending));
            let metrics = self.metrics.as_ref().map(|metrics| metrics.start(scope, sender, &ending));
            let served: Result<(), _> = server.into_iter().chain(metrics).collect();
            let ended = served.map_err(Failure::from).and_then(|()| run.rounds(first, sender));
            run.refuse_questions();
            ending.store(true, Ordering::Relaxed);
            let captured = capture.map_or(Ok(()), |capture| capture.join().unwrap_or(Ok(())));
            let printed = printer.map_or(Ok(0), |printer| printer.join().unwrap_or(Ok(0)));
            if let Ok(lost @ 1..) = printed {
                console::note(format_args!(
                    "--print: {lost} packets are left out: they came faster than lines are written"
                ));
            }
            ended
                .and(captured.map_err(Failure::from))
                .and(printed.map(drop).map_err(|error| StdoutError(error).into()))
        })
    }
}

/// Event that the thread of the command waits for.
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
        // Without a receiver, no client waits.
        let _ = self.0.send(Event::Ended);
    }
}

/// A live run, as the thread of the command sees it.
struct Run<'a> {
    args: &'a LiveArgs,
    how: LoadHow,
    loaded: Loaded,
    /// Files in use that no port may write.
    taken: Vec<Taken>,
    pipeline: &'a Pipeline,
    names: PortNames,
    /// Numbers of the ports of `--socket`.
    socket_numbers: Vec<u32>,
    /// CPUs that workers are bound to, by turns.
    cpus: Vec<usize>,
    start: Instant,
    /// When this thread began to wait for an event.
    attended: Instant,
    /// When the process began to run, or went on after it was stalled.
    resumed: Instant,
    /// Time of the last request for a sample of packets.
    sampled: Option<Instant>,
    /// Time of the last counts that were printed.
    shown: Instant,
    signals: Signals,
    events: Receiver<Event>,
}

/// Ports that are open, for one round: until the end, or until one of them goes away.
struct Round {
    shares: Vec<Share>,
    pool: Arc<FramePool>,
    /// Threads that wait for an input.
    waiting: Waiting,
    /// Interface numbers of the ports whose packets run through the chain.
    attached: Vec<u32>,
}

impl Run<'_> {
    /// Runs until the end, and with `--wait` also when ports go away in between.
    fn rounds(&mut self, first: Round, sender: &Sender<Event>) -> Result<(), Failure> {
        let mut next = Some(first);
        while let Some(round) = next {
            next = match self.round(round, sender)? {
                Err(error) if self.args.wait && error.is_gone() => {
                    console::note(format_args!("{}: waiting for it", with_causes(&error)));
                    self.open_or_wait()?
                }
                ended => return Ok(ended?),
            };
        }
        Ok(())
    }

    /// Opens the ports, as soon as all interfaces exist; `None` if the run is to end before.
    fn open_or_wait(&mut self) -> Result<Option<Round>, Failure> {
        let mut is_told = false;
        loop {
            let missing = self.missing();
            if !self.args.wait || missing.is_none() {
                match self.open() {
                    Ok(round) => return Ok(Some(round)),
                    // It has gone meanwhile.
                    Err(_) if self.args.wait && self.missing().is_some() => {}
                    Err(error) => return Err(error),
                }
            }
            if let Some(missing) = missing.filter(|_| !is_told) {
                console::note(format_args!("there is no interface `{missing}`: waiting for it"));
                is_told = true;
            }
            self.attended = Instant::now();
            if !self.attend(&mut 0, RETRY)? {
                return Ok(None);
            }
        }
    }

    /// An interface that a port needs and that does not exist.
    fn missing(&self) -> Option<String> {
        let specs = self.args.specs();
        let names = specs.iter().filter_map(|spec| spec.interface());
        names.into_iter().find(|name| Interface::by_name(name).is_err()).map(str::to_owned)
    }

    fn open(&mut self) -> Result<Round, Failure> {
        let args = self.args;
        let (specs, workers) = (args.specs(), usize::from(args.workers));
        let taken = self.taken.clone();
        let mut opening = Opening::new(&specs, args.frames, workers, args.keeps_privileges(), taken)?;
        let mut ports = opening.open_all(&specs)?;
        self.names.begin_round(self.pipeline, ports.iter().map(|port| port.ifindex).collect());
        announce(&ports);
        let pass = args.pass.as_ref().and_then(|_| ports.pop());
        let sockets = ports.split_off(args.ports.len());
        let numbers = |ports: &[OpenedPort]| ports.iter().map(|port| port.ifindex).collect::<Vec<_>>();
        self.socket_numbers = numbers(&sockets);
        sockets::enter(&args.sockets, &self.socket_numbers, &self.loaded.parts)?;
        attach(&self.loaded.live, &ports)?;
        let attached = numbers(&ports);
        let shares = threads::shares(threads::Ports { ports, sockets, pass }, workers);
        let (pool, waiting) = (Arc::clone(opening.pool()), opening.waiting().clone());
        Ok(Round { shares, pool, waiting, attached })
    }

    /// Runs workers until the end, or until a port does not work any more, which is the inner error.
    fn round(&mut self, round: Round, sender: &Sender<Event>) -> Result<Result<(), LiveError>, Failure> {
        let (stop, beats) = (AtomicBool::new(false), Beats::new(round.shares.len()));
        let idle = self.args.idle();
        let common = Common { pipeline: self.pipeline, pool: &round.pool, stop: &stop, idle, beats: &beats };
        let cpus = self.cpus.clone();
        let ended = thread::scope(|scope| {
            let mut threads = Vec::new();
            let mut started = Ok(());
            for (number, share) in round.shares.into_iter().enumerate() {
                let cpu = cpus.get(number % cpus.len().max(1)).copied();
                match threads::start(scope, &common, number, cpu, share, Ended(Sender::clone(sender))) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => started = started.and(Err(error)),
                }
            }
            let workers: Vec<_> = threads.iter().map(|thread| thread.thread().id()).collect();
            let watched = match &started {
                Ok(()) => self.watch(&workers, &beats, &round.waiting),
                Err(_) => Ok(()),
            };
            // Whatever ended the round: the threads end, too.
            stop.store(true, Ordering::Relaxed);
            let joined = join(threads, &self.names);
            watched.map(|()| started.and(joined))
        });
        for ifindex in round.attached {
            let name = || self.names.of(ifindex).to_owned();
            let detached = self.loaded.live.detach(ifindex);
            detached.map_err(|source| ChainError::Change { name: name(), source })?;
        }
        ended
    }

    /// Follows signals, the time and requests until the run or the first worker ends.
    fn watch(&mut self, workers: &[ThreadId], beats: &Beats, waiting: &Waiting) -> Result<(), Failure> {
        let (mut running, mut watched, mut told) = (workers.len(), Watched::new(beats), Vec::new());
        self.attended = Instant::now();
        while running > 0 && self.attend(&mut running, LOOK)? {
            // When the process goes on after SIGSTOP, its workers need a moment, too.
            if self.resumed.elapsed() < STALLED {
                continue;
            }
            let stalled = watched.stalled(STALLED);
            for worker in stalled.iter().filter(|worker| !told.contains(*worker)) {
                let waits = workers.get(*worker).is_some_and(|thread| waiting.has(*thread));
                // A worker with no other port to receive from has nothing else to do.
                let sources = self.args.specs().into_iter().filter(|spec| spec.receives()).count();
                match waits {
                    true if sources == 1 => {}
                    true => console::note(format_args!("worker {worker} is stalled: it waits for a capture")),
                    false => console::note(format_args!(
                        "worker {worker} is stalled: a program or a port holds it up"
                    )),
                }
            }
            told = stalled;
        }
        Ok(())
    }

    /// Waits for an event, up to a time, and does what is due; false if the run is to end.
    fn attend(&mut self, running: &mut usize, time: Duration) -> Result<bool, Failure> {
        let event = self.events.recv_timeout(time);
        // Before the answer, which may take longer.
        let stalled = self.attended.elapsed();
        match event {
            Ok(Event::Ended) => *running = running.saturating_sub(1),
            Ok(Event::Question(question)) => self.answer(&question),
            Err(_) => {}
        }
        if stalled > time + STALLED {
            console::note(format_args!("the run was stalled for {stalled:.1?}, as after SIGSTOP"));
            self.resumed = Instant::now();
        }
        if self.sampled.is_some_and(|last| last.elapsed() > SAMPLE) {
            self.sampled = None;
            self.pipeline.follow(false);
        }
        if self.signals.reload.swap(false, Ordering::Relaxed) {
            let packets = self.pipeline.counts().packets();
            let Self { args, how, loaded, socket_numbers, .. } = self;
            // Before packets run through the changed chain.
            let enter = |parts: &[Part]| Ok(sockets::enter(&args.sockets, socket_numbers, parts)?);
            reload(&args.source, how, loaded, packets, enter);
        }
        if self.args.every.is_some_and(|every| self.shown.elapsed() >= every) {
            self.shown = Instant::now();
            self.counts(None).print(self.args.json, self.args.print)?;
        }
        self.attended = Instant::now();
        let is_over = self.args.seconds.is_some_and(|seconds| self.start.elapsed() >= seconds);
        Ok(!is_over && !self.signals.stop.load(Ordering::Relaxed))
    }

    /// Ends the wait of clients whose requests will not be answered, and of those to come.
    fn refuse_questions(&mut self) {
        self.events = channel().1;
    }

    fn answer(&mut self, question: &Question) {
        if question.request == (Request::Status { follow: true }) {
            self.sampled = Some(Instant::now());
            self.pipeline.follow(true);
        }
        let stop = || self.signals.stop.store(true, Ordering::Relaxed);
        let answer = match &question.request {
            Request::Capture(wanted) => self.capture(wanted),
            request => answer(request, &self.loaded, &self.counts(None), stop).map(Answer::Value),
        };
        // The client may have gone.
        let _ = question.answer.send(answer);
    }

    /// Answers with a capture from now on.
    fn capture(&self, wanted: &Capture) -> Result<Answer, String> {
        let recorder = Recorder::new(self.pipeline, &self.names, Wanted::of(wanted)?);
        // A client that has gone, or is too slow, ends the capture.
        Ok(Answer::Stream(Box::new(move |out, is_over| drop(recorder.record(out, is_over)))))
    }

    fn counts(&self, failure: Option<&Failure>) -> Counts<'_> {
        Counts {
            pipeline: self.pipeline,
            ports: &self.names,
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
fn announce(ports: &[OpenedPort]) {
    for port in ports.iter().filter(|port| !port.details.is_empty()) {
        console::note(format_args!("{}: {}", port.name, port.details));
    }
}

fn join(
    threads: Vec<thread::ScopedJoinHandle<'_, Result<(), LiveOrWorker>>>,
    names: &PortNames,
) -> Result<(), LiveError> {
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
    result
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
