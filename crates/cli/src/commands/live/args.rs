//! Arguments of `paceline live`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use clap::error::ErrorKind;
use paceline::{Engine, Idle};

use super::sockets::SocketSpec;
use crate::chain::SourceArgs;
use crate::common::args::{engine_names, parse_seconds, usage_error};
use crate::control::MetricsAddress;
use crate::ports::PortSpec;

pub(crate) const EXAMPLES: &str = "\
Examples:
  paceline live firewall.o --port xdp:eth0                          drop what the firewall drops; the rest is counted
  paceline live firewall.o --port xdp:eth0 --pass tap:pl0           and give the rest to the host, by the interface pl0
  paceline live balancer.o --port xdp:eth0@0-1 --workers 2 --pin
  paceline live --chain chain.toml --port packet:eth0 --every 1     SIGHUP reads the chain again
  paceline live xsk.o --port xdp:eth0 --socket xsks_map=tap:app     what the program redirects to sockets goes to app
  paceline live firewall.o --port gen:size=64-1514,flows=1000,count=10M

Kinds of ports:
  xdp:IFACE[@QUEUES][,OPTION...]   AF_XDP: the interface's packets come here instead of to the host
                                   options: native, generic, zero-copy, copy, multi-buffer, metadata, busy-poll=MICROSECONDS
  packet:IFACE                     a packet socket: the host gets the packets, too
  tap:NAME                         a TAP interface, which is created if there is none: the host is on the other side
  memif:SOCKET[,OPTION...]         packets in memory that another process shares, such as VPP or DPDK
                                   options: client, server, id=N, secret=TEXT, queues=N, ring=ENTRIES, buffer=BYTES
  dpdk:DEVARGS                     a device of DPDK's, as its option --vdev takes it: `make -C dpdk` builds what it needs
  pcap:IN[,OUT]                    captures; sent packets are written to OUT
  gen:[KEY=VALUE,...]              generated packets: size=N[-M], flows=N, proto=udp|tcp|udp+tcp, ip=4|6, rate=N, count=N
  loop:                            receives what is sent to it
  null:                            receives nothing, and counts what is sent to it
  rate:N+PORT                      receives from PORT at most N packets per second
  fault:KEY=VALUE,...+PORT         faults of received packets: drop, duplicate, reorder, corrupt, truncate (1%), seed=N

SIGINT and SIGTERM end the run: interfaces are detached, packets that wait are processed, and counts are printed.";

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LiveArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// Port whose packets run through the programs; sent and redirected packets leave by ports. May be given several times.
    #[arg(long = "port", value_name = "KIND:ARGUMENT", required = true)]
    pub(super) ports: Vec<PortSpec>,
    /// Port that passed packets are sent to. Packets that it receives, such as those of the host behind a TAP interface, are sent to
    /// the first `--port`. Without it passed packets are counted and dropped.
    #[arg(long, value_name = "KIND:ARGUMENT", value_parser = passed)]
    pub(super) pass: Option<PortSpec>,
    /// Port that packets are sent to which a program redirects by entries of a socket map (`BPF_MAP_TYPE_XSKMAP`), all of them unless
    /// KEYS, such as 0 or 0-3, are given: it stands for the AF_XDP socket of an application. Packets that it receives are sent to the
    /// first `--port`. May be given several times.
    #[arg(long = "socket", value_name = "MAP[@KEYS]=KIND:ARGUMENT")]
    pub(super) sockets: Vec<SocketSpec>,
    /// End after this many seconds.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub(super) seconds: Option<Duration>,
    /// Threads; the queues of each port are dealt out to them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) workers: u16,
    /// Bind each thread to a CPU.
    #[arg(long)]
    pub(super) pin: bool,
    /// Look for packets without pause, for the least latency; otherwise threads sleep while nothing arrives.
    #[arg(long)]
    pub(super) spin: bool,
    /// Frames of packet memory for each queue of a port.
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(256..=1 << 20))]
    pub(super) frames: u32,
    /// Write all packets that run through the programs to a pcapng capture, with verdict and program in comments, and as they were
    /// before and after.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) capture: Option<PathBuf>,
    /// Print a line for each packet, in the form of `tcpdump -n -S`, with verdict, program and its last branch; counts go to standard error.
    /// Packets run on the plain interpreter then; those that come faster than lines can be written are left out, and counted at the end.
    #[arg(long, conflicts_with = "json")]
    pub(super) print: bool,
    /// Make a control socket there, for `paceline status`, `stop` and `map`; only the user who runs this may use it.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(super) control: Option<PathBuf>,
    /// Serve metrics for Prometheus at /metrics of this port, on the loopback interface unless an address is given.
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub(super) metrics: Option<MetricsAddress>,
    /// Keep capabilities, and allow all system calls, after the ports are open.
    #[arg(long)]
    pub(super) keep_privileges: bool,
    /// Wait for interfaces that are missing, at the start and when one goes away, rather than end with an error. Maps and counts stay;
    /// privileges are kept, because ports are opened again.
    #[arg(long)]
    pub(super) wait: bool,
    /// Print the counts each N seconds.
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub(super) every: Option<Duration>,
    /// Engine that runs the programs; the default is `jit` where it is supported, else `threaded`.
    #[arg(long, value_name = "NAME", value_parser = engine_names())]
    engine: Option<Engine>,
    /// Print the counts as JSON objects, one in a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The port of `--pass`.
fn passed(text: &str) -> Result<PortSpec, String> {
    Ok(text.parse::<PortSpec>()?.of_option("--pass"))
}

impl LiveArgs {
    pub(super) fn engine(&self) -> Engine {
        self.engine.unwrap_or_else(Engine::best)
    }

    pub(super) fn idle(&self) -> Idle {
        if self.spin { Idle::Spin } else { Idle::Sleep }
    }

    /// Refuses what the options cannot do together.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        match self.specs().into_iter().find(|spec| self.wait && spec.is_repeated()) {
            None => Ok(()),
            Some(port) => {
                let text = format!("--wait opens ports again, and `{port}` would start from its beginning");
                Err(usage_error::<Self>("live", ErrorKind::ArgumentConflict, &text))
            }
        }
    }

    /// Whether capabilities and system calls stay after the ports are open.
    pub(super) fn keeps_privileges(&self) -> bool {
        self.keep_privileges || self.wait
    }

    /// All ports, behind those of `--port` those of sockets, with that of passed packets at the end.
    pub(super) fn specs(&self) -> Vec<&PortSpec> {
        let sockets = self.sockets.iter().map(|socket| &socket.port);
        self.ports.iter().chain(sockets).chain(&self.pass).collect()
    }
}
