//! Values on as few lines as they fit on.

use paceline::btf::Value;

/// Characters that a line should not exceed.
const WIDTH: usize = 110;

/// A value as C would write it, on one line if it is short. Lines after the first are indented by `indent` at least.
pub(super) fn fold(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    if indent + line.len() <= WIDTH {
        return line;
    }
    let inner = indent + 4;
    let lines = match value {
        Value::Struct(members) => {
            let member = |(name, value): &(String, Value)| format!(".{name} = {},", fold(value, inner));
            members.iter().map(member).collect()
        }
        Value::Array(elements) => fill(elements.iter().map(|value| fold(value, inner)), inner),
        Value::Bytes(bytes) => fill(bytes.iter().map(|byte| format!("{byte:#04x}")), inner),
        _ => return line,
    };
    let newline = |indent| format!("\n{:indent$}", "");
    format!("{{{}{}{}}}", newline(inner), lines.join(&newline(inner)), newline(indent))
}

/// Puts as many items on each line as fit.
fn fill(items: impl Iterator<Item = String>, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if indent + line.len() + item.len() + 2 <= WIDTH => {
                line.push(' ');
                line.push_str(&item);
                line.push(',');
            }
            _ => lines.push(item + ","),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_on_a_line_is_on_one() {
        let pair = |n| {
            Value::Struct(vec![("a".to_owned(), Value::Unsigned(n)), ("b".to_owned(), Value::Bool(true))])
        };
        assert_eq!(fold(&pair(1), 80), "{ .a = 1, .b = true }");
        let long = Value::Struct(vec![
            ("numbers".to_owned(), Value::Array((0..40).map(Value::Unsigned).collect())),
            ("pairs".to_owned(), Value::Array(vec![pair(1), pair(2)])),
        ]);
        let expected = "{
      .numbers = {
          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
          27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
      },
      .pairs = { { .a = 1, .b = true }, { .a = 2, .b = true } },
  }";
        assert_eq!(fold(&long, 2), expected);
    }
}
