//! Filters as numbers: the formats of `tcpdump -ddd` and `-dd`.

use super::super::insn::{MAX_INSNS, SockFilter};
use super::error::{Problem, TextError};
use super::lexer::{Cursor, Kind};

/// Parses decimal text: the number of instructions, then `code jt jf k` for each. Commas may replace line breaks, as in `iptables
/// -m bpf --bytecode`.
///
/// # Errors
/// The first syntax error, with its position.
pub fn parse_decimal(text: &str) -> Result<Vec<SockFilter>, TextError> {
    let mut cursor = Cursor::new(text)?;
    let count = cursor.peek();
    let said = cursor.number(0, i64::from(u32::MAX))? as usize;
    cursor.accept(Kind::Punctuation(','));
    let mut insns = Vec::new();
    while cursor.peek().kind != Kind::End {
        if insns.len() == MAX_INSNS {
            return Err(cursor.peek().error(Problem::TooLong));
        }
        insns.push(fields(&mut cursor, |_| Ok(()))?);
        cursor.accept(Kind::Punctuation(','));
    }
    if said == insns.len() {
        Ok(insns)
    } else {
        Err(count.error(Problem::Count { said, found: insns.len() }))
    }
}

/// Parses the elements of a C array: `{ code, jt, jf, k },`.
///
/// # Errors
/// The first syntax error, with its position.
pub fn parse_c_array(text: &str) -> Result<Vec<SockFilter>, TextError> {
    let mut cursor = Cursor::new(text)?;
    let mut insns = Vec::new();
    while cursor.peek().kind != Kind::End {
        if insns.len() == MAX_INSNS {
            return Err(cursor.peek().error(Problem::TooLong));
        }
        cursor.expect('{', "`{`")?;
        insns.push(fields(&mut cursor, |cursor| cursor.expect(',', "`,`"))?);
        cursor.accept(Kind::Punctuation(','));
        cursor.expect('}', "`}`")?;
        if !cursor.accept(Kind::Punctuation(',')) && cursor.peek().kind != Kind::End {
            return Err(cursor.peek().unexpected("`,`"));
        }
    }
    Ok(insns)
}

fn fields<'a>(
    cursor: &mut Cursor<'a>,
    mut between: impl FnMut(&mut Cursor<'a>) -> Result<(), TextError>,
) -> Result<SockFilter, TextError> {
    let code = cursor.number(0, u16::MAX.into())? as u16;
    between(cursor)?;
    let jt = cursor.number(0, u8::MAX.into())? as u8;
    between(cursor)?;
    let jf = cursor.number(0, u8::MAX.into())? as u8;
    between(cursor)?;
    Ok(SockFilter { code, jt, jf, k: cursor.constant()? })
}
