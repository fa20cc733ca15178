//! The options of a scenario: network, origin of packets, time, random numbers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use paceline::helper::Helper;
use paceline::isa::{Callee, Insn, decode};
use paceline::network::{Network, NetworkError, SnapshotError};
use paceline::scenario::{Origin, Scenario};
use paceline::text_file::{self, TextFileError};
use paceline::{Host, Map, MemberError, Program, SkBuff, SkBuffMember, TimeSource};

use clap::ValueHint;

use crate::common::console;
use crate::common::failure::CommandError;
use crate::common::files::Taken;
use crate::common::suggest::closest;

/// The word for the network of this host; a file of that name is `./host`.
const HOST: &str = "host";

/// The options of a scenario: the same in all commands that run packets.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "What programs see")]
pub(crate) struct WorldArgs {
    /// The network that programs see, or `host` for this host's: routes, neighbors and interfaces as `ip -j` prints them,
    /// sockets as `ss -tuan`, tracked connections as `conntrack -L`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) network: Option<PathBuf>,
    /// Interface that all packets come in on: its index, or its name in the network. Interface 1 if left out, or one more than the number of
    /// the packet's interface in its capture.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) ingress: Option<String>,
    /// Receive queue that all packets come in on: queue 0 if left out, or that of the packet's CPU where there are several.
    #[arg(long, value_name = "N")]
    pub(crate) rx_queue: Option<u16>,
    /// Field of `__sk_buff` that all packets arrive with, for TC classifiers: `mark=5`, `cb[0]=1`; may be given several times.
    #[arg(long = "context", value_name = "FIELD=N", value_parser = Member::parse)]
    pub(crate) context: Vec<Member>,
    /// Source of the time that programs see: the packets, or in `bench` the system, if left out.
    #[arg(long, value_enum)]
    pub(crate) clock: Option<ClockArg>,
    /// Seed of random numbers and cookies, or `random` for others in each run.
    #[arg(long, value_name = "N", default_value_t)]
    pub(crate) seed: Seed,
}

/// Source of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClockArg {
    /// The system's clocks.
    System,
    /// The packets' time stamps, so that a run comes out the same every time.
    Capture,
}

impl ClockArg {
    fn source(self) -> TimeSource {
        match self {
            Self::System => TimeSource::System,
            Self::Capture => TimeSource::Packets,
        }
    }
}

/// A seed; `None` for another one in each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) Option<u64>);

impl Default for Seed {
    fn default() -> Self {
        Self(Some(1))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seed) => write!(f, "{seed}"),
            None => f.write_str("random"),
        }
    }
}

impl FromStr for Seed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "random" => Ok(Self(None)),
            number => number
                .parse()
                .map(|seed| Self(Some(seed)))
                .map_err(|_| "it must be a whole number from 0 to 18446744073709551615, or `random`"),
        }
    }
}

/// A field of `__sk_buff` and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) value: u64,
}

impl Member {
    fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("it must be FIELD=N, such as mark=5")?;
        let parsed = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => value.parse(),
        };
        let value = parsed.map_err(|_| format!("{value:?} is not a number from 0 on"))?;
        // The field and its range are checked here, where the option is at hand.
        SkBuff::default().set(name, value).map_err(|error| member_error(&error))?;
        Ok(Self { name: name.to_owned(), value })
    }
}

/// The error of a field, with those that there are.
pub(crate) fn member_error(error: &MemberError) -> String {
    match error {
        MemberError::Unknown(name) => {
            let names = SkBuffMember::ALL.iter().filter(|member| member.arrives).map(|member| member.name);
            let all = names.clone().collect::<Vec<_>>().join(", ");
            let near = closest(name, names).map_or_else(String::new, |near| format!("; {near}"));
            format!("{error}{near} (available: {all})")
        }
        _ => error.to_string(),
    }
}

impl WorldArgs {
    /// The file of the network, which no output may replace.
    pub(crate) fn file(&self) -> Option<Taken> {
        Taken::of_path(self.network.as_deref()?, "the network")
    }
}

/// Helpers that ask the network, and the result without one.
const ASKING: [(&str, &str); 7] = [
    ("bpf_fib_lookup", "no routes and no interfaces"),
    ("bpf_check_mtu", "no routes and no interfaces"),
    ("bpf_sk_lookup_tcp", "no sockets"),
    ("bpf_sk_lookup_udp", "no sockets"),
    ("bpf_skc_lookup_tcp", "no sockets"),
    ("bpf_xdp_ct_lookup", "no tracked connections"),
    ("bpf_skb_ct_lookup", "no tracked connections"),
];

