//! Classic cases on engines for classic programs: packet sockets, and libpcap.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use paceline_classic::{Filter, Purpose, SockFilter};

use super::interface::{Engine, Unsupported};
use crate::case::{Case, CaseKind};
use crate::classic::packet_socket::{Interface, MIN_PACKET};
use crate::classic::{Libpcap, reference};
use crate::outcome::{Finished, Outcome, Ran, Return};

/// The classic program of a case. Of the two cases that it becomes only the one for socket filters has it, so that it runs
/// once.
fn program(case: &Case) -> Option<&[SockFilter]> {
    let classic = case.classic.as_ref()?;
    (case.kind == CaseKind::SocketFilter).then_some(classic.insns.as_slice())
}

fn ran(case: &Case, values: Vec<Return>) -> Outcome {
    let finished = |(value, run): (Return, &crate::case::Run)| {
        Ok(Finished { data: run.data.clone(), ..Finished::new(value) })
    };
    Outcome::Ran(Ran { runs: values.into_iter().zip(&case.runs).map(finished).collect(), maps: Vec::new() })
}

/// A program and packets for the thread with the sockets, and the channel for the result.
type Job = (Vec<SockFilter>, Vec<Vec<u8>>);
type Answer = Result<Vec<usize>, String>;

/// The kernel's classic filters, on packet sockets of the loopback interface, in a network namespace with a thread of its
/// own.
pub struct SocketEngine {
    thread: Mutex<(Sender<Job>, Receiver<Answer>)>,
}

impl SocketEngine {
    /// Starts the thread.
    ///
    /// # Errors
    /// The process may not create a network namespace.
    pub fn new() -> Result<Self, String> {
        let (jobs, inbox) = channel::<Job>();
        let (outbox, answers) = channel::<Answer>();
        std::thread::spawn(move || {
            let interface = Interface::new().map_err(|error| paceline::with_causes(&error));
            let ready = interface.as_ref().map(|_| Vec::new()).map_err(Clone::clone);
            let _ = outbox.send(ready);
            let Ok(interface) = interface else { return };
            for (insns, packets) in inbox {
                let attached = interface.attach(&insns);
                let result = attached.and_then(|()| packets.iter().map(|p| interface.run(p)).collect());
                let _ = outbox.send(result.map_err(|error| paceline::with_causes(&error)));
            }
        });
        answers.recv().map_err(|error| paceline::with_causes(&error))??;
        Ok(Self { thread: Mutex::new((jobs, answers)) })
    }
}

impl Engine for SocketEngine {
    fn name(&self) -> &str {
        "socket"
    }

    fn concerns(&self, case: &Case) -> bool {
        program(case).is_some()
    }

    fn verifies(&self) -> bool {
        true
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        let insns = program(case).unwrap_or_default().to_vec();
        if let Some(run) = case.runs.iter().find(|run| run.data.len() < MIN_PACKET) {
            return Err(Unsupported::PacketLength(run.data.len()));
        }
        let packets = case.runs.iter().map(|run| run.data.clone()).collect();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match thread.0.send((insns, packets)) {
            Ok(()) => thread.1.recv().unwrap_or_else(|error| Err(error.to_string())),
            Err(error) => Err(error.to_string()),
        };
        Ok(match answer {
            Ok(kept) => {
                let kept = kept.iter().zip(&case.runs);
                let kept =
                    kept.map(|(kept, run)| Return::Kept { bytes: *kept as u32, of: run.data.len() as u32 });
                ran(case, kept.collect())
            }
            Err(error) => Outcome::Refused(error.into()),
        })
    }
}

/// libpcap's `bpf_filter`.
pub struct LibpcapEngine(Libpcap);

impl LibpcapEngine {
    /// Opens libpcap.
    ///
    /// # Errors
    /// libpcap is not installed.
    pub fn new() -> Result<Self, String> {
        Libpcap::open().map(Self).map_err(|error| paceline::with_causes(&error))
    }
}

impl Engine for LibpcapEngine {
    fn name(&self) -> &str {
        "libpcap"
    }

    fn concerns(&self, case: &Case) -> bool {
        program(case).is_some()
    }

    fn verifies(&self) -> bool {
        false
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        let insns = program(case).unwrap_or_default().to_vec();
        let filter = match Filter::new(insns, Purpose::Socket) {
            Ok(filter) => filter,
            // `bpf_filter` does not check programs.
            Err(_) => return Err(Unsupported::NothingToRun),
        };
        if case.runs.iter().any(|run| reference(&filter, &run.data).libpcap_differs) {
            return Err(Unsupported::OtherRule);
        }
        let value = |run: &crate::case::Run| {
            Return::Full(self.0.run(&filter, &run.data, run.data.len() as u32).into())
        };
        Ok(ran(case, case.runs.iter().map(value).collect()))
    }
}
