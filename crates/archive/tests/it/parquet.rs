//! Parquet files, read again.

use std::fs::File;

use paceline_archive::parquet::ParquetWriter;
use paceline_archive::table::{Field, Kind, Value};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

#[test]
fn rows_are_read_as_they_were_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rows.parquet");
    let field = |name, kind| Field { name, kind };
    let fields = [
        field("number", Kind::U32),
        field("offset", Kind::U64),
        field("time", Kind::Time),
        field("verdict", Kind::Word),
        field("data", Kind::Bytes),
    ];
    let mut writer = ParquetWriter::new(File::create(&path).expect("a file"), &fields).expect("a writer");
    let rows = 200_000u64;
    for row in 0..rows {
        let number = row.wrapping_mul(0x9e37_79b9) & 0xffff_ffff;
        let data = number.to_le_bytes();
        let values = [
            Value::Number(number),
            Value::Number(u64::MAX - row),
            Value::Number(row),
            Value::Word(if row % 3 == 0 { "drop" } else { "pass" }),
            Value::Bytes(&data[..(row % 9) as usize]),
        ];
        writer.push(values).expect("the file grows");
    }
    writer.finish().expect("a complete file");
    let reader = SerializedFileReader::new(File::open(&path).expect("the file")).expect("a Parquet file");
    assert!(reader.num_row_groups() > 1);
    let mut read = 0;
    for (row, values) in (0..).zip(reader.get_row_iter(None).expect("rows")) {
        let (values, number) = (values.expect("a row"), (row * 0x9e37_79b9u64) & 0xffff_ffff);
        assert_eq!(values.get_uint(0).expect("a number"), number as u32);
        assert_eq!(values.get_ulong(1).expect("a number"), u64::MAX - row);
        assert_eq!(values.get_string(3).expect("a word") == "drop", row % 3 == 0);
        assert_eq!(values.get_bytes(4).expect("bytes").data(), &number.to_le_bytes()[..(row % 9) as usize]);
        read += 1;
    }
    assert_eq!(read, rows);
}

#[test]
fn a_file_without_rows_has_its_columns() {
    let mut file = tempfile::tempfile().expect("a file");
    let fields = [Field { name: "time", kind: Kind::Time }];
    ParquetWriter::new(&mut file, &fields).expect("a writer").finish().expect("a file");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    assert_eq!(reader.metadata().file_metadata().schema_descr().column(0).name(), "time");
    assert_eq!(reader.num_row_groups(), 0);
}

#[test]
fn values_of_another_type_are_refused() {
    let fields = [Field { name: "time", kind: Kind::Time }];
    let mut writer = ParquetWriter::new(Vec::new(), &fields).expect("a writer");
    let error = writer.push([Value::Word("now")]).expect_err("no number");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}
