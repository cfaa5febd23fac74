//! Columns of words, aligned: what every table on a terminal is made of.
//!
//! A table that is too wide is parted: the columns that say what a row is stand in each part.

use crate::style::{Paint, Style};
use std::ops::Range;

/// A table with headings, and perhaps a line of group titles above them.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    groups: Vec<String>,
    headings: Vec<String>,
    paints: Vec<Option<Painter>>,
    rows: Vec<Vec<String>>,
    /// So many columns say what a row is.
    keys: usize,
}

/// The colour of a cell.
type Painter = fn(&str) -> Option<Paint>;

/// A column of a table: what stands over it, and what it says of a row.
pub struct Column<'a, R> {
    group: String,
    heading: String,
    paint: Option<Painter>,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

impl<'a, R> Column<'a, R> {
    /// A column; the group title stands over it and over what follows without one.
    pub fn new(group: &str, heading: &str, cell: impl Fn(&R) -> String + 'a) -> Column<'a, R> {
        let (group, heading) = (group.to_string(), heading.to_string());
        Column { group, heading, paint: None, cell: Box::new(cell) }
    }

    /// The same in colours.
    pub fn painted(self, paint: Painter) -> Column<'a, R> {
        Column { paint: Some(paint), ..self }
    }
}

/// Blanks between columns.
const GAP: &str = "  ";

impl Grid {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Grid {
        let mut grid = Grid { keys: 1, ..Grid::default() };
        headings.iter().for_each(|heading| grid.column("", heading));
        grid
    }

    /// A table of columns and of what they say of each row.
    pub fn of<R>(columns: &[Column<'_, R>], rows: impl IntoIterator<Item = R>) -> Grid {
        let mut grid = Grid::new(&[]);
        for column in columns {
            grid.column(&column.group, &column.heading);
            *grid.paints.last_mut().expect("it was just added") = column.paint;
        }
        for row in rows {
            grid.row(columns.iter().map(|it| (it.cell)(&row)).collect());
        }
        grid
    }

    /// The same, of which so many columns say what a row is.
    pub fn keyed(self, keys: usize) -> Grid {
        Grid { keys, ..self }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a column; the group title stands over it and over what follows without one.
    pub fn column(&mut self, group: &str, heading: &str) {
        self.groups.push(group.to_string());
        self.headings.push(heading.to_string());
        self.paints.push(None);
    }

    /// Adds a row, of as many cells as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// How many columns say what a row is.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// Titles over columns, each with how many it stands over.
    pub(crate) fn groups(&self) -> Vec<(&str, usize)> {
        let mut groups: Vec<(&str, usize)> = Vec::new();
        for (at, group) in self.groups.iter().enumerate() {
            match groups.last_mut() {
                Some((_, span)) if group.is_empty() && at > self.keys => *span += 1,
                _ => groups.push((group, 1)),
            }
        }
        groups
    }

    /// What stands over each column.
    pub(crate) fn headings(&self) -> &[String] {
        &self.headings
    }

    /// Its cells, each with its colour.
    pub(crate) fn cells(&self) -> Vec<Vec<(&str, Option<Paint>)>> {
        let cell = |row: usize, at: usize| {
            let cell = self.rows[row][at].as_str();
            (cell, self.paints[at].and_then(|paint| paint(cell)))
        };
        let row = |row: usize| (0..self.headings.len()).map(|at| cell(row, at)).collect();
        (0..self.rows.len()).map(row).collect()
    }

    /// The lines, each with its end; an empty line between parts.
    pub fn render(&self, style: &Style) -> String {
        let grid = self.shown(style);
        let parts: Vec<Vec<usize>> = grid.parts(style.width);
        let parts: Vec<String> = parts.iter().map(|part| grid.part(part).lines(style)).collect();
        parts.join("\n")
    }

    /// The same in letters that may be shown.
    fn shown(&self, style: &Style) -> Grid {
        let all =
            |texts: &Vec<String>| texts.iter().map(|it| style.text(it).into_owned()).collect();
        Grid {
            groups: all(&self.groups),
            headings: all(&self.headings),
            rows: self.rows.iter().map(all).collect(),
            ..self.clone()
        }
    }

    /// The columns of each part: those that say what a row is, and as many others as fit.
    fn parts(&self, width: usize) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = (0..self.keys.min(self.headings.len())).collect();
        let fits = |columns: &[usize]| self.part(columns).width() <= width;
        let mut parts: Vec<Vec<usize>> = vec![keys.clone()];
        let mut add = |columns: Range<usize>| {
            let part = parts.last_mut().expect("there is one");
            let longer: Vec<usize> = part.iter().copied().chain(columns.clone()).collect();
            if part.len() == keys.len() || fits(&longer) {
                *part = longer;
            } else {
                parts.push(keys.iter().copied().chain(columns).collect());
            }
        };
        let mut first = keys.len();
        while first < self.headings.len() {
            let group = first..self.span(first);
            first = group.end;
            let alone: Vec<usize> = keys.iter().copied().chain(group.clone()).collect();
            match fits(&alone) {
                true => add(group),
                false => group.for_each(|column| add(column..column + 1)),
            }
        }
        parts
    }

    /// Some of the columns; the first of a group has its title.
    fn part(&self, columns: &[usize]) -> Grid {
        let pick = |texts: &[String]| columns.iter().map(|at| texts[*at].clone()).collect();
        let title = |(index, at): (usize, &usize)| {
            let is_first = index == 0 || columns[index - 1] + 1 != *at;
            let start = (0..=*at).rev().find(|it| !self.groups[*it].is_empty());
            let start = start.filter(|_| is_first && *at >= self.keys).unwrap_or(*at);
            self.groups[start].clone()
        };
        Grid {
            groups: columns.iter().enumerate().map(title).collect(),
            headings: pick(&self.headings),
            paints: columns.iter().map(|at| self.paints[*at]).collect(),
            rows: self.rows.iter().map(|row| pick(row)).collect(),
            keys: self.keys,
        }
    }

    /// The widths of its columns.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.headings.iter().map(|it| it.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        self.widen_for_groups(&mut widths);
        widths
    }

    fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }

    fn lines(&self, style: &Style) -> String {
        let widths = self.widths();
        let mut out = String::new();
        if self.groups.iter().any(|group| !group.is_empty()) {
            self.push_groups(&widths, style, &mut out);
        }
        let heading: Painter = |_| Some(Paint::Heading);
        let headings = vec![Some(heading); widths.len()];
        push_line(&self.headings, &headings, &widths, style, &mut out);
        self.rows.iter().for_each(|row| push_line(row, &self.paints, &widths, style, &mut out));
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

    fn push_groups(&self, widths: &[usize], style: &Style, out: &mut String) {
        let (mut line, mut length, mut at) = (String::new(), 0, 0);
        for (column, group) in self.groups.iter().enumerate() {
            if !group.is_empty() {
                line.extend(std::iter::repeat_n(' ', at - length));
                line.push_str(&style.painted(group, Some(Paint::Heading)));
                length = at + group.chars().count();
            }
            at += widths[column] + GAP.len();
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn push_line(
    cells: &[String],
    paints: &[Option<Painter>],
    widths: &[usize],
    style: &Style,
    out: &mut String,
) {
    let mut line = String::new();
    for ((cell, paint), width) in cells.iter().zip(paints).zip(widths) {
        line.push_str(&style.painted(cell, paint.and_then(|paint| paint(cell))));
        let missing = width - cell.chars().count() + GAP.len();
        line.extend(std::iter::repeat_n(' ', missing));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Breaks a text into lines, each after the first indented.
pub fn wrap(text: &str, style: &Style, indent: &str) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in style.text(text).split_whitespace() {
        let fits = line.chars().count() + 1 + word.chars().count() <= style.width;
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

    fn narrow(width: usize) -> Style {
        Style { width, ..Style::PLAIN }
    }

    fn example() -> Grid {
        let mut grid = Grid::new(&["name"]);
        grid.column("a long title", "p50");
        grid.column("", "p99");
        grid.column("b", "MB/s");
        grid.row(["none", "1 ms", "2 µs", "7"].map(String::from).to_vec());
        grid
    }

    #[test]
    fn columns_are_aligned_under_their_groups() {
        let expected = "      a long title  b\n\
                        name  p50   p99     MB/s\n\
                        none  1 ms  2 µs    7\n";
        assert_eq!(example().render(&narrow(24)), expected);
    }

    #[test]
    fn a_table_that_is_too_wide_is_parted_between_groups_or_within_them() {
        let expected = "      a long title\n\
                        name  p50   p99\n\
                        none  1 ms  2 µs\n\
                        \n      b\n\
                        name  MB/s\n\
                        none  7\n";
        assert_eq!(example().render(&narrow(23)), expected);
        let lines = example().render(&narrow(12));
        assert_eq!(lines.matches("a long title").count(), 2, "{lines}");
    }

    #[test]
    fn headings_are_set_off_where_there_are_colours() {
        let colour = Style { colour: true, ..Style::PLAIN };
        assert!(Grid::new(&["a"]).render(&colour).starts_with("\x1b[1ma\x1b[0m"));
    }

    #[test]
    fn text_is_broken_at_blanks() {
        assert_eq!(wrap("one two  three", &narrow(9), "  "), "one two\n  three\n");
        assert_eq!(wrap("unbreakable", &narrow(3), ""), "unbreakable\n");
        assert_eq!(wrap("", &narrow(3), ""), "\n");
    }
}
