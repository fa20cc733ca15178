//! The dynamic library, and its functions by their names.

use std::path::PathBuf;
use std::sync::LazyLock;

use libloading::Library;
use paceline_c::*;

/// The library that Cargo built beside this test, or the one of `PACELINE_C_LIBRARY`.
pub(crate) fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("PACELINE_C_LIBRARY") {
        return path.into();
    }
    let test = std::env::current_exe().expect("a test has a file");
    test.with_file_name("libpaceline_c.so")
}

/// Loaded once: the code of a library with threads of its own stays.
pub(crate) static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let path = path();
    // SAFETY: the library's initializers are those of Rust's standard library.
    unsafe { Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
});

/// A function of the library, which has the type of the crate's function of that name.
fn load<F: Copy>(name: &str, _like: F) -> F {
    // SAFETY: the library is built of the crate whose function's type this is.
    *unsafe { LIBRARY.get::<F>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Declares functions that call those of the dynamic library.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        pub(crate) mod c {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments, reason = "as in C")]
                pub(crate) fn $name($($argument: $type),*) -> $result {
                    static FUNCTION: LazyLock<extern "C" fn($($type),*) -> $result> = LazyLock::new(|| {
                        load(stringify!($name), paceline_c::$name as extern "C" fn($($type),*) -> $result)
                    });
                    FUNCTION($($argument),*)
                }
            )*
        }
    };
}

type Error = Out<*mut paceline_error>;

functions! {
    paceline_abi_version() -> u32;
    paceline_error_free(error: *mut paceline_error) -> paceline_status;
    paceline_error_read(error: *const paceline_error, details: Filled<paceline_error_details>) -> paceline_status;
    paceline_builder_new(types: Bytes, length: usize, error: Error) -> *mut paceline_builder;
    paceline_builder_add_map(builder: *mut paceline_builder, map: Given<paceline_map_spec>, error: Error) -> paceline_status;
    paceline_builder_set(builder: *mut paceline_builder, map: u32, key: Bytes, key_length: usize, value: Bytes, length: usize, error: Error) -> paceline_status;
    paceline_builder_add_program(builder: *mut paceline_builder, program: Given<paceline_program_spec>, error: Error) -> paceline_status;
    paceline_builder_object(builder: *const paceline_builder, error: Error) -> *mut paceline_object;
    paceline_builder_free(builder: *mut paceline_builder) -> paceline_status;
    paceline_object_open(path: Text, options: Given<paceline_object_options>, error: Error) -> *mut paceline_object;
    paceline_object_load(object: *const paceline_object, options: Given<paceline_load_options>, error: Error) -> *mut paceline_collection;
    paceline_object_free(object: *mut paceline_object) -> paceline_status;
    paceline_collection_free(collection: *mut paceline_collection) -> paceline_status;
    paceline_collection_program(collection: *const paceline_collection, name: Text, error: Error) -> *mut paceline_program;
    paceline_collection_program_unverified(collection: *const paceline_collection, name: Text, error: Error) -> *mut paceline_program;
    paceline_collection_map(collection: *const paceline_collection, name: Text, error: Error) -> *mut paceline_map;
    paceline_program_free(program: *mut paceline_program) -> paceline_status;
    paceline_program_install(program: *const paceline_program, map: *const paceline_map, index: u32, error: Error) -> paceline_status;
    paceline_program_run(program: *const paceline_program, host: *mut paceline_host, packet: Given<paceline_packet>, frame: Filled<paceline_frame>, error: Error) -> paceline_status;
    paceline_program_run_burst(program: *const paceline_program, burst: *mut paceline_burst, host: *mut paceline_host, error: Error) -> paceline_status;
    paceline_map_free(map: *mut paceline_map) -> paceline_status;
    paceline_map_read_info(map: *const paceline_map, info: Filled<paceline_map_info>, error: Error) -> paceline_status;
    paceline_map_lookup(map: *const paceline_map, key: Bytes, key_length: usize, value: Room, capacity: usize, error: Error) -> paceline_status;
    paceline_map_update(map: *const paceline_map, key: Bytes, key_length: usize, value: Bytes, length: usize, flags: u64, error: Error) -> paceline_status;
    paceline_map_delete(map: *const paceline_map, key: Bytes, key_length: usize, error: Error) -> paceline_status;
    paceline_map_next_key(map: *const paceline_map, key: Bytes, key_length: usize, next: Room, capacity: usize, error: Error) -> paceline_status;
    paceline_map_pop(map: *const paceline_map, value: Room, capacity: usize, error: Error) -> paceline_status;
    paceline_host_new(cpu: u32, error: Error) -> *mut paceline_host;
    paceline_host_free(host: *mut paceline_host) -> paceline_status;
    paceline_host_set_network(host: *mut paceline_host, network: Text, error: Error) -> paceline_status;
    paceline_host_fire_timers(host: *mut paceline_host, count: Out<u64>, error: Error) -> paceline_status;
    paceline_burst_new(capacity: usize, error: Error) -> *mut paceline_burst;
    paceline_burst_free(burst: *mut paceline_burst) -> paceline_status;
    paceline_burst_clear(burst: *mut paceline_burst, error: Error) -> paceline_status;
    paceline_burst_push(burst: *mut paceline_burst, packets: Given<paceline_packet>, count: usize, pushed: Out<usize>, error: Error) -> paceline_status;
    paceline_burst_place(burst: *mut paceline_burst, pool: *const paceline_pool, packets: Given<paceline_packet>, count: usize, placed: Out<usize>, error: Error) -> paceline_status;
    paceline_burst_frames(burst: *mut paceline_burst, frames: Filled<paceline_frame>, capacity: usize, count: Out<usize>, error: Error) -> paceline_status;
    paceline_pool_new(options: Given<paceline_pool_options>, error: Error) -> *mut paceline_pool;
    paceline_pool_free(pool: *mut paceline_pool) -> paceline_status;
    paceline_chain_new(members: Given<paceline_member>, count: usize, order: u32, error: Error) -> *mut paceline_chain;
    paceline_chain_free(chain: *mut paceline_chain) -> paceline_status;
    paceline_chain_change(chain: *const paceline_chain, changes: Given<paceline_change>, count: usize, expected: u64, revision: Out<u64>, error: Error) -> paceline_status;
    paceline_chain_worker(chain: *const paceline_chain, counts: u32, error: Error) -> *mut paceline_worker;
    paceline_worker_free(worker: *mut paceline_worker) -> paceline_status;
    paceline_worker_run_burst(worker: *mut paceline_worker, burst: *mut paceline_burst, host: *mut paceline_host, error: Error) -> paceline_status;
}
