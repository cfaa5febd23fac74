//! A page with everything in it: one file that asks no network for anything.
//!
//! A [`Page`] is a value, and this room lays it out. What is shown of a timeline is drawn by the
//! scripts in `assets/`; all else is there without a script.

mod base64;
mod callers;
mod charts;
pub mod compare;
mod escape;
pub mod explain;
mod findings;
pub mod recording;
mod sections;
mod shown;
mod timeline;

use crate::style::Paint;
use escape::text;
use insight::Timeline;

/// What a page says.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// The circumstances, in a line.
    pub about: String,
    /// What there is to know beforehand, in paragraphs.
    pub story: Vec<String>,
    /// The answer: sentences, each a line.
    pub answer: String,
    /// Figures.
    pub tables: Vec<Table>,
    /// Who called, and where their time went.
    pub callers: Vec<Callers>,
    /// What changes over time.
    pub curves: Vec<Curves>,
    /// How times are spread.
    pub distributions: Vec<Distributions>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The slowest calls, each with its path and where that is shown.
    pub slow: Vec<(Table, Option<Place>)>,
    /// One run, or two to be compared.
    pub timelines: Vec<Timeline>,
    /// What the timelines do not show, in a sentence.
    pub remark: String,
}

/// A table of words.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it is about.
    pub caption: String,
    /// So many columns say what a row is.
    pub keys: usize,
    /// Titles over columns, each with how many it stands over.
    pub groups: Vec<(String, usize)>,
    /// What stands over each column.
    pub headings: Vec<String>,
    /// The cells of each row, with what their colour says.
    pub rows: Vec<Vec<(String, Option<Paint>)>>,
}

/// Curves with the same axes; the first value of each is that of the first step, and one may end
/// before another.
#[derive(Clone, Debug, Default)]
pub struct Curves {
    /// What they show.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// Seconds from one value to the next.
    pub step: f64,
    /// Name and values of each.
    pub series: Vec<(String, Vec<f64>)>,
}

/// How times are spread, by layer.
#[derive(Clone, Debug, Default)]
pub struct Distributions {
    /// Whose times.
    pub title: String,
    /// Of what: requests or calls.
    pub of: String,
    /// Name and share of requests, in percent, that took up to 2^n ns, for n from 0 on.
    pub series: Vec<(String, Vec<f64>)>,
    /// The median of each, as the table has it.
    pub medians: Vec<base::Duration>,
    /// The same in words.
    pub table: Table,
}

/// Something that was found; whatever is empty is not shown.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Whose it is: findings of one are together under this name.
    pub whose: String,
    /// What it is, in a sentence.
    pub title: String,
    /// What it costs.
    pub cost: String,
    /// How that is known.
    pub evidence: Vec<String>,
    /// How it comes about.
    pub mechanism: String,
    /// What would help.
    pub changes: Vec<String>,
    /// Where it can be seen.
    pub place: Option<Place>,
}

/// What of a timeline a button shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A time.
    Time {
        /// Of this timeline.
        run: usize,
        /// From when, in nanoseconds.
        from: u64,
        /// Until when.
        to: u64,
    },
    /// A critical path, which is marked.
    Chain {
        /// Of this timeline.
        run: usize,
        /// Its place among the chains of the timeline.
        number: usize,
    },
}

/// The callers of a run.
#[derive(Clone, Debug, Default)]
pub struct Callers {
    /// Whose run.
    pub caption: String,
    /// Each of them.
    pub rows: Vec<CallerRow>,
}

/// A caller.
#[derive(Clone, Debug, Default)]
pub struct CallerRow {
    /// Who.
    pub who: String,
    /// Kind and number of its calls; their mean, median and longest.
    pub cells: [String; 5],
    /// Where the time went: layer, part of all from 0 to 1, and the same in words; most first.
    pub parts: Vec<(String, f64, String)>,
}

/// The styles, in order.
const STYLES: [&str; 2] =
    [include_str!("../../assets/uplot.min.css"), include_str!("../../assets/page.css")];
/// uPlot, whose licence stands beside it in the page.
const UPLOT: &str = include_str!("../../assets/uplot.min.js");
const UPLOT_LICENSE: &str = include_str!("../../assets/uplot.LICENSE");
/// Our scripts, which share a scope.
const SCRIPTS: [&str; 13] = [
    include_str!("../../assets/decode.js"),
    include_str!("../../assets/model.js"),
    include_str!("../../assets/colours.js"),
    include_str!("../../assets/raster.js"),
    include_str!("../../assets/layout.js"),
    include_str!("../../assets/paint.js"),
    include_str!("../../assets/labels.js"),
    include_str!("../../assets/view.js"),
    include_str!("../../assets/words.js"),
    include_str!("../../assets/places.js"),
    include_str!("../../assets/run.js"),
    include_str!("../../assets/charts.js"),
    include_str!("../../assets/main.js"),
];
/// Nothing may be fetched, whatever a name in a run looks like.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

impl Page {
    /// The file.
    pub fn to_html(&self) -> String {
        let mut out = String::new();
        out.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        let policy = "<meta http-equiv=\"Content-Security-Policy\" content=";
        out.push_str(&format!("{policy}\"{POLICY}\">\n"));
        out.push_str(&format!("<title>{}</title>\n<style>\n", text(&self.title)));
        STYLES.iter().for_each(|it| out.push_str(it));
        out.push_str("</style>\n</head>\n<body>\n");
        sections::push_all(self, &mut out);
        charts::push_data(self, &mut out);
        timeline::push_data(&self.timelines, &mut out);
        push_scripts(&mut out);
        out.push_str("</body>\n</html>\n");
        out
    }
}

fn push_scripts(out: &mut String) {
    out.push_str(&format!("<script>\n/*! uPlot\n{}*/\n", UPLOT_LICENSE));
    // Its first line is an address, and there shall be none in the file.
    out.push_str(UPLOT.split_once('\n').map_or(UPLOT, |(_, rest)| rest));
    out.push_str("\n</script>\n<script>\n(() => {\n\"use strict\";\n");
    SCRIPTS.iter().for_each(|it| out.push_str(it));
    out.push_str("})();\n</script>\n");
}
