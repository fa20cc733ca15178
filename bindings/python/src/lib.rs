//! The compiled part of the Python package `paceline`. `python/paceline` has the rest.
//!
//! | Python | stands on |
//! |---|---|
//! | `Object` | `paceline::Object` |
//! | `Collection`, `Program` | `paceline::Collection`, `paceline::VerifiedProgram`, which any thread may use |
//! | `Chain`, `Filter` | `paceline::LiveChain`, `paceline::filter::PacketFilter` |
//! | `Runner.run`, `run_many` | a `worker::Worker` for each CPU: a `Host` and bursts, which one call has at a time |
//! | `Replay` | `paceline::capture::CaptureReader` with a host of its own |
//! | `Scan`, `Split` | `paceline_archive`, on threads of its own |
//! | `Map`, `Variables` | `paceline::Map` with the object's `Btf` |
//! | `Explanation` | `paceline::explain::ChainExplanation` |
//! | `Batch`, `Column` | record batches of `arrow-array`, by the PyCapsule protocol |
//!
//! All classes are frozen: what changes is behind locks of its own, or of the library. Packets are copied into frames that a worker owns,
//! and results are copied out, so that nothing in Python points into a frame. Arrow buffers are reference counted on both sides.
//! No lock is held while code of Python runs.
//!
//! Every class is frozen; what changes is behind the library's own locks, or those of `worker.rs`. Each entry is `guarded`: a panic
//! becomes an `InternalError`, and its worker is dropped. The list of free workers is replaced when `os.register_at_fork` says that
//! this is a child.

mod archive;
mod chain;
mod chain_file;
mod codec;
mod columns;
mod coverage;
mod effects;
mod elements;
mod error;
mod explanation;
mod filter;
mod json;
mod many;
mod map;
mod network;
mod object;
mod packet;
mod packets;
mod process;
mod program;
mod replay;
mod rows;
mod run;
mod runner;
mod settings;
mod shared;
mod source;
mod subject;
mod table;
mod testing;
mod value;
mod variables;
mod verdict;
mod worker;

use pyo3::prelude::*;

#[pymodule]
mod _paceline {
    use paceline::Engine;
    use pyo3::exceptions::PyImportError;
    use pyo3::prelude::*;
    use pyo3::sync::PyOnceLock;

    #[pymodule_export]
    use crate::archive::losses::PyLost;
    #[pymodule_export]
    use crate::archive::maps::{map_states, merge_maps};
    #[pymodule_export]
    use crate::archive::scan::{PyScan, scan};
    #[pymodule_export]
    use crate::archive::split::{PySplit, splits};
    #[pymodule_export]
    use crate::chain::{PyChain, chain};
    #[pymodule_export]
    use crate::coverage::{PyCoverage, record_coverage, recorded_coverage};
    #[pymodule_export]
    use crate::effects::Event;
    #[pymodule_export]
    use crate::explanation::{PyExplanation, PyFact};
    #[pymodule_export]
    use crate::filter::{PyFilter, classic_filter, filter};
    #[pymodule_export]
    use crate::map::RawMap;
    #[pymodule_export]
    use crate::network::PyNetwork;
    #[pymodule_export]
    use crate::object::{PyCollection, PyObject};
    #[pymodule_export]
    use crate::packet::{build_packet, layer_names, layers_text, packet_differences, packet_field};
    #[pymodule_export]
    use crate::process::{exiting, forked};
    #[pymodule_export]
    use crate::program::PyProgram;
    #[pymodule_export]
    use crate::replay::{PyReplay, replay};
    #[pymodule_export]
    use crate::run::{PyRedirect, PyRun, asked, keep_asked};
    #[pymodule_export]
    use crate::runner::PyRunner;
    #[pymodule_export]
    use crate::table::{PyBatch, PyColumn};
    #[pymodule_export]
    use crate::testing::{nothing, object_of_case, panic};
    #[pymodule_export]
    use crate::variables::Variables;

    /// Names of the engines of this machine, the fastest first.
    #[pyfunction]
    fn engines() -> Vec<&'static str> {
        Engine::ALL.into_iter().filter(|engine| engine.is_available()).map(Engine::name).collect()
    }

    /// `sys` of the interpreter that imports the module first. It is held, so that no other interpreter's has its address.
    static FIRST: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let sys = module.py().import("sys")?;
        if !FIRST.get_or_init(module.py(), || sys.clone().unbind()).is(&sys) {
            // Classes are of one interpreter, and live as long as the process.
            return Err(PyImportError::new_err(
                "paceline was imported by another interpreter of this process: use processes in place of subinterpreters",
            ));
        }
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
