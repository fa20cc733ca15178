//! Network devices of Linux as ports, for a [`Pipeline`](crate::Pipeline).
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use paceline::device::{Umem, XdpDevice, XdpOptions, XdpPort};
//! use paceline::{Idle, LoadOptions, Object, Pipeline, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Object::open("firewall.o")?.load(&LoadOptions::default())?.program(None)?;
//! let device = XdpDevice::open("eth0", &Umem::new(4096)?, XdpOptions::default())?;
//! let ifindex = device.interface().index();
//!
//! let pipeline = Pipeline::new();
//! pipeline.set_program(ifindex, Some(&Target::from(program.program())))?;
//! let mut worker = pipeline.worker(0);
//! worker.attach(ifindex, 0, XdpPort::open(&device, 0)?);
//! device.attach()?;
//! worker.run(&AtomicBool::new(false), Idle::Sleep, |_| {})?;
//! # Ok(())
//! # }
//! ```

pub use paceline_ports::device::{
    AttachMode, DpdkPort, Interface, MemifOptions, MemifPort, MemifRole, OpenError, SocketPort, Step,
    TapPort, Umem, XdpDevice, XdpOptions, XdpPort,
};
