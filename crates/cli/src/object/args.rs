//! Options for objects.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{OsStringValueParser, TypedValueParser};
use paceline::kernel::KernelVersion;
use paceline::{LookAhead, ProgramKind, type_of_section};

use super::error::ObjectError;
use super::set::SetArg;
use crate::common::args::look_ahead_names;
use crate::common::files::Taken;
use crate::maps::{self, MapFile};

/// Values that an object's own loader would set: a kernel's types, sizes of maps, types of programs.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "How objects are loaded")]
pub(crate) struct ObjectArgs {
    /// Set global variables, fill a map from a file, or set its number of entries (`entries:N`) or the template of its inner
    /// maps (`inner:MAP`); may be given several times.
    #[arg(long = "map", value_name = "NAME=FILE.json", value_parser = OsStringValueParser::new().try_map(MapArg::parse))]
    pub(super) map_args: Vec<MapArg>,
    /// Set a global variable, a constant too: VALUE is JSON, or an address or enumerator; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = SetArg::parse)]
    pub(crate) set: Vec<SetArg>,
    /// Maximum memory that one map may declare, in bytes, or with `K`, `M`, `G`.
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_size)]
    pub(crate) map_memory: u64,
    /// Whether bursts of native code run in stages, which computes the keys of the first look-ups ahead: `auto` if the elements of a map
    /// take 8 MiB or more.
    #[arg(long, value_name = "WHEN", default_value_t, value_parser = look_ahead_names())]
    pub(crate) look_ahead: LookAhead,
    /// Instructions a program may run for one packet, on engines that count them.
    #[arg(long, value_name = "N", default_value_t = paceline::DEFAULT_BUDGET)]
    pub(crate) budget: u64,
    /// Restore the maps that `run --save-maps` saved; applied before --map.
    #[arg(long, value_name = "FILE.json", value_hint = ValueHint::FilePath)]
    pub(crate) restore_maps: Option<PathBuf>,
    /// Type of programs whose section name has no type, or of the named program: a section's name, such as `xdp`,
    /// `xdp.frags` or `xdp/devmap`.
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    pub(super) program_type: Option<ProgramKind>,
    /// Types of the kernel that objects are adapted to (CO-RE): BTF, or an ELF file with it, or `none`. Those of the running
    /// kernel if left out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) btf: Option<PathBuf>,
    /// Version of Linux that programs see in LINUX_KERNEL_VERSION: that of the running kernel if left out.
    #[arg(long, value_name = "VERSION")]
    pub(super) kernel_version: Option<KernelVersion>,
    /// Configuration of the kernel that programs see in CONFIG_ variables, as `.config` or `/proc/config.gz` has it: that of the
    /// running kernel if left out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) kconfig: Option<PathBuf>,
}

impl ObjectArgs {
    /// Refuses saved maps, for a command that makes no maps.
    pub(crate) fn without_maps(&self) -> Result<(), ObjectError> {
        match &self.restore_maps {
            Some(path) => Err(ObjectError::NoMaps(path.display().to_string())),
            None => Ok(()),
        }
    }

    /// The files that maps come from, which no output may replace.
    pub(crate) fn identities(&self) -> Vec<Taken> {
        maps::identities(&self.files()).chain(self.restored()).collect()
    }

    /// The file that maps are restored from.
    pub(crate) fn restored(&self) -> Option<Taken> {
        let path = self.restore_maps.as_ref()?;
        Taken::of_path(path, &format!("--restore-maps {}", path.display()))
    }

    /// The files that maps are filled from.
    pub(crate) fn files(&self) -> Vec<MapFile> {
        let file = |map: &MapArg| match &map.value {
            MapValue::File(path) => Some(MapFile { map: map.name.clone(), path: path.clone() }),
            MapValue::Entries(_) | MapValue::Inner(_) => None,
        };
        self.map_args.iter().filter_map(file).collect()
    }

