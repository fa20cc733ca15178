//! Loader of object files, as clang generates them with libbpf's conventions: programs and maps.
//!
//! [`Object::parse`] reads an ELF file with BPF code and returns its programs of the types that Paceline runs, linked with the
//! subprograms they call, and its maps, both as data of [`paceline_spec`]. It does not access the environment: properties of a
//! kernel (types, version, configuration) are parameters in [`ObjectOptions`].
//!
//! The conventions are libbpf's (`src/libbpf.c`). Tests compare maps and relocated instructions with those that libbpf passes to
//! the kernel. Intended differences:
//!
//! | convention | libbpf | here |
//! |---|---|---|
//! | section names of XDP programs | since 1.0 only `xdp`, `xdp.frags`, and both with `/devmap`, `/cpumap` | also `xdp/NAME`, all other names that start with `xdp`, and `prog`, as in older tools |
//! | legacy `maps` section | dropped in 1.0 | supported, including iproute2's larger definition |
//! | static functions, and calls, outside of `.text` | refused (1.1) | linked |
//! | other types of program | loaded | listed in [`Object::skipped`]; errors in them are ignored |
//! | names of data maps | truncated to 15 characters, with the object's name as prefix | the section's full name |
//! | `LINUX_KERNEL_VERSION`, `CONFIG_*` | the running kernel's | [`ObjectOptions`] |
//! | functions of the kernel (`__ksym`) | resolved to BTF ids of the kernel | referenced by name ([`ProgramSpec::kfuncs`](paceline_spec::ProgramSpec::kfuncs)) |
//! | variables of the kernel (`__ksym`) | resolved | 0 if `__weak`, otherwise refused |
//! | `pinning` 16 (`CILIUM_PIN_REPLACE`) | refused | a map that is never shared, as by Cilium's loader |
//! | functions tagged `tail:MAP/INDEX` (`btf_decl_tag`) | nothing | put into program array MAP, as by Cilium's loader |
//! | CO-RE | against the running kernel | against [`ObjectOptions::target_btf`]; without it, fields keep the compiler's offsets, and
//! programs that reach a question whether something exists are refused |
//! | objects of the other byte order | refused | refused: constants and byte swaps are compiled in |
//!
//! The bytes may be hostile. Every reference is checked, names have a maximum length, and memory and time are bounded even if parts
//! of the file are shared or repeated.
#![forbid(unsafe_code)]

mod btf_maps;
mod core;
mod data_maps;
mod debug_info;
mod dwarf;
mod elf_file;
mod error;
mod externs;
mod function;
mod kernel;
mod legacy_maps;
mod link;
mod maps;
mod numbered;
mod object;
mod options;
mod relocate;
mod section;
mod tagged;
mod variables;

pub use error::{CoreProblem, LoadError, MapProblem};
pub use kernel::{
    Config, ConfigError, ConfigValue, KernelVersion, Needs, NoKernelVersion, parse_config, parse_types,
};
pub use object::{DataPointer, Object, SkippedProgram};
pub use options::{GivenType, ObjectOptions};
pub use section::{section_tells_type, type_of_section};
