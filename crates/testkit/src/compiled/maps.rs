//! The maps of the prelude, as the generator sees them. Values are of type `struct val` unless it says otherwise.

/// How a key is made.
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
    /// Whether elements come and go.
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
