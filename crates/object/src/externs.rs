//! External symbols that a kernel would define: its configuration (`__kconfig`), variables and functions (`__ksym`).

use std::collections::{HashMap, HashSet};

use paceline_btf::{Btf, IntEncoding, Type, TypeId};
use paceline_spec::{InitialValue, KfuncRef, MapFlags, MapKind, MapSpec};

use super::error::LoadError;
use crate::elf_file::{ElfFile, Place, Symbol, SymbolKind};
use crate::kernel::{ConfigValue, KernelVersion};
use crate::maps;
use crate::options::ObjectOptions;

/// Resolution of an external symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Extern {
    /// A variable in the kernel configuration map, at this offset in bytes.
    Config(u32),
    /// A kernel function.
    Kfunc(KfuncRef),
    /// A weak variable or function without a definition: null.
    Null,
    /// A strong one without a definition, with a hint how to define it.
    Missing(&'static str),
}

/// The external symbols, by name.
#[derive(Debug, Default)]
pub(crate) struct Externs<'a> {
    by_name: HashMap<&'a str, Extern>,
}

impl<'a> Externs<'a> {
    /// Resolves all undefined symbols. The second result is the kernel configuration map, if the object uses configuration.
    pub(crate) fn collect(
        elf: &ElfFile<'a>,
        btf: Option<&Btf>,
        options: &ObjectOptions<'_>,
    ) -> Result<(Self, Option<MapSpec>), LoadError> {
        let config_types = btf.map(|btf| section_types(btf, ".kconfig")).unwrap_or_default();
        let ksym_types = btf.map(|btf| section_types(btf, ".ksyms")).unwrap_or_default();
        let mut externs = Self::default();
        let mut config = Vec::new();
        let undefined = |s: &&Symbol<'_>| {
            s.place == Place::Undefined && !s.local && !s.name.is_empty() && s.kind != SymbolKind::Section
        };
        let mut seen = HashSet::new();
        for symbol in elf.symbols.iter().filter(undefined).filter(|s| seen.insert(s.name)) {
            let known = match (btf, config_types.get(symbol.name), ksym_types.get(symbol.name)) {
                (Some(btf), Some(ty), _) => {
                    config.push(ConfigVar::new(btf, symbol, *ty, options)?);
                    continue;
                }
                (Some(btf), None, Some(ty)) => ksym(btf, symbol, *ty),
                _ if symbol.weak => Extern::Null,
                _ => Extern::Missing("; link the object that defines it with `bpftool gen object`"),
            };
            externs.by_name.insert(symbol.name, known);
        }
        let map = externs.lay_out_config(config, btf);
        Ok((externs, map))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Extern> {
        self.by_name.get(name)
    }

    /// Lays out the configuration variables by decreasing alignment, as libbpf does.
    fn lay_out_config(&mut self, mut config: Vec<ConfigVar<'a>>, btf: Option<&Btf>) -> Option<MapSpec> {
        if config.is_empty() {
            return None;
        }
        config.sort_by_key(|v| (std::cmp::Reverse(v.align), v.bytes.len(), v.name));
        let mut contents = Vec::new();
        for var in config {
            contents.resize(contents.len().next_multiple_of(var.align), 0);
            let offset = u32::try_from(contents.len()).unwrap_or(u32::MAX);
            contents.extend_from_slice(&var.bytes);
            self.by_name.insert(var.name, Extern::Config(offset));
        }
        Some(MapSpec {
            key_size: 4,
            value_size: u32::try_from(contents.len()).unwrap_or(u32::MAX),
            max_entries: 1,
            flags: MapFlags::RDONLY_PROG,
            value_type: btf.and_then(|btf| btf.data_section(".kconfig")).map_or(0, |(id, _)| id),
            contents: vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(contents))],
            frozen: true,
            ..maps::blank(".kconfig", MapKind::Array)
        })
    }

    /// Offset of a variable in the kernel configuration map.
    pub(crate) fn config_offset(&self, name: &str) -> Option<u32> {
        match self.get(name)? {
            Extern::Config(offset) => Some(*offset),
            _ => None,
        }
    }
}

/// Names of the configuration variables that an object uses, without duplicates.
pub(crate) fn needed_config(elf: &ElfFile<'_>, btf: Option<&Btf>) -> Vec<String> {
    let types = btf.map(|btf| section_types(btf, ".kconfig")).unwrap_or_default();
    let undefined = elf.symbols.iter().filter(|s| s.place == Place::Undefined && !s.local);
    let mut names: Vec<_> = undefined.map(|s| s.name).filter(|name| types.contains_key(name)).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// Variables and functions of a section in the types, by name.
fn section_types<'a>(btf: &'a Btf, section: &str) -> HashMap<&'a str, TypeId> {
    let vars = btf.data_section(section).map(|(_, s)| &s.vars[..]).unwrap_or_default();
    vars.iter().map(|var| (btf.type_name(var.ty), var.ty)).collect()
}

