//! Surroundings of programs: network, time, random numbers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::helper::Helper;
use paceline::isa::{Callee, Insn, decode};
use paceline::network::{Network, NetworkError, SnapshotError};
use paceline::{Host, Program, TimeSource};

use clap::ValueHint;

use crate::common::console;
use crate::common::failure::CommandError;
use crate::common::files::Taken;
use crate::common::suggest::closest;

/// The word for the network of this host; a file of that name is `./host`.
const HOST: &str = "host";

/// Arguments for the network, the ingress interface and random numbers.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct WorldArgs {
    /// The network that programs see, or `host` for this host's: routes, neighbors and interfaces as `ip -j` prints them,
    /// sockets as `ss -tuan`, tracked connections as `conntrack -L`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) network: Option<PathBuf>,
    /// Interface that all packets come in on: its index, or its name in the network.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) ingress: Option<String>,
    /// Receive queue that all packets come in on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) rx_queue: u16,
    /// Seed of random numbers and cookies, so that a run can be repeated.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
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
    #[error("--network {name}: {source}")]
    Network { name: String, source: NetworkProblem },
    #[error("--ingress {name}: there is no such interface{}", if *.has_network { " in the network" } else { "" })]
    Ingress { name: String, has_network: bool, hint: Option<String> },
}

/// The reason why there is no network.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkProblem {
    #[error(transparent)]
    Read(io::Error),
    #[error(transparent)]
    Parse(#[from] NetworkError),
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl CommandError for WorldError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Network { .. } => None,
            Self::Ingress { hint, .. } => hint.clone(),
        }
    }
}

/// A network, and the interface that packets come in on.
pub(crate) struct World {
    network: Option<Arc<Network>>,
    pub(crate) ingress: Option<u32>,
    seed: Option<u64>,
}

impl World {
    pub(crate) fn new(args: &WorldArgs) -> Result<Self, WorldError> {
        let network = args.network.as_deref().map(read).transpose()?.map(Arc::new);
        let ingress = args.ingress.as_deref().map(|name| interface(name, network.as_deref())).transpose()?;
        Ok(Self { network, ingress, seed: args.seed })
    }

    /// A host of this world.
    pub(crate) fn host(&self, time: TimeSource) -> Host {
        let mut host = Host::default();
        if let Some(network) = &self.network {
            host.set_network(network.clone());
        }
        if let Some(seed) = self.seed {
            host.seed(seed);
        }
        host.set_time(time);
        host
    }

    /// Notes the helpers of a program that find nothing without a network.
    pub(crate) fn announce(&self, program: &Program) {
        if self.network.is_some() {
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
    let text = fs::read_to_string(path).map_err(|error| failed(NetworkProblem::Read(error)))?;
    paceline::network::parse(&text).map_err(|error| failed(error.into()))
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
            hint: closest(name, names.map(|interface| interface.name.as_str())),
        }
    })
}
