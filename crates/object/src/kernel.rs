//! Types, version and configuration of a kernel, in the formats in which kernels provide them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use elf::endian::AnyEndian;
use elf::{ElfBytes, abi};
use paceline_btf::Btf;

use super::error::LoadError;

/// The kernel properties that an object depends on; from [`Object::needs`](crate::Object::needs).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Number of CO-RE relocations that need the kernel's types.
    pub relocations: usize,
    /// Kernel configuration variables: `CONFIG_HZ`, `LINUX_KERNEL_VERSION`.
    pub config: Vec<String>,
}

impl Needs {
    /// Whether a variable depends on the kernel's version.
    #[must_use]
    pub fn version(&self) -> bool {
        self.config.iter().any(|name| name.starts_with("LINUX_"))
    }

    /// Whether a variable is an option of the kernel's configuration.
    #[must_use]
    pub fn options(&self) -> bool {
        self.config.iter().any(|name| name.starts_with("CONFIG_"))
    }
}

/// Parses the types of a kernel: raw BTF as in `/sys/kernel/btf`, or an ELF file of any machine with a section `.BTF`.
///
/// # Errors
/// [`LoadError::Btf`], [`LoadError::Elf`], and [`LoadError::NoTypes`].
pub fn parse_types(bytes: &[u8]) -> Result<Btf, LoadError> {
    let parse = |bytes| Btf::parse(bytes).map_err(|source| LoadError::Btf { section: ".BTF", source });
    if !bytes.starts_with(&abi::ELFMAGIC) {
        let format = paceline_suggest::format_of(bytes).filter(|format| *format != "BTF");
        return parse(bytes).map_err(|error| format.map_or(error, |format| LoadError::NotElf(Some(format))));
    }
    let file = ElfBytes::<AnyEndian>::minimal_parse(bytes)?;
    let section = file.section_header_by_name(".BTF")?.ok_or(LoadError::NoTypes)?;
    parse(file.section_data(&section)?.0)
}

/// The version of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion(u32);

/// A text that does not begin with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a Linux version such as 6.12 or 6.1.55")]
pub struct NoKernelVersion;

impl KernelVersion {
    /// The default version.
    pub const DEFAULT: Self = Self::new(6, 12, 0);

    /// As `KERNEL_VERSION`: patch levels above 255 become 255.
    #[must_use]
    pub const fn new(major: u8, minor: u8, patch: u32) -> Self {
        let patch = if patch > 255 { 255 } else { patch };
        Self((major as u32) << 16 | (minor as u32) << 8 | patch)
    }

    /// The value of `LINUX_KERNEL_VERSION`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether system call handlers take their arguments from the caller's registers (`CONFIG_ARCH_HAS_SYSCALL_WRAPPER`), in a
    /// kernel of this version for this machine's architecture.
    pub(crate) fn has_syscall_wrapper(self) -> bool {
        let since = match () {
            () if cfg!(target_arch = "x86_64") => Self::new(4, 17, 0),
            () if cfg!(target_arch = "aarch64") => Self::new(4, 19, 0),
            () if cfg!(target_arch = "s390x") => Self::new(5, 0, 0),
            () if cfg!(target_arch = "riscv64") => Self::new(6, 6, 0),
            () => return false,
        };
        self >= since
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, major, minor, patch] = self.0.to_be_bytes();
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl FromStr for KernelVersion {
    type Err = NoKernelVersion;

    /// Parses `6.12`, `6.1.55`, and the output of `uname -r`: `6.1.0-13-amd64`.
    fn from_str(text: &str) -> Result<Self, NoKernelVersion> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut parts = text.get(..end).unwrap_or_default().trim_end_matches('.').split('.');
        let mut byte = || parts.next()?.parse::<u8>().ok();
        let (Some(major), Some(minor)) = (byte(), byte()) else { return Err(NoKernelVersion) };
        let patch = parts.next().map_or(Ok(0), str::parse::<u32>).map_err(|_| NoKernelVersion)?;
        if parts.next().is_some() { Err(NoKernelVersion) } else { Ok(Self::new(major, minor, patch)) }
    }
}

