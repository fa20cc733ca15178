//! DPDK's testpmd, as a program that is asked over pipes.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Name of the driver's statistics of received packets.
const RECEIVED: &str = "RX-packets: ";
/// Part of the name of the thread that forwards.
const THREAD: &str = "worker";

/// A testpmd with one port, which the second CPU serves. It ends with the value.
pub(super) struct Testpmd {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Directory of the forwarding thread in `/proc`.
    task: String,
    /// Packets received when it was asked last.
    received: u64,
}

impl Testpmd {
    /// Receives from the null driver, with a filter, an ELF object; `None` if it is not installed.
    pub(super) fn filtering(filter: &[u8]) -> Result<Option<Self>, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let object = folder.path().join("filter.o");
        fs::write(&object, filter)?;
        let load = format!("bpf-load rx 0 0 J {}", object.display());
        Self::spawn("net_null0,size=64", &[&load, "set fwd rxonly"])
    }

    /// Transmits what an AF_XDP socket on the interface receives; `None` if it is not installed.
    pub(super) fn transmitting(interface: &str) -> Result<Option<Self>, Box<dyn Error>> {
        Self::spawn(&format!("net_af_xdp0,iface={interface}"), &["set fwd io"])
    }

    fn spawn(device: &str, commands: &[&str]) -> Result<Option<Self>, Box<dyn Error>> {
        // Its output is not a terminal, and would come in blocks.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "dpdk-testpmd", "-l", "0,1", "--no-huge", "--no-shconf", "--no-pci"]);
        command.args(["-m", "512", "--no-telemetry", &format!("--vdev={device}")]);
        command.args(["--", "-i", "--total-num-mbufs=8192", "--port-topology=loop"]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = pipes.spawn() else { return Ok(None) };
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { return Ok(None) };
        let mut testpmd =
            Self { child, input, output: BufReader::new(output), task: String::new(), received: 0 };
        for line in commands {
            testpmd.say(line)?;
        }
        // Without the program, or without the driver, the pipe ends.
        if testpmd.packets().is_err() {
            return Ok(None);
        }
        testpmd.task = testpmd.find_task()?;
        Ok(Some(testpmd))
    }

    fn say(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// The rest of the line that has a text.
    fn line_with(&mut self, text: &str) -> Result<String, Box<dyn Error>> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("testpmd ended before it printed {text:?}").into());
            }
            if let Some((_, rest)) = line.split_once(text) {
                return Ok(rest.to_owned());
            }
        }
    }

    /// Packets received since it was asked last.
    fn packets(&mut self) -> Result<u64, Box<dyn Error>> {
        self.say("show port stats 0")?;
        self.line_with("NIC statistics")?;
        let rest = self.line_with(RECEIVED)?;
        let received: u64 = rest.split_whitespace().next().unwrap_or_default().parse()?;
        let new = received - self.received;
        self.received = received;
        Ok(new)
    }

    fn find_task(&self) -> Result<String, Box<dyn Error>> {
        // `stdbuf` becomes testpmd, so that the number stays.
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = task?.path();
            if fs::read_to_string(path.join("comm"))?.contains(THREAD) {
                return Ok(path.display().to_string());
            }
        }
        Err(format!("testpmd has no thread {THREAD}").into())
    }

    /// Processor time of the forwarding thread in nanoseconds.
    fn processor_time(&self) -> Result<f64, Box<dyn Error>> {
        let times = fs::read_to_string(format!("{}/schedstat", self.task))?;
        Ok(times.split_whitespace().next().unwrap_or_default().parse()?)
    }

    /// Forwards for a time; returns the processor time of a packet in nanoseconds.
    pub(super) fn forward(&mut self, time: Duration) -> Result<f64, Box<dyn Error>> {
        let before = self.processor_time()?;
        self.start()?;
        thread::sleep(time);
        self.stop()?;
        let packets = self.packets()?;
        Ok((self.processor_time()? - before) / packets.max(1) as f64)
    }

    /// Begins to forward.
    pub(super) fn start(&mut self) -> Result<(), Box<dyn Error>> {
        self.say("start")
    }

    /// Ends forwarding.
    pub(super) fn stop(&mut self) -> Result<(), Box<dyn Error>> {
        self.say("stop")
    }

    /// Processor time of a packet in nanoseconds, during a time in which it forwards.
    pub(super) fn forwarding(&mut self, time: Duration) -> Result<f64, Box<dyn Error>> {
        self.packets()?;
        let before = self.processor_time()?;
        thread::sleep(time);
        let packets = self.packets()?;
        Ok((self.processor_time()? - before) / packets.max(1) as f64)
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.say("quit");
        thread::sleep(Duration::from_millis(100));
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
