//! Types, version and configuration of the running kernel, or of another one from files.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::text_file::{self, TextFileError};
use flate2::read::GzDecoder;
use paceline_btf::Btf;
pub use paceline_object::{Config, ConfigError, ConfigValue, KernelVersion, Needs, NoKernelVersion};

/// The types of the running kernel.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Maximum size of a configuration in bytes: a hundred times the size of real ones.
const MAX_CONFIG: u64 = 32 << 20;

/// A file of a kernel cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelFileError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is no text.
    #[error(transparent)]
    Text(#[from] TextFileError),
    /// The file has no types.
    #[error(transparent)]
    Types(#[from] paceline_object::LoadError),
    /// Not a configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Longer than any configuration.
    #[error("a kernel configuration has at most {MAX_CONFIG} bytes")]
    TooLong,
}

/// Reads types, for [`ObjectOptions::target_btf`](crate::ObjectOptions::target_btf): BTF as it is in `/sys/kernel/btf`, or an ELF
/// file with a section `.BTF`, such as `vmlinux`.
///
/// # Errors
/// [`KernelFileError::Io`] and [`KernelFileError::Types`].
pub fn types(path: &Path) -> Result<Btf, KernelFileError> {
    Ok(paceline_object::parse_types(&fs::read(path)?)?)
}

/// Reads a configuration, for [`ObjectOptions::config`](crate::ObjectOptions::config): a `.config`, which may be packed by gzip.
///
/// # Errors
/// [`KernelFileError`], but for [`Types`](KernelFileError::Types).
pub fn config(path: &Path) -> Result<Config, KernelFileError> {
    let bytes = fs::read(path)?;
    let mut unpacked = Vec::new();
    let read = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => GzDecoder::new(&*bytes).take(MAX_CONFIG + 1).read_to_end(&mut unpacked)?,
        false => (&*bytes).take(MAX_CONFIG + 1).read_to_end(&mut unpacked)?,
    };
    if read as u64 > MAX_CONFIG {
        return Err(KernelFileError::TooLong);
    }
    Ok(paceline_object::parse_config(&text_file::of_bytes(unpacked)?)?)
}

/// The file with the types of the running kernel, if it has them.
#[must_use]
pub fn running_types() -> Option<&'static Path> {
    Some(Path::new(TYPES)).filter(|path| path.exists())
}

/// The version of the running kernel. Debian and Ubuntu tell the one it is made from elsewhere than in its release, as libbpf knows.
#[must_use]
pub fn running_version() -> Option<KernelVersion> {
    let read = |path: &str| fs::read_to_string(path).ok();
    let ubuntu = || read("/proc/version_signature")?.split(' ').nth(2)?.parse().ok();
    let debian = || read("/proc/sys/kernel/version")?.split_once("Debian ")?.1.parse().ok();
    let release = || read("/proc/sys/kernel/osrelease")?.trim().parse().ok();
    ubuntu().or_else(debian).or_else(release)
}

/// The file with the configuration of the running kernel, where libbpf looks for it.
#[must_use]
pub fn running_config() -> Option<PathBuf> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
    let boot = release.map(|release| PathBuf::from(format!("/boot/config-{}", release.trim())));
    boot.into_iter().chain([PathBuf::from("/proc/config.gz")]).find(|path| path.exists())
}