/// Value of a kernel configuration option, as in a line of `.config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigValue {
    /// `y`
    Yes,
    /// `m`
    Module,
    /// `n`
    No,
    /// A number.
    Number(i128),
    /// A text, without its quotes.
    Text(String),
}

/// Kernel configuration options by name, including `CONFIG_`.
pub type Config = BTreeMap<String, ConfigValue>;

/// A malformed line of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: `{text}` is not of the form CONFIG_NAME=VALUE, with value y, m, n, a number or a quoted string"
)]
pub struct ConfigError {
    /// Line number, from 1.
    pub line: usize,
    /// The line, truncated.
    pub text: String,
}

/// Parses a configuration, such as `/boot/config-6.12.0` or `/proc/config.gz` decompressed. As in libbpf, lines that do not begin
/// with `CONFIG_` are ignored, and of several lines for an option the first takes precedence.
///
/// # Errors
/// [`ConfigError`] for the first malformed line.
pub fn parse_config(text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| text.starts_with("CONFIG_")) {
        let option = text.trim_end().split_once('=').and_then(|(name, value)| Some((name, value_of(value)?)));
        let Some((name, value)) = option else {
            return Err(ConfigError { line, text: text.chars().take(80).collect() });
        };
        config.entry(name.to_owned()).or_insert(value);
    }
    Ok(config)
}

fn value_of(text: &str) -> Option<ConfigValue> {
    Some(match text {
        "y" => ConfigValue::Yes,
        "m" => ConfigValue::Module,
        "n" => ConfigValue::No,
        text => match text.strip_prefix('"') {
            Some(text) => ConfigValue::Text(text.strip_suffix('"')?.to_owned()),
            None => ConfigValue::Number(number(text)?),
        },
    })
}

/// A number in the syntax of `strtoull`.
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(sign * i128::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_uname_prints_them() {
        let version = |text: &str| text.parse::<KernelVersion>().map(|version| version.to_string());
        assert_eq!(version("6.12").as_deref(), Ok("6.12.0"));
        assert_eq!(version("6.1.55").as_deref(), Ok("6.1.55"));
        assert_eq!(version("6.1.0-13-amd64").as_deref(), Ok("6.1.0"));
        assert_eq!(version("6.18.0+").as_deref(), Ok("6.18.0"));
        assert_eq!(version("4.9.337").as_deref(), Ok("4.9.255"));
        for wrong in ["", "6", "six", "6.", "6.300", "1.2.3.4", "-1.2"] {
            assert_eq!(version(wrong), Err(NoKernelVersion), "{wrong}");
        }
        assert_eq!(KernelVersion::new(6, 12, 0).number(), 6 << 16 | 12 << 8);
    }

    #[test]
    fn configurations_are_read_as_libbpf_reads_them() {
        let text = "# CONFIG_OFF is not set\nCONFIG_A=y\nCONFIG_B=m\nCONFIG_C=n\nCONFIG_D=0x10\nCONFIG_E=-2\n\
                    CONFIG_F=\"a \\\"text\"\nCONFIG_A=n\n\nNO_CONFIG\n";
        let config = parse_config(text).unwrap();
        assert_eq!(config.len(), 6);
        assert_eq!(config["CONFIG_A"], ConfigValue::Yes);
        assert_eq!(config["CONFIG_B"], ConfigValue::Module);
        assert_eq!(config["CONFIG_C"], ConfigValue::No);
        assert_eq!(config["CONFIG_D"], ConfigValue::Number(16));
        assert_eq!(config["CONFIG_E"], ConfigValue::Number(-2));
        assert_eq!(config["CONFIG_F"], ConfigValue::Text("a \\\"text".to_owned()));
        for wrong in ["CONFIG_A", "CONFIG_A=", "CONFIG_A=yes", "CONFIG_A=\"x", "CONFIG_A=1x"] {
            assert_eq!(parse_config(&format!("\n{wrong}")).unwrap_err().line, 2, "{wrong}");
        }
    }
}
