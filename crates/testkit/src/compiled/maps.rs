//! The maps of the prelude. Values are `struct val` unless noted.

/// Type and range of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// A `u32` below a number.
    Small(u32),
    /// A `u64` below 16.
    Long,
    /// A `struct key`.
    Struct,
    /// A `struct prefix`.
    Prefix,
}

/// A map of the prelude.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) key: KeyForm,
    /// Whether elements can be deleted.
    pub(super) keyed: bool,
}

const fn table(name: &'static str, key: KeyForm, keyed: bool) -> Table {
    Table { name, key, keyed }
}

pub(super) const TABLES: [Table; 9] = [
    table("m_array", KeyForm::Small(5), false),
    table("m_hash", KeyForm::Small(12), true),
    table("m_hash8", KeyForm::Long, true),
    table("m_keyed", KeyForm::Struct, true),
    table("m_cpu_array", KeyForm::Small(3), false),
    table("m_cpu_hash", KeyForm::Small(12), true),
    table("m_lru", KeyForm::Small(32), true),
    table("m_cpu_lru", KeyForm::Small(32), true),
    table("m_trie", KeyForm::Prefix, true),
];
