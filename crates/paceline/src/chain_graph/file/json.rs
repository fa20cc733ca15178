//! Conversion of TOML values to JSON, the input format of map contents.

use std::fmt::Write;

use toml::de::DeValue;

use super::error::{FileError, FileProblem};
use super::typed::{Text, Value};

/// A value as JSON. Numbers are copied digit by digit, so that their size is not limited.
///
/// # Errors
/// For dates and floating-point numbers, which are no values of maps.
pub(super) fn json(text: Text<'_>, value: &Value<'_>) -> Result<String, FileError> {
    let mut out = String::new();
    write(text, value, &mut out)?;
    Ok(out)
}

fn write(text: Text<'_>, value: &Value<'_>, out: &mut String) -> Result<(), FileError> {
    let no_json = |what| Err(text.error(value.span(), FileProblem::NoJson(what)));
    match value.get_ref() {
        DeValue::String(string) => write_text(string, out),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => out.push_str(&number.to_string()),
            Err(_) => return no_json("a number of more than 128 bits"),
        },
        DeValue::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        DeValue::Float(_) => return no_json("a floating-point number"),
        DeValue::Datetime(_) => return no_json("a date"),
        DeValue::Array(list) => {
            out.push('[');
            for (index, element) in list.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write(text, element, out)?;
            }
            out.push(']');
        }
        DeValue::Table(table) => {
            out.push('{');
            for (index, (key, member)) in table.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                write_text(key.get_ref(), out);
                out.push(':');
                write(text, member, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
