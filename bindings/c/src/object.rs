//! Objects: opened from files and memory, and what is in them.

use std::ffi::{CString, c_char};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use paceline::kernel::{self, KernelFileError, KernelVersion};
use paceline::{MapSpec, Object, ObjectOptions, OpenError, ProgramKind, ProgramSpec};

use crate::c_string::c_string;
use crate::call;
use crate::handles::Table;
use crate::kinds::{number_of, paceline_program_type};
use crate::opaque::paceline_object;
use crate::raw::{Bytes, Filled, Given, Text, given, written};
use crate::status::{Failure, Report, paceline_status};
use crate::told::ErrorOut;

/// An object with its names as strings of C.
pub(crate) struct Opened {
    pub(crate) object: Object,
    programs: Vec<[CString; 2]>,
    maps: Vec<CString>,
}

pub(crate) static OBJECTS: Table<Arc<Opened>, paceline_object> = Table::new();

/// How an object is opened. All zero, apart from the size, is the default.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_object_options {
    /// sizeof(struct paceline_object_options)
    pub size: usize,
    /// File with the types of a kernel for CO-RE: /sys/kernel/btf/vmlinux, or an ELF file with BTF. Null for none: fields keep the
    /// offsets that the compiler saw.
    pub kernel_types: Text,
    /// File with the configuration of a kernel, which may be packed by gzip, such as /proc/config.gz; null for none.
    pub kernel_config: Text,
    /// Version of the kernel for LINUX_KERNEL_VERSION, such as "6.12"; null for the default.
    pub kernel_version: Text,
}

given!(paceline_object_options);

/// A program of an object.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_program_info {
    /// sizeof(struct paceline_program_info)
    pub size: usize,
    /// Its name; lives as long as the handle it was read from.
    pub name: *const c_char,
    /// Its ELF section; empty if it does not come from a file. Lives as long as the handle.
    pub section: *const c_char,
    /// One of enum paceline_program_type.
    pub program_type: u32,
    /// Slots of its instructions.
    pub slots: u32,
}

/// A map: of an object, where nothing is made yet and `id` is 0, or one that was made.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_map_info {
    /// sizeof(struct paceline_map_info)
    pub size: usize,
    /// Its name; lives as long as the handle it was read from.
    pub name: *const c_char,
    /// Number of its kind in enum bpf_map_type of the kernel's linux/bpf.h.
    pub kind: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes, as programs see it.
    pub value_size: u32,
    /// Maximum number of elements.
    pub max_entries: u32,
    /// BPF_F_ flags.
    pub flags: u32,
    /// Number of the map, unique in the process: the value by which a map of maps holds it.
    pub id: u32,
    /// Bytes of a value for paceline_map_lookup and paceline_map_update: in per-CPU kinds `value_size` rounded up to 8, once for each
    /// CPU.
    pub user_value_size: usize,
}

written!(paceline_program_info, paceline_map_info);

impl paceline_map_info {
    pub(crate) fn new(name: &CString, spec: &MapSpec, id: u32, user_value_size: usize) -> Self {
        Self {
            size: size_of::<Self>(),
            name: name.as_ptr(),
            kind: spec.kind.number(),
            key_size: spec.key_size,
            value_size: spec.value_size,
            max_entries: spec.max_entries,
            flags: spec.flags.0,
            id,
            user_value_size,
        }
    }
}

impl paceline_program_info {
    pub(crate) fn new([name, section]: &[CString; 2], spec: &ProgramSpec) -> Self {
        Self {
            size: size_of::<Self>(),
            name: name.as_ptr(),
            section: section.as_ptr(),
            program_type: number_of(spec.kind) as u32,
            slots: u32::try_from(spec.insns.len()).unwrap_or(u32::MAX),
        }
    }
}

impl Opened {
    pub(crate) fn give(object: Object) -> Result<*mut paceline_object, Failure> {
        let programs = object.programs().iter().map(names_of).collect();
        let maps = object.maps().iter().map(|map| c_string(&map.name)).collect();
        OBJECTS.give(Arc::new(Self { object, programs, maps }))
    }
}

/// Name and section of a program.
pub(crate) fn names_of(spec: &ProgramSpec) -> [CString; 2] {
    [c_string(&spec.name), c_string(&spec.section)]
}

fn parse(bytes: &[u8], options: Given<paceline_object_options>) -> Result<Object, Failure> {
    let Some(given) = options.optional()? else { return Object::parse(bytes).map_err(not_an_object) };
    let types = given.kernel_types.optional()?.map(|path| kernel::types(Path::new(path)));
    let types = types.transpose().map_err(wrong_kernel_file)?;
    let config = given.kernel_config.optional()?.map(|path| kernel::config(Path::new(path)));
    let config = config.transpose().map_err(wrong_kernel_file)?;
    let mut options = ObjectOptions::default().target_btf(types.as_ref()).config(config.as_ref());
    if let Some(version) = given.kernel_version.optional()? {
        let version = version.parse::<KernelVersion>();
        options =
            options.kernel_version(version.map_err(|_| Failure::argument("the kernel version is none"))?);
    }
    Object::parse_with(bytes, &options).map_err(not_an_object)
}

