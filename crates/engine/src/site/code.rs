//! Access to the code of a dispatcher, for listings.

use crate::exec::Function;
use paceline_epoch::Domain;

use super::call_site::Site;
use super::choice::Choice;
use super::image::Image;
use crate::target::Target;

/// A copy of the code of a dispatcher.
#[derive(Clone, Debug)]
pub struct DispatcherCode {
    address: u64,
    bytes: Vec<u8>,
    functions: Vec<Function>,
    targets: Vec<(u64, String)>,
}

impl DispatcherCode {
    pub(super) fn of(image: &Image) -> Option<Self> {
        let block = image.block.as_ref()?;
        let names = |(_, target): &(u64, Target)| {
            let name = target.name();
            let burst = target.burst_entry as usize as u64;
            [(target.address(), name.to_owned()), (burst, format!("{name}.burst"))]
        };
        Some(Self {
            address: block.address() as u64,
            bytes: block.bytes().to_vec(),
            functions: block.functions().to_vec(),
            targets: image.targets.iter().flat_map(names).collect(),
        })
    }

    /// Address of the first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The instructions.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The dispatcher of single packets and that of bursts.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The program that is entered at an address.
    #[must_use]
    pub fn symbol(&self, address: u64) -> Option<String> {
        self.targets.iter().find(|(target, _)| *target == address).map(|(_, name)| name.clone())
    }
}

impl<C: Choice> Site<C> {
    /// The dispatcher's code as it is now; `None` where it is a search in Rust, or has no slot.
    #[must_use]
    pub fn code(&self) -> Option<DispatcherCode> {
        let mut reader = Domain::global().reader();
        let pin = reader.pin();
        DispatcherCode::of(self.shared.slots.image(&pin))
    }
}
