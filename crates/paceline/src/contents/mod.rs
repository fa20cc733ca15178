//! Contents of maps and global variables, read from JSON: what `paceline run --map` and chain files give, and what an earlier run saved.
//!
//! ```
//! use paceline::contents::MapContents;
//! use paceline::{LoadOptions, Object};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/firewall.o");
//! let mut firewall = Object::open(path)?;
//! let rules = r#"[{"key": {"port": 22, "protocol": 6, "reserved": 0}, "value": {"action": 1, "reserved": 0, "hits": 0}}]"#;
//! let contents = [MapContents::parse("rules", "rules.json", rules)?];
//! firewall.set_variables(&contents)?; // constants cannot be changed once they are a map
//! let firewall = firewall.load(&LoadOptions::default())?;
//! firewall.set_elements(&contents, true)?;
//! assert_eq!(firewall.map("rules").map(|map| map.keys().map(Iterator::count)), Some(Ok(1)));
//! # Ok(())
//! # }
//! ```

mod elements;
mod encode;
mod error;
mod saved;
mod text;
mod variables;

pub use crate::json::variables;
pub use error::{ContentsCause, ContentsError, ContentsPlace, ContentsProblem};
pub use saved::SavedMaps;
pub use text::MapContents;
pub use variables::section_of;
