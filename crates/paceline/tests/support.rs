//! `docs/SUPPORT.md` is written from the tables that the engines go by.
//! `PACELINE_WRITE_DOCS=1 cargo test -p paceline --test support` writes it anew.

use std::fs;

use paceline::helper::Helper;
use paceline::kfunc::{ABSENT, Kfunc};
use paceline::{MapKind, ProgramKind, XdpAttach};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SUPPORT.md");
const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

const HEAD: &str = "\
# Support matrix

Every map type of the kernel, and every helper and kernel function that XDP programs, TC classifiers and socket filters may
call there. `paceline inspect OBJECT` says the same of an object; unsupported features are refused by name when a program is loaded.
The tables are those of the verifier and the engines: `PACELINE_WRITE_DOCS=1 cargo test -p paceline --test support` writes this page.
";

const TAIL: &str = "
## Differences from the kernel

- Sockets and tracked connections are those of the network that the host is given; there is no namespace but the packet's own. Of
  several sockets with `SO_REUSEPORT` the first is found. Connections that programs insert are there for all hosts of that network.
  TCP's cookies have another secret.
- A TC classifier's `__sk_buff` has `mark`, `priority`, `tc_index`, `tc_classid`, `cb`, `tstamp` and `hash` 0 when the packet comes, and
  after the run they are in `Host::sk_buff`. `pkt_type` is that of a packet for this host, `napi_id`, `gso_*` and `hwtstamp` are 0,
  `wire_len` is the length as the packet came, and `sk` is refused. A VLAN tag stays in the packet until a program pops it; a pushed
  one lies beside the packet, and goes into it when the run ends. Packets grow at their head by up to 216 bytes and at their end up to
  the buffer's; then it is `ENOMEM`. `bpf_get_hash_recalc` has another key and function. No network card has summed a packet:
  `BPF_F_RECOMPUTE_CSUM` does nothing and `bpf_csum_update` is `ENOTSUPP`, as in a test run of the kernel's.
- `bpf_probe_read_kernel` reads the packet, what `bpf_cast_to_kern_ctx` gives and the program's connections; other addresses are
  `EFAULT` or `ERANGE`. `bpf_cast_to_kern_ctx` is for XDP programs only, with the fields that [VERIFIER](VERIFIER.md) names.
- Text and addresses in formats (`%s`, `%pI4`) are read from the packet, the values of the program's own maps and the stack of the
  function that prints; elsewhere there is nothing.
- `bpf_timer_cancel` does not wait for the timer's function where another worker is in it; in the function itself it is `EDEADLK`.
- `bpf_redirect_neigh` names its interface, and a pipeline counts the packet as one without target: nothing writes the neighbor's
  link-layer header, and the address of a next hop is not kept.
- Packets come without a tunnel key, and no device encapsulates them: the key and options of `bpf_skb_set_tunnel_key` and
  `bpf_skb_set_tunnel_opt` stay with the packet for programs that ask. `bpf_sk_assign` changes nothing, since sockets receive no packets.
- Entries of device maps take any interface but 0, those of maps of AF_XDP sockets any number: who runs the pipeline gives them a meaning.
- User space stores in `sockmap` and `sockhash` the place of a socket among the `ss` lines of the network, from 1, in the place of
  a descriptor, and gets it back in the place of a cookie. References are not counted, and no packet reaches a socket.
- Which element a full LRU table evicts is unspecified. It is one that was not used for a while, by a hand that goes round the table;
  the kernel has lists.
- A packet of any length lies in one piece. The kernel has the first 3,520 bytes of its test runs, or a page of a driver's, in one, and
  the rest in fragments, which only programs of `xdp.frags` sections get.
- A change of a prefix of 9 to 23 bits in an IPv4 trie costs the more the more routes lie below the prefix.
- Hashes and tries keep room for a bounded number of elements that were replaced or removed in bursts that still run. A program that
  uses it up gets `ENOMEM` until the burst is over; the kernel allocates more.
";

fn supported(needs: Option<&str>) -> String {
    needs.map_or_else(|| "yes".to_owned(), |needs| format!("no: needs {needs}"))
}

/// A table with a line for each key: all names that have it.
fn table(head: &str, rule: &str, rows: impl Iterator<Item = (String, String)>) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (key, name) in rows {
        match lines.iter_mut().find(|(other, _)| *other == key) {
            Some((_, names)) => names.push_str(&format!(", {name}")),
            None => lines.push((key, name)),
        }
    }
    let lines: String = lines.iter().map(|(key, names)| format!("| {key} | {names} |\n")).collect();
    format!("\n{head}\n{rule}\n{lines}")
}

fn page() -> String {
    let maps = MapKind::ALL.iter().map(|kind| (supported(kind.needs()), kind.to_string()));
    let kinds = [(XDP, "XDP"), (ProgramKind::SchedCls, "TC"), (ProgramKind::SocketFilter, "socket filters")];
    let helpers = Helper::all().iter().filter_map(|helper| {
        let callers = kinds.iter().filter(|(kind, _)| helper.is_for(*kind)).map(|(_, name)| *name);
        let callers = callers.collect::<Vec<_>>().join(", ");
        let key = format!("{callers} | {}", supported(helper.needs()));
        (!callers.is_empty()).then(|| (key, helper.name.to_owned()))
    });
    let present = Kfunc::all().iter().map(|kfunc| (supported(None), kfunc.name.to_owned()));
    let absent = ABSENT.iter().map(|(name, needs)| {
        assert!(Kfunc::from_name(name).is_none(), "{name} is there");
        (supported(Some(needs)), (*name).to_owned())
    });
    HEAD.to_owned()
        + "\n## Map types\n"
        + &table("| supported | map types |", "|---|---|", maps)
        + "\n## Helpers\n"
        + &table("| programs | supported | helpers |", "|---|---|---|", helpers)
        + "\n## Kernel functions\n"
        + &table("| supported | functions |", "|---|---|", present.chain(absent))
        + TAIL
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
