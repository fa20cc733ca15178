//! Object files, as clang writes them with libbpf's conventions, to programs and maps.
//!
//! [`Object::parse`] reads an ELF file with BPF code and gives its XDP programs, linked with the subprograms they
//! call, and its maps, both as data of [`paceline_spec`]. It looks at no environment: whatever a loader would ask of
//! a running kernel (its types, its version, its configuration) is in [`LoadOptions`].
//!
//! The conventions are libbpf's (`src/libbpf.c`). Tests hold maps and relocated instructions against what libbpf
//! gives the kernel. Where it differs, on purpose:
//!
//! | convention | libbpf | here |
//! |---|---|---|
//! | section names | since 1.0 only `xdp`, `xdp.frags`, and both with `/devmap`, `/cpumap` | also `xdp/NAME`, whatever else starts with `xdp`, and `prog`, as older tools had it |
//! | legacy `maps` section | dropped in 1.0 | taken, with iproute2's larger definition |
//! | static functions, and calls, outside of `.text` | refused (1.1) | linked |
//! | other types of program | loaded | listed in [`Object::skipped`]; what is wrong with them does not matter |
//! | names of data maps | cut to 15 characters with the object's name before | the section's full name |
//! | `LINUX_KERNEL_VERSION`, `CONFIG_*` | the running kernel's | [`LoadOptions`] |
//! | functions of the kernel (`__ksym`) | numbered by the kernel's BTF | kept by name ([`ProgramSpec::kfuncs`](paceline_spec::ProgramSpec::kfuncs)) |
//! | variables of the kernel (`__ksym`) | resolved | 0 if `__weak`, otherwise refused |
//! | CO-RE | against the running kernel | against [`LoadOptions::target_btf`]; without, fields as compiled, and what asks whether something exists is refused if reached |
//! | objects of the other byte order | refused | refused: constants and byte swaps are compiled in |
//!
//! The bytes are hostile. Every reference is checked, every name has a longest length, and what one file may ask for
//! in memory and time is bounded however its parts share or repeat each other.
#![forbid(unsafe_code)]

mod btf_maps;
mod core;
mod data_maps;
mod debug_info;
mod elf_file;
mod error;
mod externs;
mod function;
mod kernel;
mod legacy_maps;
mod link;
mod maps;
mod object;
mod relocate;
mod section;

pub use error::{CoreProblem, LoadError, MapProblem};
pub use kernel::{
    Config, ConfigError, ConfigValue, KernelVersion, Needs, NoKernelVersion, parse_config, parse_types,
};
pub use object::{DataPointer, GivenType, LoadOptions, Object, SkippedProgram, type_of_section};
pub use section::section_tells_type;
