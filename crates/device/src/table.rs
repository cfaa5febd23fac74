//! Tables beside a model file: comma-separated numbers under a line of column names.

use params::Error;

/// A table as it was found: where, and what is in it.
pub(crate) struct TableText {
    pub file: String,
    pub text: String,
}

/// Finds the table of a name.
pub(crate) type FindTable<'a> = dyn Fn(&str) -> Result<TableText, Error> + 'a;

/// Columns of numbers, by name.
pub(crate) struct NumberTable {
    file: String,
    columns: Vec<String>,
    rows: Vec<(usize, Vec<f64>)>,
}

impl NumberTable {
    /// Parses `text`; lines beginning with `#` are remarks. `columns` must be the first line.
    pub fn parse(file: &str, text: &str, columns: &[&str]) -> Result<Self, Error> {
        let mut table = NumberTable {
            file: file.to_string(),
            columns: columns.iter().map(|name| name.to_string()).collect(),
            rows: Vec::new(),
        };
        let mut headed = false;
        for (index, line) in text.lines().enumerate() {
            let (number, line) = (index + 1, line.trim());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if !headed {
                headed = true;
                if cells != columns {
                    return Err(table.bad(number, format!("columns {}", cells.join(","))));
                }
                continue;
            }
            let parsed: Result<Vec<f64>, _> = cells.iter().map(|cell| cell.parse()).collect();
            match parsed {
                Ok(row) if row.len() == columns.len() && row.iter().all(|n| n.is_finite()) => {
                    table.rows.push((number, row));
                }
                _ => return Err(table.bad(number, format!("row \"{line}\""))),
            }
        }
        if table.rows.is_empty() {
            return Err(table.bad(1, "no rows".to_string()));
        }
        Ok(table)
    }

    /// The rows, each with its line number.
    pub fn rows(&self) -> &[(usize, Vec<f64>)] {
        &self.rows
    }

    /// An error about a row that is numbers but makes no sense.
    pub fn refuse(&self, line: usize, problem: &str, accepted: &str) -> Error {
        Error::Bad {
            file: self.file.clone(),
            line,
            problem: problem.to_string(),
            accepted: accepted.to_string(),
        }
    }

    fn bad(&self, line: usize, problem: String) -> Error {
        let accepted = format!("a table of numbers headed {}", self.columns.join(","));
        self.refuse(line, &problem, &accepted)
    }
}
