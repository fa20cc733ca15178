//! Programs from text, with maps by their places.
#![allow(dead_code, reason = "each test uses a part")]

use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

pub(crate) const KIND: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// Maps by their places.
struct ByIndex;

impl Names for ByIndex {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        name.parse().ok()
    }
}

pub(crate) fn spec(text: &str) -> ProgramSpec {
    let insns = assemble(text, &ByIndex).expect("assembles").encode().expect("encodes");
    ProgramSpec { license: "GPL".into(), ..ProgramSpec::new("test", KIND, insns) }
}

pub(crate) fn verified(text: &str, maps: &[MapSpec]) -> Verified {
    verified_as(KIND, text, maps)
}

pub(crate) fn verified_as(kind: ProgramKind, text: &str, maps: &[MapSpec]) -> Verified {
    let spec = ProgramSpec { kind, ..spec(text) };
    verify(&spec, maps, None, &Options::default()).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}