/// The reason why programs do not get the network that they should see.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorldError {
    #[error("--network {name}")]
    Network { name: String, source: NetworkProblem },
    #[error("--ingress {name}: there is no such interface{}", if *.has_network { " in the network" } else { "" })]
    Ingress { name: String, has_network: bool, hint: Option<String> },
    #[error("--context: {}", member_error(.0))]
    Context(MemberError),
}

/// The reason why there is no network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkProblem {
    #[error(transparent)]
    Read(TextFileError),
    #[error(transparent)]
    Parse(#[from] NetworkError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl CommandError for WorldError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Network { .. } | Self::Context(_) => None,
            Self::Ingress { hint, .. } => hint.clone(),
        }
    }
}

/// The scenario that the arguments describe.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
}

impl World {
    /// The scenario of packets that have times, which programs see unless the arguments say otherwise.
    pub(crate) fn new(args: &WorldArgs) -> Result<Self, WorldError> {
        Self::with_clock(args, ClockArg::Capture)
    }

    /// The same with another clock where the arguments name none.
    pub(crate) fn with_clock(args: &WorldArgs, clock: ClockArg) -> Result<Self, WorldError> {
        let network = args.network.as_deref().map(read).transpose()?.map(Arc::new);
        let ingress = args.ingress.as_deref().map(|name| interface(name, network.as_deref())).transpose()?;
        let mut context = SkBuff::default();
        for Member { name, value } in &args.context {
            context.set(name, *value).map_err(WorldError::Context)?;
        }
        let mut scenario = Scenario::default();
        scenario.network = network;
        scenario.origin = Origin::default().ingress(ingress).queue(args.rx_queue).context(context);
        scenario.time = args.clock.unwrap_or(clock).source();
        scenario.seed = args.seed.0;
        Ok(Self { scenario })
    }

    /// A host of this world.
    pub(crate) fn host(&self) -> Host {
        self.scenario.host(0)
    }

    /// Whether packets must run one by one, because timers fire between them when the packets' times say so.
    pub(crate) fn runs_packet_by_packet(&self, maps: &[Arc<Map>]) -> bool {
        self.scenario.time == TimeSource::Packets && maps.iter().any(|map| map.spec().timer().is_some())
    }

    /// Where packets come from.
    pub(crate) fn origin(&self) -> Origin {
        self.scenario.origin
    }

    /// Notes the helpers of a program that find nothing without a network.
    pub(crate) fn announce(&self, program: &Program) {
        if self.scenario.network.is_some() {
            return;
        }
        let code = decode(&program.spec().insns).ok();
        let called = code.iter().flat_map(|code| code.iter()).find_map(|(_, insn)| {
            let name = match *insn {
                Insn::Call(Callee::Helper(id)) => Helper::from_imm(id)?.name,
                Insn::Call(Callee::Kfunc { btf_id, .. }) => program.spec().kfunc(btf_id)?.name,
                _ => return None,
            };
            ASKING.into_iter().find(|(asking, _)| *asking == name)
        });
        if let Some((name, missing)) = called {
            console::note(format_args!(
                "{name} finds {missing}; give them with --network FILE, or those of this host with --network {HOST}"
            ));
        }
    }
}

fn read(path: &Path) -> Result<Network, WorldError> {
    let failed = |source| WorldError::Network { name: path.display().to_string(), source };
    if path == Path::new(HOST) {
        return paceline::network::of_host().map_err(|error| failed(error.into()));
    }
    let text = text_file::read(path).map_err(|error| failed(NetworkProblem::Read(error)))?;
    paceline::network::parse(&text).map_err(|error| failed(error.into()))
}

/// The first names of some, in a line.
fn listed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = names.clone().take(SHOWN).collect();
    match names.count().saturating_sub(SHOWN) {
        0 if shown.is_empty() => "no interface".to_owned(),
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// An interface by its index, or by its name in a network.
fn interface(name: &str, network: Option<&Network>) -> Result<u32, WorldError> {
    if let Some(interface) = network.and_then(|network| network.interface_named(name)) {
        return Ok(interface.index);
    }
    let known =
        |index: &u32| *index != 0 && network.is_none_or(|network| network.interface(*index).is_some());
    name.parse().ok().filter(known).ok_or_else(|| {
        let names = network.map(Network::interfaces).unwrap_or_default().iter();
        WorldError::Ingress {
            name: name.to_owned(),
            has_network: network.is_some(),
            hint: closest(name, names.clone().map(|interface| interface.name.as_str())).or_else(|| {
                Some(match network {
                    Some(_) => format!("it has {}", listed(names.map(|interface| interface.name.as_str()))),
                    None => "say its index, or give the network that has the name by --network; names in a capture are not \
                             looked up"
                        .to_owned(),
                })
            }),
        }
    })
}
