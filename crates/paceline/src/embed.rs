//! What an embedder asks for most, in one call each.

use std::sync::{Arc, PoisonError};

use paceline_engine::{Fault, Host, Outcome, RanAs};
use paceline_frame::FrameMeta;
use paceline_maps::{
    BtfType, FieldMismatch, Map, MapValue, OwnedRingReader, Plain, RingError, Shape, TypeError, TypedMap,
    check_shape,
};
use paceline_spec::MapSpec;

use crate::load::{Collection, ProgramError, VerifiedProgram};
use crate::scenario::{Scenario, Session, SessionError};

/// A map of a name has no access by Rust types, or no reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// The collection has no map of this name.
    #[error("no map {map} (available: {})", .names.join(", "))]
    NoMap {
        /// The name.
        map: String,
        /// The names of its maps.
        names: Vec<String>,
    },
    /// The types do not fit the map's keys and values.
    #[error("map {map}")]
    Type {
        /// Name of the map.
        map: String,
        /// What differs.
        source: TypeError,
    },
    /// A key or value has other fields in the object.
    #[error("map {map}, {part}")]
    Field {
        /// Name of the map.
        map: String,
        /// `key` or `value`.
        part: &'static str,
        /// The field that differs.
        source: FieldMismatch,
    },
    /// There is no reader of its records.
    #[error(transparent)]
    Ring(#[from] RingError),
}

impl Collection {
    /// A host for a thread that runs programs of this collection. It has a CPU of its own in all per-CPU maps from here on.
    ///
    /// ```
    /// # use paceline::{LoadOptions, Object};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    /// let collection = Object::open(path)?.load(&LoadOptions::default().cpus(2))?;
    /// let (first, second) = (collection.host()?, collection.host()?);
    /// assert_ne!(first.cpu(), second.cpu());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FaultKind::NoFreeCpu`](paceline_engine::FaultKind::NoFreeCpu) if other hosts have all CPUs that the maps have values for
    /// ([`LoadOptions::cpus`](crate::LoadOptions::cpus)).
    pub fn host(&self) -> Result<Host, Box<Fault>> {
        let mut host = Host::default();
        host.take_cpu(self.maps())?;
        Ok(host)
    }

    /// The map of a name, with keys and values of Rust types whose fields are compared with those of the object's BTF: integers,
    /// arrays, and structures that [`btf_type!`](crate::btf_type) has described. Where the object has no types for the map, sizes are compared
    /// alone, as [`Map::typed`] does with types that have no description.
    ///
    /// ```
    /// # use paceline::{LoadOptions, Object, PerCpu};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    /// let collection = Object::open(path)?.load(&LoadOptions::default())?;
    /// let error = collection.typed_map::<u32, u64>("by_etherytpe").unwrap_err();
    /// assert!(error.to_string().starts_with("no map by_etherytpe (available: by_ethertype"));
    ///
    /// #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
    /// #[repr(C)]
    /// struct Traffic {
    ///     bytes: u64, // the object has the packets first
    ///     packets: u64,
    /// }
    /// paceline::btf_type!(Traffic { bytes: u64, packets: u64 });
    /// let error = collection.typed_map::<u16, Traffic>("by_ethertype").unwrap_err();
    /// assert_eq!(
    ///     paceline::with_causes(&error),
    ///     "map by_ethertype, value: .bytes: the object has it at offset 8, the Rust type has it at offset 0"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MapError`].
    pub fn typed_map<K, V>(&self, name: &str) -> Result<TypedMap<K, V>, MapError>
    where
        K: Plain + BtfType,
        V: MapValue<One: BtfType>,
    {
        let map = self.named_map(name)?;
        let typed = map.typed().map_err(|source| MapError::Type { map: name.to_owned(), source })?;
        self.check_fields(name, "key", &K::SHAPE, |spec| spec.key_type)?;
        self.check_fields(name, "value", &<V::One>::SHAPE, |spec| spec.value_type)?;
        Ok(typed)
    }

