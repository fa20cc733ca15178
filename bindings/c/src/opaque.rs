//! The opaque types of C, one for each kind of handle. Nothing is ever read through a pointer to one.

/// An opaque type of C.
pub(crate) trait Opaque {
    /// Number of the kind, from 1.
    const KIND: u8;
    /// The kind in messages, with its article.
    const NAME: &'static str;
    /// Whether one thread at a time may use it.
    const IS_LOCKED: bool;
}

/// The name of a kind; `None` for numbers that are no kind.
pub(crate) fn name_of(kind: u8) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name)
}

/// Gives each type its number, its name, and whether one thread at a time may use it.
macro_rules! kinds {
    ($($opaque:ident = $number:literal, $name:literal, $is_locked:literal;)*) => {
        const NAMES: &[(u8, &str)] = &[$(($number, $name),)*];
        $(
            impl Opaque for $opaque {
                const KIND: u8 = $number;
                const NAME: &'static str = $name;
                const IS_LOCKED: bool = $is_locked;
            }
        )*
    };
}

kinds! {
    paceline_object = 1, "an object", false;
    paceline_collection = 2, "a collection", false;
    paceline_program = 3, "a program", false;
    paceline_map = 4, "a map", false;
    paceline_chain = 5, "a chain", false;
    paceline_worker = 6, "a worker", true;
    paceline_burst = 7, "a burst", true;
    paceline_pool = 8, "a pool", false;
    paceline_host = 9, "a host", true;
    paceline_filter = 10, "a filter", false;
    paceline_builder = 11, "a builder", true;
    paceline_error = 12, "an error", false;
}

// Not in the macro: cbindgen does not look into it.

/// Contents of an object file: programs and maps, as the file describes them. Nothing is made yet. Any number of threads may use it.
pub struct paceline_object {
    _private: (),
}

/// The maps of an object, made and filled, and its programs, to be verified. Any number of threads may use it.
pub struct paceline_collection {
    _private: (),
}

/// A program, ready to run, with its maps. Any number of threads may use it.
pub struct paceline_program {
    _private: (),
}

/// A map. Any number of threads may use it, while programs do.
pub struct paceline_map {
    _private: (),
}

/// Programs that run one after the other, and can be changed while they do. Any number of threads may use it.
pub struct paceline_chain {
    _private: (),
}

/// Runner of a chain on one thread. One thread at a time.
pub struct paceline_worker {
    _private: (),
}

/// Up to 64 packets. One thread at a time.
pub struct paceline_burst {
    _private: (),
}

/// The caller's memory, divided into frames that bursts can hold. Any number of threads may use it.
pub struct paceline_pool {
    _private: (),
}

/// State that programs observe besides packets and maps: CPU, time, chance, network; and who gets their events. One thread at a time.
pub struct paceline_host {
    _private: (),
}

/// A packet filter. Any number of threads may use it.
pub struct paceline_filter {
    _private: (),
}

/// An object in the making: programs and maps that come from elsewhere than a file. One thread at a time.
pub struct paceline_builder {
    _private: (),
}

/// Details of a call that failed. Any number of threads may read it.
pub struct paceline_error {
    _private: (),
}
