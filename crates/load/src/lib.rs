//! Object files, as clang writes them with libbpf's conventions, to programs and maps.
//!
//! [`Object::parse`] reads an ELF file with BPF code and gives its XDP programs, linked with the subprograms they
//! call, and its maps, both as data of [`paceline_spec`]. It looks at no environment: whatever a loader would ask of
//! a running kernel (its types, its version, its configuration) is in [`LoadOptions`].
//!
//! The conventions are libbpf's (`src/libbpf.c`); where it and the compilers leave a choice, or Paceline accepts
//! more, the documentation of the item says so.
#![forbid(unsafe_code)]

mod btf_maps;
mod core;
mod data_maps;
mod debug_info;
mod elf_file;
mod error;
mod externs;
mod function;
mod legacy_maps;
mod link;
mod maps;
mod object;
mod relocate;
mod section;

pub use error::{CoreProblem, LoadError, MapProblem};
pub use externs::{ConfigValue, DEFAULT_KERNEL_VERSION};
pub use object::{LoadOptions, Object, SkippedProgram};
