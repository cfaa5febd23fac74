//! Rows as Parquet, column by column; a group of rows is held in memory.

use crate::columns::{Cell, Kind};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::sync::Arc;

/// So many rows are written at once.
const GROUP: usize = 1 << 16;

/// What a column of a group has; where there is nothing, `present` is zero.
#[derive(Default)]
struct Values {
    present: Vec<i16>,
    numbers: Vec<i64>,
    texts: Vec<ByteArray>,
}

/// The name of a column, and what it has.
pub(crate) type Head = (&'static str, Kind);

pub(crate) struct Writer {
    heads: Vec<Head>,
    file: SerializedFileWriter<File>,
    columns: Vec<Values>,
    rows: usize,
}

fn schema(heads: &[Head]) -> Result<TypePtr> {
    let field = |(name, kind): &Head| {
        let field = match kind {
            Kind::Number => Type::primitive_type_builder(name, Physical::INT64),
            Kind::Text => Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String)),
        };
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = heads.iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("request").with_fields(fields).build().map(Arc::new)
}

impl Writer {
    pub fn new(file: File, heads: Vec<Head>) -> Result<Writer> {
        let properties = Arc::new(WriterProperties::builder().build());
        let file = SerializedFileWriter::new(file, schema(&heads)?, properties)?;
        let columns = heads.iter().map(|_| Values::default()).collect();
        Ok(Writer { heads, file, columns, rows: 0 })
    }

    pub fn add(&mut self, cells: impl Iterator<Item = Cell>) -> Result<()> {
        for (cell, column) in cells.zip(&mut self.columns) {
            column.present.push(i16::from(cell != Cell::Nothing));
            match cell {
                // What does not fit is later than anybody lives.
                Cell::Number(number) => {
                    column.numbers.push(i64::try_from(number).unwrap_or(i64::MAX));
                }
                Cell::Text(text) => column.texts.push(ByteArray::from(text.into_bytes())),
                Cell::Nothing => {}
            }
        }
        self.rows += 1;
        if self.rows == GROUP { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let mut columns = self.heads.iter().zip(&mut self.columns);
        while let Some(mut sink) = group.next_column()? {
            let Some(((_, kind), values)) = columns.next() else { break };
            let present = Some(&values.present[..]);
            match kind {
                Kind::Number => {
                    sink.typed::<Int64Type>().write_batch(&values.numbers, present, None)?;
                }
                Kind::Text => {
                    sink.typed::<ByteArrayType>().write_batch(&values.texts, present, None)?;
                }
            }
            sink.close()?;
            *values = Values::default();
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    pub fn finish(mut self) -> Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.close().map(drop)
    }
}
