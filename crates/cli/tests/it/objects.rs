//! `paceline inspect`, `paceline dump`, completions and help.

use crate::common::{command, example, fixture, paceline};
use paceline::Object;
use paceline::helper::Helper;
use paceline::isa::{Names, assemble};

#[test]
fn inspect_tells_what_is_in_an_object() {
    let vlan = example("vlan.o");
    let out = paceline(["inspect", &vlan]).ok();
    for line in [
        &format!("{vlan}: license Dual MIT/GPL, BTF, source lines"),
        "program vlan_pop",
        "  type          xdp, for an interface",
        "  helpers       bpf_map_lookup_elem, bpf_xdp_adjust_head",
        "program vlan_push",
        "Paceline has everything that it needs",
    ] {
        assert!(out.lines().any(|l| l == line), "no line {line:?} in\n{out}");
    }
    let json = paceline(["inspect", "--json", &vlan]).json();
    let object = Object::open(&vlan).unwrap();
    assert_eq!(json["programs"][0]["name"], "vlan_pop");
    assert_eq!(json["programs"][0]["slots"], object.programs()[0].insns.len());
    assert_eq!(json["programs"][1]["helpers"][1], "bpf_xdp_adjust_head");
    assert_eq!(json["maps"].as_array().unwrap().len(), object.maps().len());
    assert_eq!(json["maps"][0]["type"], object.maps()[0].kind.name());
    assert_eq!(json["missing"], serde_json::json!([]));
}

#[test]
fn inspect_tells_all_that_is_missing() {
    let needs = fixture("needs.o");
    let out = paceline(["inspect", &needs]).ok();
    let tail = "
skipped, because they are no programs that run here
  classify  section action

needs what Paceline does not have
  map groups     map type cgroup_array: needs kernel tasks, control groups or memory
  program needs  helper bpf_get_current_pid_tgid: needs kernel tasks, control groups or memory
";
    assert!(out.ends_with(tail), "{out}");
    let json = paceline(["inspect", "--json", &needs]).json();
    assert_eq!(json["missing"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["missing"][1],
        serde_json::json!({
            "user": "program needs",
            "what": "helper bpf_get_current_pid_tgid: needs kernel tasks, control groups or memory",
            "unsupported": true
        })
    );
    assert_eq!(json["skipped"][0]["section"], "action");
    assert_eq!(json["programs"][0]["frags"], true);
}

#[test]
fn dump_shows_instructions_beside_their_source() {
    let out = paceline(["dump", &fixture("outside.o")]).ok();
    let expected = "
; program outside, section xdp, 9 instruction slots

; int outside(struct xdp_md *ctx)
<outside>:
; return byte_59(ctx) ? XDP_PASS : XDP_DROP; @ ./crates/cli/tests/fixtures/outside.bpf.c:16
     0: call byte_59
     1: w1 = w0
     2: w0 = 1
     3: if w1 == 0 goto L5
     4: w0 = 2
L5:
     5: exit

; static int byte_59(struct xdp_md *ctx)
<byte_59>:
; unsigned char *data = (void *)(long)ctx->data; @ ./crates/cli/tests/fixtures/outside.bpf.c:8
     6: r1 = *(u32 *)(r1 + 0)
; return data[59]; @ ./crates/cli/tests/fixtures/outside.bpf.c:10
     7: r0 = *(u8 *)(r1 + 59)
     8: exit
";
    assert_eq!(out.split_once('\n').unwrap().1, expected);
}

#[test]
fn dump_names_helpers_maps_and_variables() {
    let out = paceline(["dump", &example("vlan.o:vlan_pop")]).ok();
    assert!(out.contains(": call bpf_xdp_adjust_head\n"), "{out}");
    assert!(out.contains("= map[vlans] ll\n"), "{out}");
    assert!(out.contains("= map_value[.rodata] + 0 ll  ; &pop_tags\n"), "{out}");
    assert!(!out.contains("vlan_push"), "only the program that was asked for");
    let json = paceline(["dump", "--json", &example("vlan.o")]).json();
    assert_eq!(json["programs"][1]["name"], "vlan_push");
    let insns = json["programs"][0]["instructions"].as_array().unwrap();
    let jump = insns.iter().find(|i| i["text"].as_str().unwrap().contains(" goto L")).unwrap();
    assert!(jump["text"].as_str().unwrap().ends_with(&format!(" goto L{}", jump["target"])));
    assert_eq!(insns[0]["source"]["line"], 104);
}

/// Resolves the names that a listing has.
struct ObjectNames<'a>(&'a Object);

impl Names for ObjectNames<'_> {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        self.0.maps().iter().position(|map| map.name == name).and_then(|i| i32::try_from(i).ok())
    }
}

#[test]
fn listings_assemble_to_the_same_program() {
    let names = ["firewall.o", "counter.o", "balancer.o", "vlan.o", "reflector.o", "sampler.o"];
    for path in names.map(example) {
        let object = Object::open(&path).unwrap();
        for program in object.programs() {
            for option in [&[][..], &["--opcodes"]] {
                let target = format!("{path}:{}", program.name);
                let text = paceline([&["dump", &target], option].concat()).ok();
                let code = assemble(&text, &ObjectNames(&object))
                    .unwrap_or_else(|e| panic!("{target}: {e}\n{text}"));
                assert_eq!(code.encode().unwrap(), program.insns, "{target}");
            }
        }
    }
}

#[test]
fn completions_are_scripts_of_their_shells() {
    assert!(paceline(["completions", "bash"]).ok().contains("complete -F _paceline"));
    assert!(paceline(["completions", "zsh"]).ok().starts_with("#compdef paceline"));
    assert!(paceline(["completions", "fish"]).ok().contains("complete -c paceline"));
    paceline(["completions", "csh"]).fails(2, "invalid value 'csh'", &["bash", "zsh", "fish"]);
}

#[test]
fn help_teaches_by_example_and_has_no_color_in_a_pipe() {
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["live", "--help"],
        &["filter", "--help"],
        &["test", "--help"],
        &["why", "--help"],
        &["diff", "--help"],
        &["bench", "--help"],
        &["report", "--help"],
        &["inspect", "--help"],
        &["dump", "--help"],
        &["verify", "--help"],
        &["completions", "--help"],
    ] {
        let out = paceline(args).ok();
        let examples = out.split_once("Examples:\n").map_or("", |(_, examples)| examples);
        let commands =
            examples.lines().take_while(|line| !line.is_empty()).filter(|line| line.contains("paceline"));
        assert!((3..=6).contains(&commands.count()), "{out}");
        assert!(!out.contains('\x1b'));
    }
    let version = paceline(["--version"]).ok();
    assert_eq!(version, format!("paceline {}\n", env!("CARGO_PKG_VERSION")));
    let error = command().args(["inspect", "/nowhere"]).output().unwrap().stderr;
    assert!(error.starts_with(b"error: /nowhere: "));
}

/// Commands that make no maps would leave saved ones out.
#[test]
fn saved_maps_are_for_commands_that_make_maps() {
    for command in ["inspect", "dump"] {
        let done = paceline([command, &example("firewall.o"), "--restore-maps", "state.json"]);
        done.fails(1, "--restore-maps state.json: this command makes no maps", &[]);
    }
}
