//! Engines that run cases.

mod chains;
mod classic;
mod interface;
mod kernel;
mod maps;
mod namespace;
mod ours;

pub use chains::ChainEngine;
pub use classic::{LibpcapEngine, SocketEngine};
pub use interface::{Engine, Unsupported};
pub use kernel::KernelEngine;
pub use maps::{create_maps, fill_map, map_contents};
pub(crate) use ours::native_name;
pub use ours::{OurEngine, load_native, load_native_chain};

/// All engines of this machine: ours, with the oracle first, and the kernel if it is available.
#[must_use]
pub fn available() -> Vec<Box<dyn Engine>> {
    let mut engines: Vec<Box<dyn Engine>> =
        OurEngine::all().map(|engine| Box::new(engine) as Box<dyn Engine>).collect();
    engines.extend(ChainEngine::all().map(|engine| Box::new(engine) as Box<dyn Engine>));
    match crate::kernel::probe() {
        Ok(()) => {
            engines.push(Box::new(KernelEngine));
            engines.push(Box::new(ChainEngine::dispatcher()));
        }
        Err(reason) => crate::skip("kernel", &reason),
    }
    match SocketEngine::new() {
        Ok(engine) => engines.push(Box::new(engine)),
        Err(reason) => crate::skip("socket", &reason),
    }
    match LibpcapEngine::new() {
        Ok(engine) => engines.push(Box::new(engine)),
        Err(reason) => crate::skip("libpcap", &reason),
    }
    engines
}
