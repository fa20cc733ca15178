//! The program of a scan, loaded for each worker, and its maps made one in the end.

use std::ffi::OsStr;

use paceline::{Collection, Program, ReplayOptions};
use paceline_archive::{Rules, Snapshot, Worker, merge};

use super::args::ScanArgs;
use super::error::ScanError;
use crate::common::failure::Failure;
use crate::common::files::Taken;
use crate::object::{NamedObject, NamedProgramError, Opener, check_action, load, load_options, program_of};
use crate::world::World;

/// The program's object, loaded once for each worker.
pub(super) struct Machines {
    /// The object's name.
    pub(super) name: String,
    /// The program's name.
    pub(super) program: String,
    collections: Vec<Collection>,
    rules: Rules,
    before: Snapshot,
    /// Files that no output may replace.
    pub(super) taken: Vec<Taken>,
}

impl Machines {
    /// Loads the program, and checks that the maps of several workers can become one.
    pub(super) fn load(
        args: &ScanArgs,
        target: &OsStr,
        workers: usize,
    ) -> Result<(Self, Vec<Worker>), Failure> {
        let mut loaded = Vec::new();
        for _ in 0..workers {
            loaded.push(load_one(args, target)?);
        }
        let (mut collections, mut machines, mut names) = (Vec::new(), Vec::new(), None);
        let world = World::new(&args.world)?;
        for Loaded { name, collection, program, file } in loaded {
            names.get_or_insert_with(|| (name, program.spec().name.clone(), file));
            let by_packet = world.runs_packet_by_packet(collection.maps());
            let options = ReplayOptions::default().origin(world.origin()).packet_by_packet(by_packet);
            machines.push(Worker::with_program(Box::new(program), world.host(), options));
            collections.push(collection);
        }
        let (name, program, file) = names.unwrap_or_default();
        let rules = args.rules();
        let mut before = Snapshot::default();
        if let [first, _, ..] = collections.as_slice() {
            rules.check(first.maps(), first.object().btf()).map_err(ScanError::from)?;
            before = Snapshot::of(first.maps(), &rules).map_err(ScanError::from)?;
        }
        let maps = args.object.identities();
        let taken = file.into_iter().chain(maps).chain(args.world.file()).collect();
        Ok((Self { name, program, collections, rules, before, taken }, machines))
    }

    /// The maps of all workers in one collection.
    pub(super) fn merged(&self) -> Result<Option<&Collection>, ScanError> {
        let Some(first) = self.collections.first() else { return Ok(None) };
        if self.collections.len() > 1 {
            let after =
                self.collections.iter().map(|collection| Snapshot::of(collection.maps(), &self.rules));
            let after: Vec<_> = after.collect::<Result<_, _>>()?;
            merge(first.maps(), first.object().btf(), &self.rules, &self.before, &after)?;
        }
        Ok(Some(first))
    }
}

struct Loaded {
    name: String,
    collection: Collection,
    program: Program,
    file: Option<Taken>,
}

fn load_one(args: &ScanArgs, target: &OsStr) -> Result<Loaded, Failure> {
    let opener = Opener::new(&args.object);
    let named = NamedObject::open(target, &opener)?;
    named.programs()?;
    let NamedObject { name, object, program: wanted, file } = named;
    let options = load_options(args.engine(), &args.object, 1);
    let collection = load(&opener, &name, object, Vec::new(), &options, false)?;
    let program = program_of(&collection, wanted.as_deref(), false)
        .map_err(|error| NamedProgramError::new(&name, collection.object(), error))?;
    check_action(&name, &program)?;
    Ok(Loaded { name, collection, program, file })
}