fn ksym(btf: &Btf, symbol: &Symbol<'_>, ty: TypeId) -> Extern {
    match btf.get(ty) {
        Some(Type::Func { .. }) => Extern::Kfunc(KfuncRef {
            name: symbol.name.to_owned(),
            weak: symbol.weak,
            btf_id: ty,
            converted: false,
        }),
        _ if symbol.weak => Extern::Null,
        _ => Extern::Missing("; it is a variable of the kernel, and there is no kernel"),
    }
}

/// A configuration variable with its value.
struct ConfigVar<'a> {
    name: &'a str,
    align: usize,
    bytes: Vec<u8>,
}

/// Maximum size of a text option in bytes.
const LONGEST_TEXT: u64 = 1024;

/// Types of configuration variables.
enum ConfigType {
    Bool,
    /// `enum libbpf_tristate`: 0 no, 1 yes, 2 module.
    Tristate,
    /// One `char`: `y`, `m` or `n`.
    Char,
    Int {
        signed: bool,
    },
    Text,
}

impl<'a> ConfigVar<'a> {
    fn new(
        btf: &Btf,
        symbol: &Symbol<'a>,
        var: TypeId,
        options: &ObjectOptions<'_>,
    ) -> Result<Self, LoadError> {
        let error = |problem| LoadError::Config { name: symbol.name.to_owned(), problem };
        let bad_type = || error("is neither bool, enum libbpf_tristate, an integer nor an array of char");
        let Some(Type::Var { ty, .. }) = btf.get(var) else { return Err(bad_type()) };
        let size = btf.size_of(*ty).ok().filter(|s| (1..=LONGEST_TEXT).contains(s)).ok_or_else(bad_type)?;
        let kind = config_type(btf, *ty).ok_or_else(bad_type)?;
        let size = usize::try_from(size).map_err(|_| bad_type())?;
        let align = if matches!(kind, ConfigType::Text) { 1 } else { size };
        let bytes = match config_value(symbol.name, options) {
            Some(value) => kind.encode(&value, size).map_err(error)?,
            None if symbol.weak => vec![0; size],
            None => return Err(error("is not given, and the program does not declare it __weak")),
        };
        Ok(Self { name: symbol.name, align, bytes })
    }
}

/// Value of an option, or of one of libbpf's own names.
fn config_value(name: &str, options: &ObjectOptions<'_>) -> Option<ConfigValue> {
    let version = options.kernel_version;
    match name {
        "LINUX_KERNEL_VERSION" => Some(ConfigValue::Number(i128::from(version.number()))),
        // libbpf probes for these features; each has been present since this version.
        "LINUX_HAS_BPF_COOKIE" => Some(ConfigValue::Number((version >= KernelVersion::new(5, 15, 0)).into())),
        "LINUX_HAS_SYSCALL_WRAPPER" => Some(ConfigValue::Number(version.has_syscall_wrapper().into())),
        name => options.config?.get(name).cloned(),
    }
}

fn config_type(btf: &Btf, ty: TypeId) -> Option<ConfigType> {
    match btf.resolve(ty).ok()?.1 {
        Type::Int(int) => match int.encoding {
            IntEncoding::Bool => (int.size == 1).then_some(ConfigType::Bool),
            _ if int.size == 1 && btf.name(int.name) == "char" => Some(ConfigType::Char),
            encoding => {
                (int.size <= 8).then_some(ConfigType::Int { signed: encoding == IntEncoding::Signed })
            }
        },
        Type::Enum(e) => {
            (e.size == 4 && btf.name(e.name) == "libbpf_tristate").then_some(ConfigType::Tristate)
        }
        Type::Array { element, .. } => match btf.resolve(*element).ok()?.1 {
            Type::Int(int) if int.size == 1 && btf.name(int.name) == "char" => Some(ConfigType::Text),
            _ => None,
        },
        _ => None,
    }
}

impl ConfigType {
    fn encode(&self, value: &ConfigValue, size: usize) -> Result<Vec<u8>, &'static str> {
        let number = match (self, value) {
            (Self::Text, ConfigValue::Text(text)) => {
                let mut bytes: Vec<u8> = text.bytes().take(size - 1).collect();
                bytes.resize(size, 0);
                return Ok(bytes);
            }
            (Self::Bool | Self::Tristate, ConfigValue::No) => 0,
            (Self::Bool | Self::Tristate, ConfigValue::Yes) => 1,
            (Self::Tristate, ConfigValue::Module) => 2,
            (Self::Char, ConfigValue::Yes) => i128::from(b'y'),
            (Self::Char, ConfigValue::Module) => i128::from(b'm'),
            (Self::Char, ConfigValue::No) => i128::from(b'n'),
            (Self::Int { signed }, ConfigValue::Number(number)) => {
                let bits = u32::try_from(size * 8).unwrap_or(64);
                let (min, max) = if *signed {
                    (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1)
                } else {
                    (0, (1 << bits) - 1)
                };
                if !(min..=max).contains(number) {
                    return Err("its number does not fit the variable");
                }
                *number
            }
            _ => return Err("its value is not of the variable's type"),
        };
        let bytes = number.to_le_bytes();
        let mut bytes = bytes.get(..size).map(<[u8]>::to_vec).unwrap_or_default();
        if cfg!(target_endian = "big") {
            bytes.reverse();
        }
        Ok(bytes)
    }
}
