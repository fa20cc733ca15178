//! Look-ups ahead of bursts: when, and the slice of a program for it.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use paceline_interpreter::image::Image;
use paceline_isa::Code;
use paceline_maps::Map;
use paceline_slice::{LookUps, is_quiet, slice};
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::{MapFact, Options, Verified, verify};

/// Whether bursts run in stages: first the keys of the program's first look-ups are computed for all packets, and their elements brought
/// into the cache, then the program runs. Results are the same. Native code only; other engines run packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LookAhead {
    /// If the maps are larger than the processor's own caches, for bursts of 8 packets or more.
    #[default]
    Auto,
    /// Always, if the program has look-ups whose keys can be computed ahead.
    Always,
    /// Never.
    Never,
}

/// There is no setting of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no setting {0}; there is: auto, always, never")]
pub struct NoSuchLookAhead(pub String);

impl LookAhead {
    /// All settings.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Always, Self::Never];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for LookAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LookAhead {
    type Err = NoSuchLookAhead;

    fn from_str(name: &str) -> Result<Self, NoSuchLookAhead> {
        let found = Self::ALL.into_iter().find(|setting| setting.name() == name);
        found.ok_or_else(|| NoSuchLookAhead(name.to_owned()))
    }
}

/// Size of a processor's second-level cache in bytes, which no other processor uses: what Linux says of the first one, 1 MiB if it does not.
pub(crate) fn cache_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let size = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok();
        let kib = size.as_deref().and_then(|size| size.trim().strip_suffix('K')?.parse::<u64>().ok());
        kib.map_or(1 << 20, |kib| kib << 10)
    })
}

/// A slice, verified, and the maps in which it looks keys up.
pub(crate) struct Slice {
    pub(crate) verified: Verified,
    pub(crate) maps: Box<[Arc<Map>]>,
}

impl Slice {
    /// The slice of a program, for maps that may be large, or for all of them.
    pub(crate) fn of(spec: &ProgramSpec, code: &Code, maps: &[Arc<Map>], look_ahead: LookAhead) -> Option<Self> {
        let least = match look_ahead {
            LookAhead::Auto => cache_bytes(),
            LookAhead::Always => 0,
            LookAhead::Never => return None,
        };
        let look_ups: Vec<LookUps> = maps.iter().map(|map| look_ups(map, least)).collect();
        let sliced = slice(code, spec.kind, &look_ups).filter(is_quiet)?;
        let mut program = ProgramSpec::new(&format!("{}.ahead", spec.name), spec.kind, sliced.encode().ok()?);
        program.license.clone_from(&spec.license);
        // Contents are not in the specification of a map, so that none is taken for constants.
        let specs: Vec<MapSpec> =
            maps.iter().map(|map| MapSpec { frozen: false, ..map.spec().clone() }).collect();
        let verified = verify(&program, &specs, None, &options()).ok()?;
        let used = verified.facts().iter().filter_map(|fact| match fact.map {
            Some(MapFact::Always(map)) if !map.inner => Some(map.index as usize),
            _ => None,
        });
        let mut used: Vec<usize> = used.collect();
        used.sort_unstable();
        used.dedup();
        let maps = used.iter().filter_map(|&index| maps.get(index).cloned()).collect();
        Some(Self { verified, maps })
    }
}

/// A slice has a thousand instructions at most; one that needs more than so many steps is not worth it.
fn options() -> Options {
    Options::default().max_instructions(50_000).max_work(5_000_000)
}

fn look_ups(map: &Map, least: u64) -> LookUps {
    let is_one_value = map.spec().kind.is_array() && map.spec().max_entries == 1;
    let may_be_large = map.declared_bytes() as u64 >= least;
    if may_be_large && !is_one_value && map.for_programs().ahead_function().is_some() {
        LookUps::Ahead { key_size: map.spec().key_size }
    } else {
        LookUps::Unknown
    }
}

/// The image of a program that runs in stages.
pub(crate) fn staged(image: &Image, look_ahead: LookAhead) -> Image {
    let burst_entry = image.staged.as_ref().map_or(image.burst_entry, |staged| staged.burst_entry);
    let plain = Image { staged: None, burst_entry, ..image.clone() };
    #[cfg(feature = "jit")]
    if let Some(staged) = crate::native::staged(&plain, look_ahead) {
        let burst_entry = paceline_interpreter::staged::staged_entry;
        return Image { staged: Some(Arc::new(staged)), burst_entry, ..plain };
    }
    let _ = look_ahead;
    plain
}
