//! What a browser makes of the page, with its keys pressed and its buttons clicked.

use crate::browser::Browser;
use crate::structure::{self, page};
use crate::synthetic;
use insight::Timeline;
use report::html::Page;
use serde_json::{Value, json};
use std::path::PathBuf;
use testing::needs::CHROMIUM;

pub fn tests() -> Vec<testing::Test> {
    testing::tests![[CHROMIUM] =>
        numbers_arrive_as_they_were_written,
        keys_move_and_zoom_both_runs,
        of_a_long_run_slices_are_there_one_by_one,
        buttons_and_pointer_do_what_keys_do,
        a_click_on_a_bar_tells_of_its_request,
        the_page_asks_the_network_for_nothing,
        a_reader_of_the_screen_hears_headings_tables_and_what_is_shown,
        colours_follow_the_system_and_the_switch,
        a_page_without_timelines_works_too,
        a_click_on_a_finding_shows_where_it_is_first,
        a_click_on_a_slow_call_shows_its_critical_path,
    ]
}

/// A page in a browser, removed when dropped.
struct Open {
    browser: Browser,
    file: PathBuf,
}

impl Open {
    fn new(name: &str) -> Open {
        Open::page(name, &page())
    }

    fn page(name: &str, page: &Page) -> Open {
        let name = format!("paternoster-{name}-{}.html", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, page.to_html()).unwrap();
        let mut browser = Browser::start(1200, 900);
        browser.open(&file, "");
        assert_eq!(browser.complaints, [""; 0]);
        Open { browser, file }
    }

    fn shown(&mut self) -> (f64, f64) {
        let shown = self.browser.ask("[paternoster.view.from, paternoster.view.to]");
        (shown[0].as_f64().unwrap(), shown[1].as_f64().unwrap())
    }

    fn text(&mut self, id: &str) -> String {
        let asked = format!("document.getElementById('{id}').textContent");
        self.browser.ask(&asked).as_str().unwrap().to_string()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Sums that the page has to come to, too.
fn sums(timeline: &Timeline) -> Value {
    let all = &timeline.requests;
    let ends = (0..all.len()).map(|at| all.completed(at)).sum::<u64>();
    let issued = (0..all.len()).map(|at| all.queued[at] + all.issued[at]).sum::<u64>();
    let held = timeline.held.iter().map(|it| it.from + it.length).sum::<u64>();
    let rows = all.rows.iter().flatten().map(|it| u64::from(*it)).sum::<u64>();
    let parts = timeline.pyramid.series.iter().flat_map(|it| &it.parts);
    let parts = parts.map(|it| u64::from(*it)).sum::<u64>();
    let sectors = all.sector.iter().sum::<u64>();
    json!([all.len(), ends, issued, sectors, held, rows, parts])
}

fn numbers_arrive_as_they_were_written() {
    let mut open = Open::new("numbers");
    let sums_there = "paternoster.runs.map(({ model }) => {
        const sum = (all) => all.reduce((sum, it) => sum + it, 0);
        const held = sum(model.held.from) + sum(model.held.length);
        const rows = sum(model.rows.map((it) => sum(it)));
        const parts = sum(model.series.map((it) => sum(it.levels.map((level) => sum(level)))));
        return [model.count, sum(model.end), sum(model.issued), sum(model.sector), held, rows,
            parts];
    })";
    let there = open.browser.ask(sums_there);
    let here: Vec<Value> = page().timelines.iter().map(sums).collect();
    assert_eq!(there, json!(here));
}

fn keys_move_and_zoom_both_runs() {
    let mut open = Open::new("keys");
    let (from, whole) = open.shown();
    assert_eq!(from, 0.0);
    open.browser.ask("document.querySelector('.stage').focus()");
    open.browser.press("+");
    let (from, to) = open.shown();
    assert_eq!((from, to), (whole / 4.0, whole * 3.0 / 4.0));
    open.browser.press("ArrowRight");
    let (later, _) = open.shown();
    assert!((later - from - 0.1 * (to - from)).abs() < 1.0);
    open.browser.press("n");
    assert!(open.text("pointed").contains("process idles"));
    open.browser.press("]");
    let first = open.text("pointed");
    open.browser.press("]");
    assert!(first.contains("device") && first != open.text("pointed"));
    for _ in 0..40 {
        open.browser.press("+");
    }
    let (from, to) = open.shown();
    assert!((to - from - 1000.0).abs() < 1e-3, "a microsecond is the least");
    open.browser.press("0");
    assert_eq!(open.shown(), (0.0, whole));
    let same = "paternoster.runs[0].painter.scale * paternoster.runs[0].model.tick \
                === paternoster.runs[1].painter.scale * paternoster.runs[1].model.tick";
    assert_eq!(open.browser.ask(same), json!(true));
}

