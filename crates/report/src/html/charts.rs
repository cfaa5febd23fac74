//! The numbers of curves and distributions, for the scripts that draw them.

use super::{Page, escape};
use serde_json::{Value, json};

/// Adds the data of everything that uPlot draws.
pub(super) fn push_data(page: &Page, out: &mut String) {
    let series = |all: &[(String, Vec<f64>)]| -> Vec<Value> {
        all.iter().map(|(name, values)| json!({ "name": name, "values": values })).collect()
    };
    let curves = page.curves.iter().map(|it| {
        let series = series(&it.series);
        json!({ "title": it.title, "unit": it.unit, "step": it.step, "series": series })
    });
    let distributions = page.distributions.iter().map(|it| {
        let medians: Vec<u64> = it.medians.iter().map(|it| it.as_nanos()).collect();
        let series = series(&it.series);
        json!({ "title": it.title, "of": it.of, "series": series, "medians": medians })
    });
    let data = json!({
        "curves": curves.collect::<Vec<_>>(),
        "distributions": distributions.collect::<Vec<_>>(),
    });
    let tag = "<script type=\"application/json\" id=\"charts\">";
    out.push_str(&format!("{tag}{}</script>\n", escape::script(&data)));
}
