//! Reads and writes maps: with Rust types, and as the bytes of the kernel.

use std::error::Error;

use paceline::{Burst, FrameMeta, Host, LoadOptions, Object, PerCpu};

const COUNTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");

#[allow(clippy::print_stdout, reason = "the counts are what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let counter = Object::open(COUNTER)?.load(&LoadOptions::default())?;
    // `struct traffic` is two `__u64`: packets and bytes. Other structures derive the traits of zerocopy, and `btf_type!` says which
    // fields they have, to be compared with the object's.
    let traffic = counter.typed_map::<u16, [u64; 2]>("by_ethertype")?;
    traffic.insert(&0x0800, &[100, 6000])?;

    let mut burst = Burst::default();
    let mut packet = [0; 60];
    packet[12..15].copy_from_slice(&[8, 0, 0x45]);
    burst.push(&packet, FrameMeta::default())?;
    counter.program(None)?.run_burst(&mut burst, &mut Host::default())?;

    assert_eq!(traffic.lookup(&0x0800)?, Some([101, 6060]));
    for (ethertype, [packets, bytes]) in traffic.iter()? {
        println!("{ethertype:#06x}: {packets} packets, {bytes} bytes");
    }
    // A value of a per-CPU map is a list of the values of all CPUs.
    let by_protocol = counter.typed_map::<u32, PerCpu<[u64; 2]>>("by_protocol")?;
    println!("protocol 0: {:?}", by_protocol.lookup(&0)?);
    // The same as bytes.
    assert_eq!(traffic.map().lookup(&0x0800_u16.to_ne_bytes())?.len(), 16);
    Ok(())
}