fn of_a_long_run_slices_are_there_one_by_one() {
    let run = synthetic::recorded("cfq", 60_000, 1);
    let cut = Timeline::of(structure::kept(&run, 60_000, 10));
    let (tick, first, second) = (cut.tick, cut.kept[0], cut.kept[1]);
    let mut open = Open::page("slices", &Page { timelines: vec![cut], ..page() });
    let said = |open: &mut Open, (from, to): (u64, u64)| {
        let shown = format!("paternoster.view.show({}, {})", from * tick, to * tick);
        open.browser.ask(&shown);
        open.browser.ask("new Promise((done) => setTimeout(done, 400))");
        let is_summed = open.browser.ask("paternoster.runs[0].painter.isSummed");
        (is_summed, open.text("shown"))
    };
    let middle = (second.0 + 10, second.0 + 10_000);
    let (is_summed, text) = said(&mut open, middle);
    assert!(is_summed == json!(false) && text.contains("requests begin"), "{text}");
    let (is_summed, text) = said(&mut open, (first.1 + 10, first.1 + 10_000));
    assert!(is_summed == json!(true) && text.contains("sums over"), "{text}");
    assert!(text.contains("their time"), "{text}");
    // What is there is drawn over the sums that are beside it.
    let (is_summed, _) = said(&mut open, (second.0 - 10_000, second.0 + 10_000));
    let summed = |at: u64| format!("paternoster.runs[0].painter.isSummedAt({at})");
    assert_eq!(is_summed, json!(true));
    assert_eq!(open.browser.ask(&summed(second.0 + 5000)), json!(false));
    assert_eq!(open.browser.ask(&summed(second.0 - 5000)), json!(true));
}

fn buttons_and_pointer_do_what_keys_do() {
    let mut open = Open::new("buttons");
    let (_, whole) = open.shown();
    open.browser.click("#tools [aria-label=\"Zoom in\"]");
    let (from, to) = open.shown();
    assert_eq!((from, to), (whole / 4.0, whole * 3.0 / 4.0));
    open.browser.click("#tools [data-key=\"0\"]");
    assert_eq!(open.shown(), (0.0, whole));
    // Dragging by a quarter of the width, after zooming in.
    open.browser.click("#tools [aria-label=\"Zoom in\"]");
    let box_of = "(() => { const it = document.querySelector('.stage'); it.scrollIntoView(); \
                  const box = it.getBoundingClientRect(); \
                  return [box.left + box.width / 2, box.top + 40, box.width]; })()";
    let place = open.browser.ask(box_of);
    let number = |at: usize| place[at].as_f64().unwrap();
    for (kind, x) in [("mousePressed", 0.0), ("mouseMoved", 0.25), ("mouseReleased", 0.25)] {
        let x = number(0) - x * number(2);
        let event = json!({
            "type": kind, "x": x, "y": number(1), "button": "left", "buttons": 1, "clickCount": 1
        });
        open.browser.call("Input.dispatchMouseEvent", event);
    }
    open.browser.frame();
    let (dragged, _) = open.shown();
    assert!((dragged - whole * 3.0 / 8.0).abs() < whole * 0.01, "{dragged} of {whole}");
    let wheel = json!({
        "type": "mouseWheel", "x": number(0), "y": number(1), "deltaX": 0, "deltaY": -400
    });
    open.browser.call("Input.dispatchMouseEvent", wheel);
    open.browser.frame();
    let (from, to) = open.shown();
    assert!(to - from < whole * 0.4);
}

fn a_click_on_a_bar_tells_of_its_request() {
    let mut open = Open::new("click");
    let show = "(() => { const { view, runs: [{ model }] } = paternoster;
        view.goTo(model.queued[20] * model.tick, model.end[20] * model.tick); })()";
    open.browser.ask(show);
    open.browser.frame();
    let place = "(() => { const [{ model, painter, layout, stage }] = paternoster.runs;
        stage.scrollIntoView();
        const lane = layout.lanes[model.task[20]];
        const [top, bottom] = lane.rowTops[model.rows[0][20]];
        const box = stage.getBoundingClientRect();
        const x = painter.x((model.queued[20] + model.end[20]) / 2);
        return [box.left + x / layout.ratio, box.top + (top + bottom) / 2 / layout.ratio]; })()";
    let place = open.browser.ask(place);
    for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
        let event = json!({
            "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1
        });
        open.browser.call("Input.dispatchMouseEvent", event);
    }
    open.browser.frame();
    assert_eq!(open.browser.ask("paternoster.runs[0].chosen"), json!(20));
    let said = open.text("pointed");
    assert!(said.contains("8 sectors at") && said.contains("device"), "{said}");
    assert_eq!(open.text("tip"), said);
}

