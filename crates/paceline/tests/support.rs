//! `docs/SUPPORT.md` is written from the tables that the engines go by.
//! `PACELINE_WRITE_DOCS=1 cargo test -p paceline --test support` writes it anew.

use std::fmt::Write;
use std::fs;

use paceline::helper::Helper;
use paceline::kfunc::{ABSENT, Kfunc};
use paceline::{MapKind, ProgramKind, XdpAttach};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SUPPORT.md");
const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

const HEAD: &str = "\
# Support matrix

Every map type of the kernel, and every helper and kernel function that XDP programs, TC classifiers and socket filters may
call there.
This page is written from the tables that the verifier and the engines go by, and a test holds it against them
(`cargo test -p paceline --test support`; with `PACELINE_WRITE_DOCS=1` it writes the page). `paceline inspect OBJECT` says
the same of an object. Unsupported features are refused by name when a program is loaded.
";

const TAIL: &str = "
## Where they differ from the kernel's

- Sockets and tracked connections are those of the network that the host is given; there is no namespace but the packet's own, and none of
  several sockets with `SO_REUSEPORT` is chosen by a hash: the first one is found. Connections that programs put into the table are
  there for all hosts of that network. TCP's cookies are the kernel's with another secret.
- A TC classifier's `__sk_buff` has `mark`, `priority`, `tc_index`, `tc_classid`, `cb`, `tstamp` and `hash` 0 when the packet
  comes, and after the run they are in `Host::sk_buff`. `pkt_type` is that of a packet for this host, `napi_id`, `gso_*`
  and `hwtstamp` are 0, and `wire_len` is the length of the packet as it came. `sk` is refused, which needs sockets. A VLAN tag of
  the packet stays in it until a program pops it; one that a program pushes lies beside the packet, as in the kernel, and goes into
  it when the run ends. Packets grow at their head by up to 216 bytes and at their end as far as the buffer goes; then it is
  `ENOMEM`. `bpf_get_hash_recalc` has another key and another function. No network card has summed a packet, so that
  `BPF_F_RECOMPUTE_CSUM` does nothing and `bpf_csum_update` is `ENOTSUPP`, as in a test run of the kernel's.
- `bpf_probe_read_kernel` reads the packet, what `bpf_cast_to_kern_ctx` gives and the connections that the program has, on every engine; other
  addresses are `EFAULT` or `ERANGE`.
  There is no other memory of a kernel, and the program's own it reads by itself.
- `bpf_cast_to_kern_ctx` is for XDP programs only, and what it gives has the fields that [VERIFIER.md](VERIFIER.md) names.
- Text and addresses in formats (`%s`, `%pI4` and the like of `bpf_trace_printk`, `bpf_trace_vprintk`, `bpf_snprintf`) are read from the
  packet, the values of the program's own maps and the stack of the function that prints, on every engine; elsewhere there is
  nothing, where the kernel prints whatever memory has.
- `bpf_timer_cancel` does not wait for the timer's function where another worker is in it, as no packet waits for another worker here.
  In the function itself it is `EDEADLK`, as in the kernel.
- A redirect to a neighbor (`bpf_redirect_neigh`) names its interface, and a pipeline counts it as one without target: nothing here
  writes the neighbor's link-layer header, and the address of a next hop is not kept.
- Packets come without a tunnel key, and no device encapsulates them: the key and options of `bpf_skb_set_tunnel_key` and
  `bpf_skb_set_tunnel_opt` stay with the packet for programs that ask for them. `bpf_sk_assign` changes nothing about the packet, since
  sockets receive none.
- Entries of device maps take any interface but 0, and those of maps of AF_XDP sockets any number: what these stand for is up to who
  runs the pipeline.
- User space stores the number of a socket in `sockmap` and `sockhash`, where the kernel wants a descriptor: its place among the `ss` lines of
  the host's network, from 1. The number is what user space gets back, in place of the kernel's cookie. A program finds a socket as long as
  the network has one of that number, and references are not counted. No packet reaches a socket: nothing that redirects to one
  is for XDP.
- The element that a full LRU table evicts is unspecified. It is one that was not used for a while, as in the kernel, but the kernel has lists
  and goes by when an element came, and here a hand goes round the table: where it stands, and which elements wait for the end of a
  burst, depends on what the table and its workers did before.
- A packet of any length lies in one piece. The kernel has the first 3,520 bytes of its test runs, or a page of a driver's, in one and the
  rest in fragments, which only programs of `xdp.frags` sections get and which they reach through helpers.
- A change of a prefix of 9 to 23 bits in an IPv4 trie writes the parts of the trie anew which lie below the prefix, so its cost grows
  with the routes there; that of a longer or a shorter one does not. Look-ups are fast for that.
- Hashes and tries keep room for a bounded number of elements that were replaced or removed in bursts that still run. A program that
  uses it up within one burst gets `ENOMEM` until the burst is over; the kernel allocates more.
";

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Map types\n\n| map type | supported | needs |\n|---|---|---|\n");
    for &kind in MapKind::ALL {
        let _ = writeln!(page, "| {kind} | {} | {} |", yes(kind.is_supported()), kind.needs().unwrap_or(""));
    }
    page.push_str(
        "\n## Helpers\n\n| helper | XDP | TC | socket filters | supported | needs |\n|---|---|---|---|---|---|\n",
    );
    for helper in Helper::all() {
        let kinds = [XDP, ProgramKind::SchedCls, ProgramKind::SocketFilter].map(|kind| helper.is_for(kind));
        let [xdp, classifier, filter] = kinds;
        if kinds == [false; 3] {
            continue;
        }
        let take = helper.needs().unwrap_or("");
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {take} |",
            helper.name,
            yes(xdp),
            yes(classifier),
            yes(filter),
            yes(helper.is_supported())
        );
    }
    page.push_str("\n## Kernel functions\n\n| function | supported | needs |\n|---|---|---|\n");
    for kfunc in Kfunc::all() {
        let _ = writeln!(page, "| {} | yes | |", kfunc.name);
    }
    for (name, take) in ABSENT {
        assert!(Kfunc::from_name(name).is_none(), "{name} is there");
        let _ = writeln!(page, "| {name} | no | {take} |");
    }
    page + TAIL
}

#[test]
fn the_page_says_what_is_there() {
    let page = page();
    if std::env::var_os("PACELINE_WRITE_DOCS").is_some() {
        fs::write(PATH, &page).expect("the page can be written");
    }
    let written = fs::read_to_string(PATH).unwrap_or_default();
    assert!(written == page, "docs/SUPPORT.md is not current: PACELINE_WRITE_DOCS=1 writes it");
}
