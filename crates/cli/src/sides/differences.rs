//! Differences as text and JSON.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::group::Group;
use super::maps::MapChange;
use crate::common::console::shown;

/// The differences between two programs.
pub(crate) struct Differences {
    pub(crate) names: [String; 2],
    pub(crate) capture: String,
    pub(crate) packets: usize,
    pub(crate) groups: Vec<Group>,
    pub(crate) maps: Vec<MapChange>,
}

/// Most groups, and most fields of each, that the text has.
const GROUPS: usize = 20;
const FIELDS: usize = 8;

impl Differences {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.maps.is_empty()
    }

    pub(crate) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let differ: usize = self.groups.iter().map(|group| group.packets.len()).sum();
        writeln!(out, "{} packets of {}: {differ} differ", self.packets, shown(&self.capture))?;
        for group in self.groups.iter().take(GROUPS) {
            write_group(out, group)?;
        }
        if let Some(more) = self.groups.len().checked_sub(GROUPS).filter(|more| *more > 0) {
            writeln!(out, "and {more} more groups")?;
        }
        self.maps.iter().try_for_each(|map| write_map(out, map))
    }

    pub(crate) fn to_json(&self) -> Json {
        let group = |group: &Group| {
            json!({
                "what": group.what,
                "packets": group.packets,
                "old": group.sentences[0],
                "new": group.sentences[1],
                "parted": group.parting.as_ref().map(|parting| json!({
                    "old": parting.last.as_ref().map(|(old, _)| old),
                    "new": parting.last.as_ref().map(|(_, new)| new),
                    "text": parting.text,
                    "next": parting.next,
                })),
                "fields": group.change.fields.iter().map(|field| {
                    json!({ "field": field.name, "old": field.before, "new": field.after })
                }).collect::<Vec<_>>(),
            })
        };
        let map = |map: &MapChange| {
            let element = |(key, old, new): &(String, Option<Json>, Option<Json>)| json!({ "element": key, "old": old, "new": new });
            json!({
                "map": map.name,
                "since_packet": map.since,
                "differing": map.count,
                "elements": map.elements.iter().map(element).collect::<Vec<_>>(),
            })
        };
        json!({
            "old": self.names[0],
            "new": self.names[1],
            "packets": self.packets,
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "maps": self.maps.iter().map(map).collect::<Vec<_>>(),
        })
    }
}

fn write_group(out: &mut dyn Write, group: &Group) -> io::Result<()> {
    let first = group.packets.first().copied().unwrap_or(0);
    let count = group.packets.len();
    let which =
        if count == 1 { format!("packet {first}") } else { format!("{count} packets, first {first}") };
    writeln!(out, "{which}: {}", shown(&group.what.join("; ")))?;
    for (side, sentence) in ["old", "new"].iter().zip(&group.sentences) {
        if let Some(sentence) = sentence {
            writeln!(out, "    {side}: {}", shown(sentence))?;
        }
    }
    if let Some(parting) = &group.parting {
        let next = parting.next.each_ref().map(|next| next.as_deref().unwrap_or("the end"));
        let after = match &parting.last {
            Some((old, new)) if old == new => format!(" after {old} `{}`", parting.text),
            Some((old, new)) => format!(" after {old} ({new} in the new one) `{}`", parting.text),
            None => String::new(),
        };
        writeln!(out, "    they part{}: {} and {}", shown(&after), shown(next[0]), shown(next[1]))?;
    }
    for field in group.change.fields.iter().take(FIELDS) {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        writeln!(
            out,
            "    {}: {} -> {}",
            field.name,
            shown(&value(&field.before)),
            shown(&value(&field.after))
        )?;
    }
    Ok(())
}

fn write_map(out: &mut dyn Write, map: &MapChange) -> io::Result<()> {
    let since = match map.since {
        0 => "from the start".to_owned(),
        packet => format!("since packet {packet}"),
    };
    writeln!(out, "map {} differs {since}, in {} elements", shown(&map.name), map.count)?;
    for (key, old, new) in &map.elements {
        let value =
            |value: &Option<Json>| value.as_ref().map_or_else(|| "nothing".to_owned(), Json::to_string);
        writeln!(out, "    [{}]: {} -> {}", shown(key), shown(&value(old)), shown(&value(new)))?;
    }
    Ok(())
}