    /// Compares a type with the object's own for the map, whoever made the map. Types of another size than the map's are not compared:
    /// that of a prefix's key ends before the address.
    fn check_fields(
        &self,
        name: &str,
        part: &'static str,
        shape: &Shape,
        id: impl Fn(&MapSpec) -> u32,
    ) -> Result<(), MapError> {
        let id = self.object().map(name).map_or(0, id);
        let Some(btf) = self.object().btf().filter(|_| id != 0) else { return Ok(()) };
        if btf.size_of(id) != Ok(shape.size() as u64) {
            return Ok(());
        }
        check_shape(shape, btf, id).map_err(|source| MapError::Field { map: name.to_owned(), part, source })
    }

    /// A reader of the records of a ring buffer, which keeps the map and which poll(2) waits for.
    ///
    /// ```
    /// use paceline::{LoadOptions, MapKind, MapSpec, Object};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    /// # let mut object = Object::open(path)?;
    /// # object.specs_mut().maps.push(MapSpec::new("events", MapKind::RingBuf, 0, 0, 4096));
    /// let collection = object.load(&LoadOptions::default())?;
    /// let events = collection.ring_reader("events")?; // a descriptor by `AsFd`
    /// let count = events.consume(|record| println!("{record:?}"));
    /// # assert_eq!(count, 0);
    /// # assert!(collection.ring_reader("by_ethertype").is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MapError::NoMap`] and [`MapError::Ring`].
    pub fn ring_reader(&self, name: &str) -> Result<OwnedRingReader, MapError> {
        Ok(self.named_map(name)?.ring_reader()?)
    }

    fn named_map(&self, name: &str) -> Result<&Arc<Map>, MapError> {
        self.map(name).ok_or_else(|| MapError::NoMap {
            map: name.to_owned(),
            names: self.maps().iter().map(|map| map.spec().name.clone()).collect(),
        })
    }

    /// As [`program`](Self::program), but each program is verified and compiled once: later calls return the same, and those
    /// of other threads meanwhile wait for it. No cache on disk keeps it
    /// for other processes: native code that is read from a file is code that nobody has verified.
    ///
    /// # Errors
    /// As for [`program`](Self::program).
    pub fn prepare(&self, name: Option<&str>) -> Result<Arc<VerifiedProgram>, ProgramError> {
        let name = &self.program_spec(name)?.name;
        let prepared = self.prepared(name);
        let mut prepared = prepared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*prepared {
            return Ok(Arc::clone(known));
        }
        let program = Arc::new(self.program(Some(name))?);
        Ok(Arc::clone(prepared.insert(program)))
    }
}

impl VerifiedProgram {
    /// Runs the program over one packet on a host of its own, and returns what became of it: verdict, bytes, redirect, context.
    ///
    /// ```
    /// # use paceline::{LoadOptions, Object, Verdict};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    /// let program = Object::open(path)?.load(&LoadOptions::default())?.program(None)?;
    /// assert_eq!(program.test(&[0; 60])?.verdict, Verdict::Pass);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SessionError`].
    pub fn test(&self, bytes: &[u8]) -> Result<Outcome, SessionError> {
        let scenario = Scenario::default();
        let ran = RanAs::Program(self.spec().kind.rules().meaning);
        let mut session = Session::new(&scenario, ran, self.program().maps());
        let packet = scenario.origin.arrival(bytes, FrameMeta::default());
        session.run(&packet, |burst, host| self.program().run_burst(burst, host))
    }

    /// Runs the program over one packet, and says why it did what it did. Maps and host are afterwards as after one run.
    ///
    /// # Errors
    /// The packet does not enter.
    #[cfg(feature = "analysis")]
    pub fn explain(
        &self,
        bytes: &[u8],
        host: &mut Host,
    ) -> Result<crate::explain::Explanation, paceline_engine::ArrivalError> {
        let mut explainer = crate::explain::Explainer::new(self.program().clone(), self.btf());
        explainer.explain(&Scenario::default().origin.arrival(bytes, FrameMeta::default()), host)
    }
}

#[cfg(feature = "report")]
impl crate::load::VerifierError {
    /// The refusal as the command prints it: the guilty source line, the values there, the way to it, and a fix.
    #[must_use]
    pub fn report(&self, object: &crate::load::Object) -> String {
        use crate::diagnosis::{Diagnosis, render};

        render(&Diagnosis::new(&self.program.name, object, self), false)
    }
}
