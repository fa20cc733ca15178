//! Text cases as JSON, with what the public library does with them: for tests of its bindings.
//!
//! Bytes are hexadecimal. A case says its types, maps and programs as they are before anything is made, then its runs with the changes of
//! maps before each, what the case expects and the outcome of each here, and at last the elements of its maps.

mod library;

use library::Library;
use paceline::{InitialValue, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use serde_json::{Value as Json, json};

use crate::case::{ByteOrder, Case, CaseKind, Change, Expect, Run};
use crate::hex::hex;

/// A case as JSON; `None` for those that the public library does not run alone: of other program types, over plain memory, of chains,
/// for machines of the other byte order, and of entries of device and CPU maps.
#[must_use]
pub fn export(name: &str, case: &Case) -> Option<Json> {
    let foreign = case.byte_order.is_some_and(|order| order != ByteOrder::NATIVE);
    let is_plain =
        |program: &ProgramSpec| matches!(program.kind, ProgramKind::Xdp { attach: XdpAttach::Interface, .. });
    let egress = case.runs.iter().any(|run| run.context.egress_ifindex != 0);
    let is_alone = case.kind == CaseKind::Xdp && case.chain.is_none() && case.classic.is_none() && !foreign;
    if !is_alone || egress || !case.programs.iter().all(is_plain) {
        return None;
    }
    let mut json = json!({
        "name": name,
        "btf": hex(&case.btf.to_bytes()),
        "maps": case.maps.iter().map(map).collect::<Vec<_>>(),
        "programs": case.programs.iter().map(program).collect::<Vec<_>>(),
        "network": case.network.as_ref().map(|network| network.text.as_str()),
    });
    match Library::load(case) {
        Ok(mut library) => {
            let runs = case.runs.iter().map(|of| run(case, of, library.run(of)));
            json["runs"] = runs.collect();
            json["after"] = library.contents();
        }
        Err(refusal) => json["refused"] = refusal.into(),
    }
    Some(json)
}

fn run(case: &Case, run: &Run, outcome: Json) -> Json {
    json!({
        "data": hex(&run.data),
        "metadata": hex(&run.meta),
        "ingress": run.context.ingress_ifindex,
        "queue": run.context.rx_queue_index,
        "time": library::TIME,
        "wait_ms": run.wait_ms,
        "changes": run.changes.iter().map(|of| change(case, of)).collect::<Vec<_>>(),
        "expected": expected(&run.expect),
        "outcome": outcome,
    })
}

/// Expected outcome of the case, in the same members.
fn expected(expect: &Expect) -> Json {
    let mut json = serde_json::Map::new();
    let code = expect.r0.map(|r0| r0 as u32).or(expect.verdict.map(|verdict| verdict as u32));
    json.extend(code.map(|code| ("code".to_owned(), code.into())));
    json.extend(expect.output.as_ref().map(|data| ("data".to_owned(), hex(data).into())));
    json.extend(expect.output_meta.as_ref().map(|data| ("metadata".to_owned(), hex(data).into())));
    json.extend(expect.redirect.as_ref().map(|target| ("redirect".to_owned(), target.as_str().into())));
    Json::Object(json)
}

fn change(case: &Case, change: &Change) -> Json {
    let map = case.maps.get(change.map).map(|map| map.name.as_str());
    json!({ "map": map, "key": hex(&change.key), "value": change.value.as_ref().map(initial) })
}

fn initial(value: &InitialValue) -> Json {
    match value {
        InitialValue::Bytes(bytes) => json!({ "bytes": hex(bytes) }),
        InitialValue::Map(index) => json!({ "map": index }),
        InitialValue::Program(name) => json!({ "program": name }),
    }
}

fn map(spec: &MapSpec) -> Json {
    let element = |(key, value): &(Vec<u8>, InitialValue)| json!([hex(key), initial(value)]);
    json!({
        "name": spec.name,
        "kind": spec.kind.number(),
        "key_size": spec.key_size,
        "value_size": spec.value_size,
        "max_entries": spec.max_entries,
        "flags": spec.flags.0,
        "extra": spec.extra,
        "key_type": spec.key_type,
        "value_type": spec.value_type,
        "inner": spec.inner.as_deref().map(map),
        "frozen": spec.frozen,
        "contents": spec.contents.iter().map(element).collect::<Vec<_>>(),
    })
}

fn program(spec: &ProgramSpec) -> Json {
    let function = |f: &paceline::FunctionInfo| {
        json!([f.start, f.name, f.linkage == paceline::Linkage::Global, f.btf_id])
    };
    let kfunc = |f: &paceline::KfuncRef| json!([f.name, f.weak, f.btf_id]);
    json!({
        "name": spec.name,
        "frags": matches!(spec.kind, ProgramKind::Xdp { frags: true, .. }),
        "insns": hex(&spec.insns.iter().flat_map(|insn| insn.to_le_bytes()).collect::<Vec<_>>()),
        "functions": spec.functions.iter().map(function).collect::<Vec<_>>(),
        "kfuncs": spec.kfuncs.iter().map(kfunc).collect::<Vec<_>>(),
        "license": spec.license,
    })
}
