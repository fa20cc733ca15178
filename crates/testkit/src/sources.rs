//! The XDP programs among the kernel's samples and self-tests, compiled from Debian's `linux-source` package.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Where Debian puts kernel sources and its headers.
const SOURCES: &str = "/usr/src";
const HEADERS: &str = "/usr/include";
/// BTF of the running kernel.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Paths that are extracted from the archive, below its directory.
const WANTED: &[&str] =
    &["samples/bpf/*", "tools/testing/selftests/bpf/progs/*", "tools/testing/selftests/bpf/*.h"];

/// The file that marks a directory created here.
const OURS: &str = "prelude.h";

/// Types that the samples take from kernel-internal headers.
const PRELUDE: &str = include_str!("../tests/linux/prelude.h");

/// Samples that are linked with shared objects.
const LINKED: &str = ".bpf";
const SHARED: &str = "xdp_sample.bpf";

/// Result of the compilation.
#[derive(Debug)]
pub struct Built {
    /// The objects, by name.
    pub objects: Vec<PathBuf>,
    /// Programs that could not be compiled or linked, each with the first error.
    pub failed: Vec<(String, String)>,
}

/// Compiles the programs into a directory, unless it has them already.
///
/// # Errors
/// The sources or a tool are missing, compilation fails, or the directory has a `linux` that was not created here.
pub fn build(directory: &Path) -> Result<Built, String> {
    let archive = newest_archive().ok_or("no linux-source package is installed")?;
    let root = directory.join("linux");
    let stamp = stamp(&archive)?;
    if fs::read_to_string(root.join("stamp")).is_ok_and(|found| found == stamp) {
        return Ok(Built { objects: objects(&root.join("objects")), failed: failures(&root) });
    }
    if root.exists() && !root.join(OURS).exists() {
        return Err(format!("{} is there and was not made by this", root.display()));
    }
    let _ = fs::remove_dir_all(&root);
    prepare(&root, &archive)?;
    let failed = compile_all(&root)?;
    let lines: String = failed.iter().map(|(name, error)| format!("{name}\t{error}\n")).collect();
    let write = |name: &str, text: &str| {
        fs::write(root.join(name), text).map_err(|error| paceline::with_causes(&error))
    };
    write("failures", &lines)?;
    write("stamp", &stamp)?;
    Ok(Built { objects: objects(&root.join("objects")), failed })
}

fn newest_archive() -> Option<PathBuf> {
    let entries = fs::read_dir(SOURCES).ok()?.flatten().map(|entry| entry.path());
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("linux-source-") && name.ends_with(".tar.xz")
    };
    entries.filter(is_archive).max()
}

/// Identifies the inputs that the objects depend on.
fn stamp(archive: &Path) -> Result<String, String> {
    let size = fs::metadata(archive).map_err(|error| paceline::with_causes(&error))?.len();
    let kernel = fs::read_to_string("/proc/version").unwrap_or_default();
    Ok(format!("{} {size} {kernel}{PRELUDE}", archive.display()))
}

fn objects(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "o")).collect();
    found.sort();
    found
}

fn failures(root: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(root.join("failures")).unwrap_or_default();
    let line = |line: &str| line.split_once('\t').map(|(name, error)| (name.to_owned(), error.to_owned()));
    text.lines().filter_map(line).collect()
}

/// Extracts the sources from the archive, and puts headers where the sources include them.
fn prepare(root: &Path, archive: &Path) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let headers = root.join("headers");
    fs::create_dir_all(root.join("objects")).map_err(said)?;
    fs::create_dir_all(headers.join("gnu")).map_err(said)?;
    // glibc takes BPF for a 32-bit machine and includes this header.
    fs::write(headers.join("gnu/stubs-32.h"), "").map_err(said)?;
    fs::write(root.join(OURS), PRELUDE).map_err(said)?;
    std::os::unix::fs::symlink(HEADERS, headers.join("uapi")).map_err(said)?;
    let mut types = Command::new("bpftool");
    types.args(["btf", "dump", "file", KERNEL_TYPES, "format", "c"]);
    fs::write(headers.join("vmlinux.h"), output(&mut types)?).map_err(said)?;
    let mut tar = Command::new("tar");
    tar.arg("xJf").arg(archive).args(["--strip-components=1", "--wildcards", "-C"]).arg(root);
    tar.args(WANTED.iter().map(|wanted| format!("*/{wanted}")));
    output(&mut tar).map(drop)
}

/// Output of a command; the command's error message if it fails.
fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| line.contains("error")).or(text.lines().next());
    Err(format!("{name}: {}", line.unwrap_or("fails")))
}

/// Compiles all XDP programs and returns those that fail.
fn compile_all(root: &Path) -> Result<Vec<(String, String)>, String> {
    let samples =
        sources(&root.join("samples/bpf"), |name| name.contains("xdp") && !name.ends_with("_user.c"));
    let tests = sources(&root.join("tools/testing/selftests/bpf/progs"), |name| name.contains("xdp"));
    if samples.is_empty() || tests.is_empty() {
        return Err("no XDP programs among the kernel's sources".to_owned());
    }
    let sources = [samples, tests].concat();
    let mut failed = compile_in_parallel(root, &sources);
    let objects = root.join("objects");
    let object = |name: &str| objects.join(format!("{name}.o"));
    let is_linked = |path: &&PathBuf| path.file_stem().is_some_and(|s| s.to_string_lossy().ends_with(LINKED));
    for path in self::objects(&objects).iter().filter(|path| path.file_stem() != Some(SHARED.as_ref())) {
        if !is_linked(&path) {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace(LINKED, "");
        let mut link = Command::new("bpftool");
        link.args(["gen", "object"]).arg(object(&name)).arg(path).arg(object(SHARED));
        if let Err(error) = output(&mut link) {
            failed.push((name, error));
        }
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_file(object(SHARED));
    Ok(failed)
}

/// Compiles sources on all CPUs, and returns those that fail, in order.
fn compile_in_parallel(root: &Path, sources: &[PathBuf]) -> Vec<(String, String)> {
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    if let Err(error) = compile(root, source, &name) {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push((name, error));
                    }
                }
            });
        }
    });
    let mut failed = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort();
    failed
}

fn sources(directory: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".c") && wanted(&name)
    };
    let mut found: Vec<PathBuf> = entries.filter(is_wanted).collect();
    found.sort();
    found
}

fn compile(root: &Path, source: &Path, name: &str) -> Result<(), String> {
    let include = |path: PathBuf| format!("-I{}", path.display());
    let mut clang = Command::new("clang-19");
    clang.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c"]).arg(source);
    clang.arg("-o").arg(root.join("objects").join(format!("{name}.o")));
    clang.arg(include(root.join("headers")));
    clang.arg(include(Path::new(HEADERS).join(format!("{}-linux-gnu", std::env::consts::ARCH))));
    clang.arg(include(root.join("samples/bpf"))).arg(include(root.join("tools/testing/selftests/bpf")));
    // Sources that do not include the kernel's types include its headers.
    if name.ends_with("_kern") && source.starts_with(root.join("samples")) {
        clang.arg("-include").arg(root.join(OURS));
    }
    output(&mut clang).map(drop)
}
