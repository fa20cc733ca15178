//! Packets that an interface gets back: from an AF_XDP socket whose program returns `TX`, from DPDK's AF_XDP driver in testpmd, and
//! from a program in the kernel that returns `XDP_TX`.
//!
//! Another CPU sends more packets than any of them transmits: the kernel makes them itself, in a test run whose program redirects to
//! the far end of each pair of interfaces.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use paceline::device::{Interface, Umem, XdpDevice, XdpOptions, XdpPort};
use paceline::{Verdict, XdpAttach};
use paceline_testkit::kernel::{Program, Request};
use paceline_testkit::namespace::veth;
use paceline_testkit::text;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::testpmd::Testpmd;
use super::worker::{PAIRS, worker_returning};
use crate::measure::{Timing, thread_time};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// Pairs of interfaces: for the socket, for testpmd, and for programs in the kernel.
const PAIRS_OF_INTERFACES: [(&str, &str); 3] = [("near0", "far0"), ("near1", "far1"), ("near2", "far2")];
/// Packets of a test run, and of one that must be short. Its begin and end take some 20 ms, so that few runs give the most packets.
const MANY: u32 = 1 << 21;
const FEW: u32 = 1 << 12;
/// The time of a round, less than a run takes, and until its packets arrive.
const ROUND: Duration = Duration::from_millis(150);
const BEFORE: Duration = Duration::from_millis(100);
const PACKET: [u8; 64] = [2; 64];

pub(super) fn interfaces() -> String {
    PAIRS_OF_INTERFACES.map(|(near, far)| veth(near, far)).concat()
}

/// The far end of a pair, into which packets are sent.
struct Source(Program);

impl Source {
    fn into(interface: &str) -> Result<Self, Box<dyn Error>> {
        let index = Interface::by_name(interface)?.index();
        Ok(Self(program(&format!("r1 = {index}\nr2 = 0\ncall bpf_redirect\nexit"))?))
    }

    fn send(&self, count: u32) -> Result<(), Box<dyn Error>> {
        Ok(self.0.run_live(&PACKET, count)?)
    }

    /// Sends so many packets on the first CPU while the function runs.
    fn during<T>(
        &self,
        count: u32,
        run: impl FnOnce() -> Result<T, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        thread::scope(|scope| {
            let sender = scope.spawn(|| -> Result<(), String> {
                pin(0)?;
                self.send(count).map_err(|error| error.to_string())
            });
            thread::sleep(BEFORE);
            let done = run();
            sender.join().unwrap_or_else(|_| Err("the sender panicked".to_owned()))?;
            done
        })
    }
}

fn program(text: &str) -> Result<Program, Box<dyn Error>> {
    let spec = text::xdp(text, XdpAttach::Interface, &[])?;
    Ok(Program::load(&Request::xdp(&spec.insns))?)
}

fn pin(cpu: usize) -> Result<(), String> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).map_err(|error| error.to_string())
}

/// Processor time of a packet that goes back, of the thread that transmits it.
pub(super) fn rows(settings: Settings) -> Rows {
    let [(near, far), (theirs, their_far), (kernel, kernel_far)] = PAIRS_OF_INTERFACES;
    // As testpmd, which serves its port on the second CPU.
    if pin(1).is_err() {
        return Ok(Vec::new());
    }
    let device = XdpDevice::open(near, &Umem::new(4096)?, XdpOptions::default())?;
    let port = XdpPort::open(&device, 0)?;
    device.attach()?;
    let mut worker = worker_returning(Verdict::Tx, port)?;
    let source = Source::into(far)?;
    let mut testpmd = Testpmd::transmitting(theirs)?;
    let their_source = Source::into(their_far)?;
    let in_kernel = InKernel::new(kernel, kernel_far)?;
    let (count, time) = if settings.smoke { (FEW, Duration::from_millis(1)) } else { (MANY, ROUND) };
    let (mut ours, mut by_testpmd, mut by_kernel) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..if settings.smoke { 1 } else { PAIRS } {
        ours.push(source.during(count, || {
            let (start, end) = (thread_time(), Instant::now() + time);
            let mut done = 0;
            while Instant::now() < end {
                done += worker.poll()?;
            }
            Ok((thread_time() - start) / done.max(1) as f64)
        })?);
        if let Some(testpmd) = &mut testpmd {
            // The driver of DPDK 22.11 hangs if forwarding starts with a full ring: testpmd starts before the packets and stops after them.
            testpmd.start()?;
            by_testpmd.push(their_source.during(count, || testpmd.forwarding(time))?);
            testpmd.stop()?;
        }
        by_kernel.push(in_kernel.time(count)?);
    }
    let ours = Timing::of(ours);
    let row = |name: &str, against: &str, times: Vec<f64>, bar| {
        let figure = Figure::Time { ours, against: Some(Timing::of(times)) };
        Row::new(name, against, figure).with_bar(bar)
    };
    let mut rows = Vec::new();
    if !by_testpmd.is_empty() {
        let row =
            row("AF_XDP on veth, transmit back", "testpmd, AF_XDP driver", by_testpmd, Some(Bar::Ratio(1.2)));
        rows.push(Row { reach: Some(Bar::Ratio(2.0)), ..row });
    }
    rows.push(row("AF_XDP on veth, transmit back in user space", "XDP_TX in the kernel", by_kernel, None));
    Ok(rows)
}

/// Programs in the kernel: one transmits packets, the other one drops them, so that its time is that of the source alone.
struct InKernel {
    index: u32,
    source: Source,
    transmits: Program,
    drops: Program,
    /// Frames are sent to an interface only if it has a program.
    _far: std::os::fd::OwnedFd,
}

impl InKernel {
    fn new(near: &str, far: &str) -> Result<Self, Box<dyn Error>> {
        let drops = program("r0 = 1\nexit")?;
        let far_index = Interface::by_name(far)?.index();
        Ok(Self {
            index: Interface::by_name(near)?.index(),
            source: Source::into(far)?,
            transmits: program("r0 = 3\nexit")?,
            _far: drops.attach(far_index)?,
            drops,
        })
    }

    /// Time of a transmission in nanoseconds: that of a transmitted packet less that of a dropped one. The kernel runs both programs on the
    /// CPU that sends the packets.
    fn time(&self, count: u32) -> Result<f64, Box<dyn Error>> {
        let mut times = [0.0; 2];
        for (time, program) in times.iter_mut().zip([&self.drops, &self.transmits]) {
            let _link = program.attach(self.index)?;
            let start = Instant::now();
            self.source.send(count)?;
            *time = start.elapsed().as_nanos() as f64 / f64::from(count);
        }
        Ok(times[1] - times[0])
    }
}
