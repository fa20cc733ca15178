//! Cases through the public library, as a user would run them.

use std::sync::Arc;

use paceline::{
    Burst, Collection, FrameMeta, Host, InitialValue, LoadOptions, Map, Object, RedirectTarget, TimeSource,
    Verdict, VerifiedProgram,
};
use serde_json::{Value as Json, json};

use crate::case::{Case, Change, Run};
use crate::hex::hex;

/// The time of the first run in nanoseconds: an hour, which 32 bits of the kernel's ticks hold.
pub(super) const TIME: u64 = 3_600_000_000_000;

/// Seed of each run.
const SEED: u64 = 1;

/// A case that is loaded.
pub(super) struct Library {
    collection: Collection,
    program: VerifiedProgram,
    host: Host,
    time: u64,
}

impl Library {
    /// Loads the programs of a case; the error is the library's.
    pub(super) fn load(case: &Case) -> Result<Self, String> {
        let first = case.programs.first().ok_or("no program")?;
        let mut object = Object::of_program(first.clone());
        let specs = object.specs_mut();
        specs.programs.clone_from(&case.programs);
        specs.maps.clone_from(&case.maps);
        specs.btf = Some(Arc::new(case.btf.clone()));
        // Every one, as the verifier's cases want it.
        for spec in object.programs() {
            object.verify(spec).map_err(|refused| refused.refusal.cause.to_string())?;
        }
        let collection =
            object.load(&LoadOptions::default()).map_err(|error| paceline::with_causes(&error))?;
        let program = collection.program(Some(&first.name)).map_err(|error| paceline::with_causes(&error))?;
        let mut host = Host::default();
        if let Some(network) = &case.network {
            host.set_network(Arc::clone(&network.network));
        }
        host.set_time(TimeSource::Packets);
        Ok(Self { collection, program, host, time: TIME })
    }

    /// Makes the changes before a run, and runs its packet.
    pub(super) fn run(&mut self, run: &Run) -> Json {
        if let Some(error) = run.changes.iter().find_map(|change| self.change(change).err()) {
            return json!({ "refused": error });
        }
        self.time += run.wait_ms * 1_000_000;
        let mut burst = Burst::new(1);
        let meta = FrameMeta { timestamp_ns: self.time, original_len: run.data.len() as u32, interface: 0 };
        if burst.push(&run.data, meta).is_err() {
            return json!({ "refused": "too long" });
        }
        let queue = run.context.rx_queue_index as u16;
        let mut frame = burst.frame_mut(0);
        frame.set_ingress(run.context.ingress_ifindex, queue);
        if frame.set_metadata(&run.meta).is_err() {
            return json!({ "refused": "metadata" });
        }
        self.host.seed(SEED);
        self.host.arrive(&burst);
        let fired = self.host.fire_timers();
        if let Err(fault) = fired.and_then(|_| self.program.run(&mut burst.frame_mut(0), &mut self.host)) {
            return json!({ "fault": fault.to_string() });
        }
        let frame = burst.frame(0);
        let redirect = frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect);
        let redirect = redirect.map(|redirect| match redirect.target {
            RedirectTarget::Interface { ifindex } => format!("interface {ifindex}"),
            RedirectTarget::Map { map, key } => format!("{} {key}", self.map_name(map)),
        });
        json!({
            "code": frame.code(),
            "verdict": frame.verdict().name(),
            "data": hex(frame.packet()),
            "metadata": hex(frame.metadata()),
            "redirect": redirect,
        })
    }

    fn map_name(&self, id: u32) -> &str {
        let map = self.collection.maps().iter().find(|map| map.id() == id);
        map.map_or("another map", |map| map.spec().name.as_str())
    }

    fn change(&self, change: &Change) -> Result<(), String> {
        let Some(map) = self.collection.maps().get(change.map) else { return Err("no map".to_owned()) };
        match &change.value {
            None => map.delete(&change.key).map_err(|errno| errno.to_string()),
            Some(InitialValue::Bytes(bytes)) => {
                let mut value = bytes.clone();
                value.resize(map.user_value_size(), 0);
                map.insert(&change.key, &value).map_err(|errno| errno.to_string())
            }
            Some(InitialValue::Map(index)) => {
                let inner = self.collection.maps().get(*index).ok_or("no map")?;
                map.insert(&change.key, &inner.id().to_ne_bytes()).map_err(|errno| errno.to_string())
            }
            Some(InitialValue::Program(name)) => {
                let index = change.key.as_slice().try_into().map(u32::from_ne_bytes);
                let index = index.map_err(|_| "the key is no index")?;
                let program =
                    self.collection.program(Some(name)).map_err(|error| paceline::with_causes(&error))?;
                let installed = self.collection.install(&map.spec().name, index, program.program());
                installed.map_err(|error| paceline::with_causes(&error))
            }
        }
    }

    /// The elements of the maps whose elements are bytes, by name.
    pub(super) fn contents(&self) -> Json {
        let elements = |map: &Arc<Map>| -> Option<(String, Json)> {
            let spec = map.spec();
            let is_listed = !spec.kind.holds_programs() && spec.inner.is_none() && spec.key_size > 0;
            let keys = map.keys().ok().filter(|_| is_listed)?;
            let element = |key: Vec<u8>| Some(json!([hex(&key), hex(&map.lookup(&key).ok()?)]));
            Some((spec.name.clone(), keys.filter_map(element).collect()))
        };
        Json::Object(self.collection.maps().iter().filter_map(elements).collect())
    }
}
