//! What the running program holds: connections, and its packet as kernel structures.

use std::sync::Arc;

use paceline_frame::Frame;
use paceline_network::Connection;

use crate::kernel_context::KernelContext;

/// Kernel memory of the running program.
#[derive(Default)]
pub struct Held {
    /// Connections that the running program holds.
    connections: Vec<Arc<Connection>>,
    /// The packet as kernel structures, from the first request of a program on.
    kernel_context: Option<Box<KernelContext>>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

impl Held {
    /// Keeps a connection for the running program, and returns the address of its record.
    pub fn keep_connection(&mut self, connection: Arc<Connection>) -> u64 {
        let address = connection.record().expose_provenance() as u64;
        self.connections.push(connection);
        address
    }

    /// The connection of a record, if the program holds it.
    pub fn connection(&self, record: u64) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|connection| connection.record().addr() as u64 == record)
    }

    /// Drops one reference of the program to a connection.
    pub fn drop_connection(&mut self, record: u64) {
        let found = self.connections.iter().position(|known| known.record().addr() as u64 == record);
        if let Some(index) = found {
            self.connections.swap_remove(index);
        }
    }

    /// The address of a packet's `struct xdp_buff`.
    pub fn kernel_context(&mut self, frame: &Frame) -> u64 {
        self.kernel_context.get_or_insert_with(KernelContext::new).describe(frame)
    }

    /// Updates the kernel structures after the packet's ends moved.
    pub fn packet_moved(&self, frame: &Frame) {
        if let Some(context) = &self.kernel_context {
            context.follow(frame);
        }
    }

    /// Copies bytes of a connection or of the kernel structures. False if the bytes are not all in one of these.
    pub(super) fn copy(&self, address: u64, bytes: &mut [u8]) -> bool {
        let in_connection = |connection: &Arc<Connection>| {
            let offset = address.checked_sub(connection.record().addr() as u64);
            let offset = offset.and_then(|offset| usize::try_from(offset).ok());
            offset.is_some_and(|offset| connection.copy_record(offset, bytes))
        };
        self.connections.iter().any(in_connection)
            || self.kernel_context.as_ref().is_some_and(|context| context.copy(address, bytes))
    }
}
