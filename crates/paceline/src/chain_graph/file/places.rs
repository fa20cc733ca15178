//! Lines and columns of a text.

use super::error::FilePlace;

/// Bytes between two known positions.
const APART: usize = 256;

/// Positions in a text that are known, so that others are found without counting from the start.
pub(super) struct Places(Vec<(usize, FilePlace)>);

impl Places {
    pub(super) fn of(text: &str) -> Self {
        let mut place = FilePlace { line: 1, column: 1 };
        let mut known = vec![(0, place)];
        let mut next = APART;
        for (offset, character) in text.char_indices() {
            if offset >= next {
                known.push((offset, place));
                next = offset + APART;
            }
            place = after(place, character);
        }
        Self(known)
    }

    /// The position of a byte of the text, or of its end.
    pub(super) fn at(&self, text: &str, offset: usize) -> FilePlace {
        let index = self.0.partition_point(|(known, _)| *known <= offset);
        let (start, place) = self.0[index.saturating_sub(1)];
        text.get(start..offset).unwrap_or_default().chars().fold(place, after)
    }
}

/// The position behind a character.
fn after(place: FilePlace, character: char) -> FilePlace {
    match character {
        '\n' => FilePlace { line: place.line + 1, column: 1 },
        _ => FilePlace { line: place.line, column: place.column + 1 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_that_counting_finds() {
        let text = "ä = 1\n\nlong = \"é".to_owned()
            + &"x\u{10348}".repeat(APART)
            + "\"\nb = 2\r\n"
            + &"\n".repeat(APART);
        let places = Places::of(&text);
        let (mut line, mut column) = (1, 1);
        for (offset, character) in text.char_indices().chain([(text.len(), ' ')]) {
            assert_eq!(places.at(&text, offset), FilePlace { line, column }, "byte {offset}");
            (line, column) = if character == '\n' { (line + 1, 1) } else { (line, column + 1) };
        }
    }
}
