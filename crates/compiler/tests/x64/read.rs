//! Decoding by iced-x86.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, MemorySizeOptions};

/// All instructions of `bytes`, which must be valid to the last byte, at address 0.
pub(crate) fn decode(bytes: &[u8]) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        assert!(!instruction.is_invalid(), "{:02x?} at {}", bytes, instruction.ip());
        instructions.push(instruction);
    }
    instructions
}

/// Formats instructions in Intel's syntax, with signed hexadecimal numbers.
pub(crate) struct Text {
    formatter: IntelFormatter,
}

impl Text {
    pub(crate) fn new() -> Text {
        let mut formatter = IntelFormatter::new();
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_small_hex_numbers_in_decimal(false);
        options.set_add_leading_zero_to_hex_numbers(false);
        options.set_branch_leading_zeros(false);
        options.set_signed_immediate_operands(true);
        options.set_signed_memory_displacements(true);
        options.set_rip_relative_addresses(true);
        options.set_memory_size_options(MemorySizeOptions::Always);
        options.set_show_branch_size(false);
        options.set_space_after_operand_separator(false);
        Text { formatter }
    }

    pub(crate) fn of(&mut self, instruction: &Instruction) -> String {
        let mut text = String::new();
        self.formatter.format(instruction, &mut text);
        text
    }
}
