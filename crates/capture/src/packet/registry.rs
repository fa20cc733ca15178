//! Look-up of protocols.

use crate::packet::protocol::{Next, Protocol};
use crate::packet::table::PROTOCOLS;

impl Protocol {
    /// All protocols.
    pub const ALL: &[Self] = PROTOCOLS;

    /// The protocol of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|protocol| protocol.name == name)
    }

    /// The protocol that follows a header, where it is known.
    pub(crate) fn next_of(&self, header: &[u8], rest: &[u8]) -> Option<&'static Self> {
        let name = match self.next {
            Next::Payload => return None,
            Next::Always(name) => name,
            Next::Field { name, table, applies } => {
                let number = self.field(name).filter(|_| applies(header))?.number(header);
                table.iter().find(|(known, _)| u128::from(*known) == number)?.1
            }
            Next::Computed(find) => find(header, rest)?,
        };
        Self::named(name)
    }
}
