//! Functions from text.

mod cursor;
mod error;
mod function;
mod op;

use cursor::Parser;
pub use error::{ParseCause, ParseError};
use function::FunctionParser;

use super::lex::tokens;
use crate::ir::check::check;
use crate::ir::function::Module;

/// Reads a module and checks it.
///
/// # Errors
/// The first line that is wrong; the last one for a module that is not valid.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    let module = parse_unchecked(text)?;
    let line = text.lines().count();
    check(&module).map_err(|error| ParseError { line, cause: error.into() })?;
    Ok(module)
}

/// Reads a module that may break rules of the [checker](crate::ir::check()).
///
/// # Errors
/// The first line that is wrong.
pub fn parse_unchecked(text: &str) -> Result<Module, ParseError> {
    let tokens = tokens(text);
    let mut parser = Parser::new(&tokens);
    let mut module = Module::default();
    while !parser.is_at_end() {
        parser.word("function")?;
        let number: usize = parser.number()?;
        if number != module.functions.len() {
            return Err(parser.error(ParseCause::FunctionNumber(module.functions.len())));
        }
        let function = FunctionParser::read(&mut parser)?;
        module.functions.push(function);
    }
    Ok(module)
}