    /// The first option that only an object takes.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--map", !self.map_args.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--restore-maps", self.restore_maps.is_some()),
            ("--type", self.program_type.is_some()),
            ("--btf", self.btf.is_some()),
            ("--kernel-version", self.kernel_version.is_some()),
            ("--kconfig", self.kconfig.is_some()),
        ];
        options.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Whether variables are set one by one.
    pub(crate) fn sets_variables(&self) -> bool {
        !self.set.is_empty()
    }

    /// The first map that is given another shape.
    pub(crate) fn shaped(&self) -> Option<&str> {
        let is_shape = |map: &&MapArg| !matches!(map.value, MapValue::File(_));
        self.map_args.iter().find(is_shape).map(|map| map.name.as_str())
    }
}

/// A number of bytes: `4096`, `64K`, `16M`, `4G`.
fn parse_size(text: &str) -> Result<u64, &'static str> {
    const FORM: &str = "it must be a number of bytes, which may end in K, M or G";
    let units = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30)];
    let found = units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit): (&str, u64) = found.unwrap_or((text, 1));
    let number: u64 = number.parse().map_err(|_| FORM)?;
    number.checked_mul(unit).ok_or("that is more than 64 bits can say")
}

fn parse_type(text: &str) -> Result<ProgramKind, &'static str> {
    type_of_section(text).ok_or("it must be xdp, xdp.frags, each also with /devmap or /cpumap, tc, or socket")
}

/// `NAME=FILE.json`, `NAME=entries:N` or `NAME=inner:MAP`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapArg {
    pub(super) name: String,
    pub(super) value: MapValue,
}

/// A setting of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MapValue {
    /// Its elements, or variables.
    File(PathBuf),
    /// Maximum number of elements.
    Entries(u32),
    /// The map of the object that its inner maps are like.
    Inner(String),
}

impl fmt::Display for MapValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Entries(entries) => write!(f, "entries:{entries}"),
            Self::Inner(map) => write!(f, "inner:{map}"),
        }
    }
}

impl MapArg {
    fn parse(arg: OsString) -> Result<Self, &'static str> {
        let bytes = arg.as_bytes();
        let at = bytes.iter().position(|&b| b == b'=').ok_or("it must be NAME=FILE")?;
        let (name, value) = (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default());
        let name = std::str::from_utf8(name).map_err(|_| "the map's name is not UTF-8")?.to_owned();
        match (name.is_empty(), value.is_empty()) {
            (true, _) => return Err("the map's name is missing"),
            (_, true) => return Err("the file is missing"),
            _ => {}
        }
        let text = std::str::from_utf8(value).unwrap_or_default();
        let value = match (text.strip_prefix("entries:"), text.strip_prefix("inner:")) {
            (Some(number), _) => MapValue::Entries(number.parse().map_err(|_| "it must be entries:N")?),
            (_, Some(map)) => MapValue::Inner(map.to_owned()),
            _ => MapValue::File(PathBuf::from(OsStr::from_bytes(value))),
        };
        Ok(Self { name, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_given_a_file_a_number_of_entries_or_a_form() {
        let parse =
            |text: &[u8]| MapArg::parse(OsStr::from_bytes(text).to_owned()).map(|arg| (arg.name, arg.value));
        let path = PathBuf::from(OsStr::from_bytes(b"x=\xff.json"));
        assert_eq!(parse(b".rodata=x=\xff.json"), Ok((".rodata".into(), MapValue::File(path))));
        assert_eq!(parse(b"m=entries:64"), Ok(("m".into(), MapValue::Entries(64))));
        assert_eq!(parse(b"m=inner:n"), Ok(("m".into(), MapValue::Inner("n".into()))));
        assert_eq!(parse(b"m=./entries:64"), Ok(("m".into(), MapValue::File("./entries:64".into()))));
        for wrong in [&b"rules"[..], b"=x", b"rules=", b"\xff=x", b"m=entries:", b"m=entries:-1"] {
            parse(wrong).unwrap_err();
        }
    }

    #[test]
    fn a_size_may_have_a_unit() {
        assert_eq!(
            ["0", "17", "3K", "64M", "4G"].map(parse_size),
            [0, 17, 3 << 10, 64 << 20, 4 << 30].map(Ok)
        );
        for wrong in ["", "K", "-1", "1T", "1.5G", "4 G", "99999999999G"] {
            parse_size(wrong).unwrap_err();
        }
    }
}
