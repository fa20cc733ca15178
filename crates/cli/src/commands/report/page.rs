//! The page: a template with the data in it.

use serde_json::Value as Json;

const TEMPLATE: &str = include_str!("page.html");

/// Stands in the template where the data goes.
const PLACE: &str = "\"DATA\"";

/// The page of some data. Nothing in the data can end the script that holds it.
pub(super) fn page(data: &Json) -> String {
    let data = data.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028");
    TEMPLATE.replacen(PLACE, &data, 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::page;

    #[test]
    fn data_cannot_leave_its_place() {
        let page = page(&json!({ "capture": "</script><script>alert(1)</script>" }));
        assert_eq!(page.matches("<script").count(), 2);
        assert!(page.contains("\\u003c/script>"));
    }
}
