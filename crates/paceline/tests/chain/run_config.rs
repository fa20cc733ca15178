//! libxdp's metadata, from handmade types.

use paceline::chain::{Actions, RunConfig, RunConfigError};
use paceline_btf::{Btf, Composite, DataSection, Member, SectionVar, SymbolLinkage, Type, TypeId};
use paceline_frame::Verdict;

/// The type that `__uint(name, number)` produces.
fn uint(btf: &mut Btf, number: u32) -> TypeId {
    let array = btf.add(Type::Array { element: 0, index: 0, count: number });
    btf.add(Type::Ptr(array))
}

fn described(variable: &str, linkage: SymbolLinkage, members: &[(&str, u32)]) -> Btf {
    let mut btf = Btf::default();
    let members: Vec<_> = members
        .iter()
        .zip(0..)
        .map(|((name, number), index)| Member {
            ty: uint(&mut btf, *number),
            name: btf.add_name(name),
            bit_offset: 64 * index,
            bit_size: 0,
        })
        .collect();
    let name = btf.add_name("");
    let size = 8 * members.len() as u32;
    let ty = btf.add(Type::Struct(Composite { name, size, members: members.into() }));
    let name = btf.add_name(variable);
    let ty = btf.add(Type::Var { name, ty, linkage });
    let name = btf.add_name(".xdp_run_config");
    let vars = Box::new([SectionVar { ty, offset: 0, size }]);
    btf.add(Type::DataSection(DataSection { name, size: 0, vars }));
    btf
}

#[test]
fn priority_and_actions_are_read() {
    let btf = described(
        "_fw",
        SymbolLinkage::Global,
        &[("priority", 10), ("XDP_PASS", 0), ("XDP_DROP", 1), ("XDP_TX", 2)],
    );
    let config = RunConfig::of(&btf, "fw").unwrap().unwrap();
    assert_eq!(config, RunConfig { priority: 10, actions: Actions::from_iter([Verdict::Drop, Verdict::Tx]) });
    assert_eq!(RunConfig::of(&btf, "f"), Ok(None));
    assert_eq!(RunConfig::of(&Btf::default(), "fw"), Ok(None));
}

#[test]
fn what_is_not_said_has_its_default() {
    let btf = described("_fw", SymbolLinkage::Static, &[("XDP_REDIRECT", 1)]);
    let actions = Actions::from_iter([Verdict::Pass, Verdict::Redirect]);
    assert_eq!(RunConfig::of(&btf, "fw"), Ok(Some(RunConfig { priority: 50, actions })));
}

#[test]
fn mistakes_are_named() {
    let btf = described("_fw", SymbolLinkage::Global, &[("priorty", 10)]);
    let error = RunConfig::of(&btf, "fw").unwrap_err();
    assert_eq!(error.to_string(), "XDP_RUN_CONFIG(fw): unknown member priorty; did you mean `priority`?");
    let btf = described("_fw", SymbolLinkage::Extern, &[]);
    assert_eq!(RunConfig::of(&btf, "fw"), Err(RunConfigError::Extern("fw".to_owned())));
}
