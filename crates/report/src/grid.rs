//! Columns of words, aligned: what every table on a terminal is made of.

/// A table with headings, and perhaps a line of group titles above them.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    groups: Vec<String>,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A column of a table: what stands over it, and what it says of a row.
pub struct Column<'a, R> {
    group: String,
    heading: String,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

impl<'a, R> Column<'a, R> {
    /// A column; the group title stands over it and over what follows without one.
    pub fn new(group: &str, heading: &str, cell: impl Fn(&R) -> String + 'a) -> Column<'a, R> {
        Column { group: group.to_string(), heading: heading.to_string(), cell: Box::new(cell) }
    }
}

/// Blanks between columns.
const GAP: &str = "  ";

impl Grid {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Grid {
        let mut grid = Grid::default();
        headings.iter().for_each(|heading| grid.column("", heading));
        grid
    }

    /// A table of columns and of what they say of each row.
    pub fn of<R>(columns: &[Column<'_, R>], rows: impl IntoIterator<Item = R>) -> Grid {
        let mut grid = Grid::default();
        columns.iter().for_each(|it| grid.column(&it.group, &it.heading));
        for row in rows {
            grid.row(columns.iter().map(|it| (it.cell)(&row)).collect());
        }
        grid
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a column; the group title stands over it and over what follows without one.
    pub fn column(&mut self, group: &str, heading: &str) {
        self.groups.push(group.to_string());
        self.headings.push(heading.to_string());
    }

    /// Adds a row, of as many cells as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// How wide its lines are at most.
    pub fn width(&self) -> usize {
        self.render().lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// The lines, each with its end.
    pub fn render(&self) -> String {
        let mut widths: Vec<usize> = self.headings.iter().map(|it| it.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        self.widen_for_groups(&mut widths);
        let mut out = String::new();
        if self.groups.iter().any(|group| !group.is_empty()) {
            self.push_groups(&widths, &mut out);
        }
        push_line(&self.headings, &widths, &mut out);
        self.rows.iter().for_each(|row| push_line(row, &widths, &mut out));
        out
    }

    /// The columns that a group title stands over, up to the next title.
    fn span(&self, first: usize) -> usize {
        let next = (first + 1..self.groups.len()).find(|at| !self.groups[*at].is_empty());
        next.unwrap_or(self.groups.len())
    }

    fn widen_for_groups(&self, widths: &mut [usize]) {
        for first in 0..self.groups.len() {
            if self.groups[first].is_empty() {
                continue;
            }
            let end = self.span(first);
            let has = widths[first..end].iter().sum::<usize>() + GAP.len() * (end - first - 1);
            let needs = self.groups[first].chars().count();
            widths[end - 1] += needs.saturating_sub(has);
        }
    }

    fn push_groups(&self, widths: &[usize], out: &mut String) {
        let mut line = String::new();
        let mut at = 0;
        for (column, group) in self.groups.iter().enumerate() {
            if !group.is_empty() {
                let missing = at - line.chars().count();
                line.extend(std::iter::repeat_n(' ', missing));
                line.push_str(group);
            }
            at += widths[column] + GAP.len();
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn push_line(cells: &[String], widths: &[usize], out: &mut String) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(cell);
        let missing = width - cell.chars().count() + GAP.len();
        line.extend(std::iter::repeat_n(' ', missing));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Breaks a text into lines of at most `width` letters, each after the first indented.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= width;
        if !line.trim().is_empty() && !fits {
            out.push_str(line.trim_end());
            out.push('\n');
            line = indent.to_string();
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    out.push_str(line.trim_end());
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_under_their_groups() {
        let mut grid = Grid::new(&["name"]);
        grid.column("a long title", "p50");
        grid.column("", "p99");
        grid.column("b", "MB/s");
        grid.row(["none", "1 ms", "2 µs", "7"].map(String::from).to_vec());
        let expected = "      a long title  b\n\
                        name  p50   p99     MB/s\n\
                        none  1 ms  2 µs    7\n";
        assert_eq!(grid.render(), expected);
        assert_eq!(grid.width(), 24);
    }

    #[test]
    fn text_is_broken_at_blanks() {
        assert_eq!(wrap("one two  three", 9, "  "), "one two\n  three\n");
        assert_eq!(wrap("unbreakable", 3, ""), "unbreakable\n");
        assert_eq!(wrap("", 3, ""), "\n");
    }
}
