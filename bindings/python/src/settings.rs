//! Environment of a run besides packets and maps.

use std::sync::Arc;

use paceline::network::{Network, NetworkBuilder};
use paceline::scenario::Origin;
use paceline::{FrameMeta, SkBuff, TimeSource};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use crate::network::PyNetwork;
use crate::worker::Worker;

/// The surroundings of a run, and where its packets come from.
#[derive(Clone, Default)]
pub(crate) struct Settings {
    pub(crate) origin: Origin,
    /// Nanoseconds since the epoch; `None` for the system's clocks.
    pub(crate) time: Option<u64>,
    seed: Option<u64>,
    network: Option<Arc<Network>>,
}

impl Settings {
    pub(crate) fn new(
        ingress: Option<&Bound<'_, PyAny>>,
        queue: u16,
        context: Option<&Bound<'_, PyDict>>,
        time: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        network: Option<&Bound<'_, PyNetwork>>,
    ) -> PyResult<Self> {
        let network = network.map(|network| Arc::clone(&network.get().network));
        let ingress = ingress.map(|ingress| interface(ingress, network.as_deref())).transpose()?;
        let context = context.map_or_else(|| Ok(SkBuff::default()), sk_buff)?;
        let origin = Origin::default().ingress(ingress).queue(queue).context(context);
        Ok(Self { origin, time: time.map(nanoseconds).transpose()?, seed, network })
    }

    /// Sets a worker up.
    pub(crate) fn apply(&self, worker: &mut Worker) {
        self.apply_again(worker);
        if let Some(seed) = self.seed {
            worker.host.seed(seed);
        }
    }

    /// Sets a worker up to go on: random numbers do not begin anew.
    pub(crate) fn apply_again(&self, worker: &mut Worker) {
        let Worker { host, is_network_set, .. } = worker;
        if let Some(network) = &self.network {
            host.set_network(Arc::clone(network));
            *is_network_set = true;
        } else if std::mem::take(is_network_set) {
            host.set_network(Arc::new(NetworkBuilder::default().build()));
        }
        host.set_arriving(self.origin.context);
        host.set_time(if self.time.is_some() { TimeSource::Packets } else { TimeSource::System });
    }

    /// The metadata of a packet.
    pub(crate) fn meta(&self, len: usize) -> FrameMeta {
        FrameMeta { timestamp_ns: self.time.unwrap_or(0), original_len: len as u32, interface: 0 }
    }
}

/// The members of an `sk_buff` that packets arrive with, by their names; `cb` may be a sequence of its words.
fn sk_buff(context: &Bound<'_, PyDict>) -> PyResult<SkBuff> {
    let mut skb = SkBuff::default();
    for (name, value) in context {
        let name: String = name.extract()?;
        let words = match (name.as_str(), value.extract::<Vec<u64>>()) {
            ("cb", Ok(words)) => {
                (0..).zip(words).map(|(at, word): (usize, u64)| (format!("cb[{at}]"), word)).collect()
            }
            _ => vec![(name, value.extract()?)],
        };
        for (name, value) in words {
            let set = skb.set(&name, value);
            set.map_err(|error| PyValueError::new_err(format!("context: {error}")))?;
        }
    }
    Ok(skb)
}

/// An interface by its index, or by its name in the network.
fn interface(interface: &Bound<'_, PyAny>, network: Option<&Network>) -> PyResult<u32> {
    let Ok(name) = interface.cast::<PyString>() else { return interface.extract() };
    let name = name.to_cow()?;
    let found = network.and_then(|network| network.interface_named(&name));
    found.map(|interface| interface.index).ok_or_else(|| {
        let there = if network.is_some() {
            "no interface of that name in the network"
        } else {
            "a name needs a network"
        };
        PyValueError::new_err(format!("ingress {name}: {there}"))
    })
}

/// Nanoseconds since the epoch, from an int of them or a datetime.
fn nanoseconds(time: &Bound<'_, PyAny>) -> PyResult<u64> {
    if time.is_instance_of::<PyInt>() {
        return time.extract();
    }
    let Some(timestamp) = time.getattr_opt("timestamp")? else { return time.extract() };
    let seconds: f64 = timestamp.call0()?.extract()?;
    let micros = (seconds * 1e6).round();
    if !(0.0..1e16).contains(&micros) {
        return Err(PyValueError::new_err("time is not before 1970"));
    }
    Ok(micros as u64 * 1000)
}