fn wrong_kernel_file(error: KernelFileError) -> Failure {
    Failure::new(paceline_status::Io, format!("file of a kernel: {error}"))
}

fn not_an_object(error: OpenError) -> Failure {
    let status =
        if matches!(error, OpenError::Io(_)) { paceline_status::Io } else { paceline_status::Object };
    Failure::new(status, error)
}

/// The object of a file.
pub(crate) fn opened(path: &Path, options: Given<paceline_object_options>) -> Result<Object, Failure> {
    let read = fs::read(path).map_err(|error| Failure::of(paceline_status::Io, &error));
    read.and_then(|bytes| parse(&bytes, options)).map_err(|failure| in_file(failure, path))
}

/// The same failure, with the file that it is about.
fn in_file(failure: Failure, path: &Path) -> Failure {
    let Failure::Told(mut report) = failure else { return failure };
    report.message = format!("{}: {}", path.display(), report.message);
    report.file = Some(path.display().to_string());
    Failure::Told(report)
}

/// Opens an object file: ELF, as clang compiles it for the kernel. `options` may be null. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_open(
    path: Text,
    options: Given<paceline_object_options>,
    error: ErrorOut,
) -> *mut paceline_object {
    call::handle(error, || Opened::give(opened(path.path()?, options)?))
}

/// Opens an object from memory, which is not used after the call. `options` may be null. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_parse(
    bytes: Bytes,
    length: usize,
    options: Given<paceline_object_options>,
    error: ErrorOut,
) -> *mut paceline_object {
    call::handle(error, || Opened::give(parse(bytes.slice(length)?, options)?))
}

/// Frees an object. Collections that were made from it stay. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_free(object: *mut paceline_object) -> paceline_status {
    call::plain_status(|| OBJECTS.free(object))
}

/// Number of programs of the types that Paceline runs.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_programs(object: *const paceline_object) -> usize {
    call::plain(0, || Ok(OBJECTS.get(object)?.programs.len()))
}

/// Properties of a program of an object, by its place in the file from 0. PACELINE_STATUS_NOT_FOUND past the last.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_program(
    object: *const paceline_object,
    index: usize,
    info: Filled<paceline_program_info>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let opened = OBJECTS.get(object)?;
        let found = opened.programs.get(index).zip(opened.object.programs().get(index));
        let (names, spec) = found.ok_or(Failure::NOT_FOUND)?;
        info.write(paceline_program_info::new(names, spec))
    })
}

/// Number of maps.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_maps(object: *const paceline_object) -> usize {
    call::plain(0, || Ok(OBJECTS.get(object)?.maps.len()))
}

/// Properties of a map of an object, by its place in the file from 0. PACELINE_STATUS_NOT_FOUND past the last.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_map(
    object: *const paceline_object,
    index: usize,
    info: Filled<paceline_map_info>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let opened = OBJECTS.get(object)?;
        let (name, spec) =
            opened.maps.get(index).zip(opened.object.maps().get(index)).ok_or(Failure::NOT_FOUND)?;
        info.write(paceline_map_info::new(name, spec, 0, 0))
    })
}

/// Verifies a program without making its maps. `program` may be null if there is only one.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_object_verify(
    object: *const paceline_object,
    program: Text,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let opened = OBJECTS.get(object)?;
        let none = |error: paceline::ProgramError| Failure::of(paceline_status::NoProgram, &error);
        let programs = opened.object.programs_named(program.optional()?).map_err(none)?;
        let [program] = *programs else {
            let names = programs.iter().map(|program| program.name.as_str()).collect();
            return Err(none(paceline::ProgramError::Several(names_owned(names))));
        };
        opened.object.verify(program).map(drop).map_err(|refused| of_refused(&refused))
    })
}

fn names_owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// The refusal of a program, by the verifier or because something is not supported.
pub(crate) fn of_refused(refused: &paceline::VerifierError) -> Failure {
    let mut report = Report::of_refusal(refused.to_string(), &refused.program, &refused.refusal);
    if refused.is_unsupported() {
        report.status = Some(paceline_status::Unsupported);
    }
    Failure::told(report)
}

/// The type of a program by its number.
pub(crate) fn program_kind(number: u32) -> Result<ProgramKind, Failure> {
    paceline_program_type::kind(number)
        .ok_or_else(|| Failure::argument(format!("{number} is no enum paceline_program_type")))
}