fn the_page_asks_the_network_for_nothing() {
    let open = Open::new("network");
    let asked: Vec<&String> =
        open.browser.requests.iter().filter(|it| !it.starts_with("about:")).collect();
    assert!(asked.iter().all(|it| it.starts_with("file:") || it.starts_with("blob:")), "{asked:?}");
    assert_eq!(asked.iter().filter(|it| it.starts_with("file:")).count(), 1, "{asked:?}");
}

fn a_reader_of_the_screen_hears_headings_tables_and_what_is_shown() {
    let mut open = Open::new("reader");
    std::thread::sleep(std::time::Duration::from_millis(400));
    let tree = open.browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes: Vec<(String, String)> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| {
            let word = |key: &str| node[key]["value"].as_str().unwrap_or_default().to_string();
            (word("role"), word("name"))
        })
        .collect();
    let named = |role: &str, name: &str| nodes.iter().any(|it| it.0 == role && it.1 == name);
    for heading in ["A title", "Answer", "Figures", "Findings", "Timeline", "cfq", "noop"] {
        assert!(named("heading", heading), "{heading}: {nodes:?}");
    }
    assert!(named("table", "Latency") && named("rowheader", "cfq"), "{nodes:?}");
    assert!(named("columnheader", "p50") && named("application", "Timeline of cfq"), "{nodes:?}");
    assert!(named("button", "Zoom in") && named("image", "What is moved"), "{nodes:?}");
    let said = open.text("shown");
    assert!(said.contains("cfq: 400 requests begin; their time: "), "{said}");
    assert!(said.contains("requests withheld"), "{said}");
    open.browser.click("#text summary");
    let rows = open.browser.ask("document.querySelectorAll('#text table tbody tr').length");
    assert!(rows.as_u64().unwrap() > 20);
}

fn colours_follow_the_system_and_the_switch() {
    let mut open = Open::new("colours");
    let paper = "getComputedStyle(document.body).backgroundColor";
    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    assert_eq!(open.browser.ask(paper), json!("rgb(255, 255, 255)"));
    open.browser.call("Emulation.setEmulatedMedia", dark);
    open.browser.frame();
    assert_eq!(open.browser.ask(paper), json!("rgb(21, 25, 29)"));
    let corner = "paternoster.runs[0].raster.pixels[0]";
    assert_eq!(open.browser.ask(corner), json!(0xff1d_1915_u32));
    open.browser.click("#theme");
    assert_eq!(open.browser.ask(paper), json!("rgb(255, 255, 255)"));
    assert_eq!(open.browser.ask(corner), json!(0xffff_ffff_u32));
    assert_eq!(open.text("theme"), "Colours: light");
}

fn a_page_without_timelines_works_too() {
    let mut page = page();
    page.timelines.clear();
    let mut open = Open::page("none", &page);
    assert_eq!(open.browser.ask("document.querySelectorAll('.plot canvas').length"), json!(2));
    assert!(open.text("timeline").contains("A remark."));
    open.browser.click("#theme");
    assert_eq!(open.text("theme"), "Colours: light");
    assert_eq!(open.browser.complaints, [""; 0]);
}

fn a_click_on_a_finding_shows_where_it_is_first() {
    let mut open = Open::new("finding");
    open.browser.click("#findings button.show");
    assert_eq!(open.shown(), (1_000_000.0, 4_000_000.0));
    assert_eq!(open.text("pointed"), "It idles.");
    let mark = open.browser.ask("paternoster.runs.map((it) => it.mark)");
    assert_eq!(mark, json!([{ "from": 2_000_000, "to": 3_000_000 }, null]));
    let focused = "document.activeElement === paternoster.runs[0].stage";
    assert_eq!(open.browser.ask(focused), json!(true));
    open.browser.press("Escape");
    assert_eq!(open.browser.ask("paternoster.runs[0].mark"), json!(null));
}

fn a_click_on_a_slow_call_shows_its_critical_path() {
    let mut open = Open::new("slow");
    let pixels = "(() => { const { canvas, context } = paternoster.runs[0].raster;
        const all = context.getImageData(0, 0, canvas.width, canvas.height).data;
        return all.reduce((sum, it) => sum + it, 0); })()";
    open.browser.click("#slow button.show");
    let chain = page().timelines[0].chains[0].clone();
    let (from, to) = open.shown();
    assert!(from < chain.from as f64 && to > chain.to as f64);
    let lanes = open.browser.ask("paternoster.runs[0].chain.links.map((it) => it[2])");
    let expected: Vec<usize> = chain.links.iter().map(|it| it.lane).collect();
    assert_eq!(lanes, json!(expected));
    let said = open.text("pointed");
    assert!(said.starts_with("A call of task-") && said.contains(", then task-"), "{said}");
    // All else has faded, until nobody asks any more.
    let faded = open.browser.ask(pixels).as_f64().unwrap();
    open.browser.press("Escape");
    assert!(open.browser.ask(pixels).as_f64().unwrap() < faded);
    assert_eq!(open.browser.complaints, [""; 0]);
}
