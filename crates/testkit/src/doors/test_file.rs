//! A scene as a test file.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::scene::Scene;
use super::told::Told;
use crate::hex::hex;

/// A test of all packets, which expects what `run` tells of each.
pub(super) fn test_file(scene: &Scene, truth: &[Told], maps: &Json) -> String {
    let targets: Vec<_> = scene.subject.targets.iter().map(|target| format!("{target:?}")).collect();
    let mut text = match targets.as_slice() {
        [target] => format!("object = {target}\n"),
        several => format!("objects = [{}]\n", several.join(", ")),
    };
    for (name, path) in &scene.maps {
        let _ = writeln!(text, "maps.{name:?} = {:?}", path.display().to_string());
    }
    let _ = write!(text, "seed = {}\n\n[[test]]\nname = \"scene\"\nstep = [\n", scene.seed);
    let mut time_ns = 0;
    for (packet, told) in scene.packets.iter().zip(truth) {
        let ingress = scene.ingress.unwrap_or(packet.interface + 1);
        let wait = (packet.time_ns - time_ns) as f64 / 1e9;
        time_ns = packet.time_ns;
        let _ = write!(
            text,
            "  {{ packet = {{ hex = \"{}\" }}, wait = {wait:?}, ingress = {ingress}, queue = {}",
            hex(&packet.bytes),
            scene.queue.unwrap_or(0)
        );
        if !scene.context.is_empty() {
            let members = scene.context.iter().map(|(name, value)| format!("\"{name}\" = {value}"));
            let _ = write!(text, ", context = {{ {} }}", members.collect::<Vec<_>>().join(", "));
        }
        let value = |name: &str| told.get(name).cloned().unwrap_or(Json::Null);
        let verdict = value("verdict");
        let _ = write!(text, ", verdict = {verdict}, returns = {}", value("returns"));
        if let Some(bytes) = told.get("data").filter(|_| !told.is_dropped()) {
            let _ = write!(text, ", out = {{ hex = {bytes} }}");
        }
        if let Json::Object(context) = value("context") {
            let members = context.iter().map(|(name, value)| format!("\"{name}\" = {value}"));
            let _ = write!(text, ", context_out = {{ {} }}", members.collect::<Vec<_>>().join(", "));
        }
        text.push_str(" },\n");
    }
    text.push_str("]\n");
    for (name, elements) in maps.as_object().into_iter().flatten() {
        // Variables are told by themselves.
        if let Some(elements) = elements.as_array().and_then(|elements| toml_of(&elements.as_slice().into()))
        {
            let _ = writeln!(text, "after.{name:?} = {elements}");
        }
    }
    text
}

/// A value in TOML; `None` for one that TOML does not have.
fn toml_of(value: &Json) -> Option<String> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(_) | Json::String(_) => value.to_string(),
        Json::Number(number) => i64::try_from(number.as_i128()?).ok()?.to_string(),
        Json::Array(all) => format!("[{}]", all.iter().map(toml_of).collect::<Option<Vec<_>>>()?.join(", ")),
        Json::Object(all) => {
            let member = |(name, value): (&String, &Json)| Some(format!("{name:?} = {}", toml_of(value)?));
            format!("{{ {} }}", all.iter().map(member).collect::<Option<Vec<_>>>()?.join(", "))
        }
    })
}
