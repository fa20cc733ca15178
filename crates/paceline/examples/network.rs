//! Gives programs a network, which bpf_fib_lookup asks for routes.

use std::error::Error;
use std::sync::Arc;

use paceline::isa::{Names, assemble};
use paceline::network;
use paceline::{
    Burst, FrameMeta, Host, LoadOptions, Object, ProgramKind, ProgramSpec, RedirectTarget, XdpAttach,
};

/// As `ip -j addr`, `ip -j route` and `ip -j neigh` print it; `network::of_host` asks the tools of this machine.
const NETWORK: &str = r#"
    [{"ifindex": 2, "ifname": "eth0", "mtu": 1500, "address": "02:00:00:00:00:01", "link_type": "ether"},
     {"ifindex": 3, "ifname": "eth1", "mtu": 1500, "address": "02:00:00:00:00:02", "link_type": "ether"}]
    [{"dst": "10.0.0.0/8", "dev": "eth1", "gateway": "192.0.2.1"}]
    [{"dst": "192.0.2.1", "dev": "eth1", "lladdr": "02:00:00:00:00:03", "state": ["REACHABLE"]}]
"#;

/// Redirects all packets to where 10.1.2.3 is, by a `struct bpf_fib_lookup` on the stack.
const FORWARD: &str = "
    r6 = 0
    *(u64 *)(r10 - 64) = r6
    *(u64 *)(r10 - 56) = r6
    *(u64 *)(r10 - 48) = r6
    *(u64 *)(r10 - 40) = r6
    *(u64 *)(r10 - 32) = r6
    *(u64 *)(r10 - 24) = r6
    *(u64 *)(r10 - 16) = r6
    *(u64 *)(r10 - 8) = r6
    r6 = 2
    *(u8 *)(r10 - 64) = r6      # family: AF_INET
    r6 = *(u32 *)(r1 + 12)
    *(u32 *)(r10 - 56) = r6     # ifindex: where the packet came in
    r6 = 0x0302010a
    *(u32 *)(r10 - 32) = r6     # ipv4_dst
    r2 = r10
    r2 += -64
    r3 = 64
    r4 = 0
    call bpf_fib_lookup
    if r0 == 0 goto found
    r0 = 2                      # XDP_PASS
    exit
found:
    r1 = *(u32 *)(r10 - 56)     # ifindex: where it goes out
    r2 = 0
    call bpf_redirect
    exit
";

/// Names that the program text refers to.
struct Helpers;

impl Names for Helpers {
    fn helper(&self, name: &str) -> Option<i32> {
        [("bpf_redirect", 23), ("bpf_fib_lookup", 69)].iter().find(|row| row.0 == name).map(|row| row.1)
    }
}

#[allow(clippy::print_stdout, reason = "the interface is what it is for")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let xdp = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let mut spec = ProgramSpec::new("forward", xdp, assemble(FORWARD, &Helpers)?.encode()?);
    spec.license = "GPL".to_owned();
    let program = Object::of_program(spec).load(&LoadOptions::default())?.program(None)?;

    let mut host = Host::default();
    host.set_network(Arc::new(network::parse(NETWORK)?));
    let mut burst = Burst::default();
    burst.push(&[0; 60], FrameMeta::default())?;
    burst.frame_mut(0).set_ingress(2, 0);
    program.run_burst(&mut burst, &mut host)?;

    let redirect = burst.frame(0).redirect().ok_or("no redirect")?;
    println!("{redirect:?}");
    assert_eq!(redirect.target, RedirectTarget::Interface { ifindex: 3 });
    Ok(())
}
