//! What is in the file, without a browser.

use crate::synthetic;
use expect_test::expect_file;
use insight::Life;
use insight::timeline::Recorded;
use insight::timeline::keeper::Keeper;
use report::Style;
use report::html::{CallerRow, Callers, Curves, Distributions, Finding, Page, Place, Table};
use report::style::Paint;

pub fn tests() -> Vec<testing::Test> {
    testing::tests![[] =>
        a_small_page_is_built_like_this,
        nothing_in_the_file_leads_out_of_it,
        names_cannot_become_tags,
        the_page_of_a_comparison_has_the_cells_of_its_text,
        parts_of_a_life_add_up,
        trace_events_have_a_bar_for_each_request,
        of_a_long_run_some_slices_are_kept_and_all_is_summed_up,
    ]
}

/// A page that has something of everything.
pub fn page() -> Page {
    let words = |all: &[&str]| all.iter().map(|it| it.to_string()).collect::<Vec<_>>();
    let table = Table {
        caption: "Latency".to_string(),
        keys: 1,
        groups: vec![(String::new(), 1), ("reads".to_string(), 2)],
        headings: words(&["scheduler", "p50", ""]),
        rows: vec![vec![
            ("cfq".to_string(), None),
            ("8.1 ms".to_string(), None),
            ("as expected".to_string(), Some(Paint::Good)),
        ]],
    };
    let series = vec![("cfq".to_string(), vec![1.0, 50.0, 100.0])];
    Page {
        title: "A title".to_string(),
        about: "world sim".to_string(),
        story: words(&["A story."]),
        answer: "An answer.".to_string(),
        tables: vec![table.clone()],
        curves: vec![Curves {
            title: "What is moved".to_string(),
            unit: "MB/s".to_string(),
            step: 0.1,
            series: series.clone(),
        }],
        callers: vec![Callers {
            caption: "cfq".to_string(),
            rows: vec![CallerRow {
                who: "db".to_string(),
                cells: ["sync", "12", "9 ms", "8 ms", "30 ms"].map(String::from),
                parts: vec![("device".to_string(), 0.75, "75.0 % device".to_string())],
            }],
        }],
        distributions: vec![Distributions {
            title: "By layer".to_string(),
            of: "calls".to_string(),
            medians: vec![base::Duration::from_nanos(3); series.len()],
            series,
            table: table.clone(),
        }],
        slow: vec![(table, Some(Place::Chain { run: 0, number: 0 }))],
        findings: vec![Finding {
            title: "It idles.".to_string(),
            cost: "8 ms".to_string(),
            evidence: words(&["It is seen.", "It was seen before."]),
            changes: words(&["slice_idle=0"]),
            place: Some(Place::Time { run: 0, from: 2_000_000, to: 3_000_000 }),
            ..Finding::default()
        }],
        timelines: vec![synthetic::timeline("cfq", 400, 1), synthetic::timeline("noop", 200, 2)],
        remark: "A remark.".to_string(),
    }
}

/// The page without what is within styles and scripts.
fn skeleton(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(start) = ["<style", "<script"].iter().filter_map(|it| rest.find(it)).min() {
        let name = if rest[start..].starts_with("<style") { "style" } else { "script" };
        let inside = start + rest[start..].find('>').unwrap() + 1;
        let end = inside + rest[inside..].find(&format!("</{name}>")).unwrap();
        out.push_str(&rest[..inside]);
        rest = &rest[end..];
        let tag = rest.find('>').unwrap() + 1;
        out.push_str(&rest[..tag]);
        rest = &rest[tag..];
    }
    out + rest
}

fn a_small_page_is_built_like_this() {
    expect_file!["small_page.txt"].assert_eq(&skeleton(&page().to_html()));
}

fn nothing_in_the_file_leads_out_of_it() {
    let html = page().to_html();
    for way in ["http:", "https:", "//cdn", "src=", "url(", "@import", "import(", "fetch(", "<link"]
    {
        assert!(!html.contains(way), "{way}");
    }
    let links = html.split("href=\"").skip(1);
    assert!(links.clone().count() > 4 && links.clone().all(|it| it.starts_with('#')));
    assert!(html.contains("default-src 'none'"));
}

fn names_cannot_become_tags() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&\u{1b}[2J";
    let mut page = page();
    (page.title, page.answer) = (evil.to_string(), evil.to_string());
    page.tables[0].caption = evil.to_string();
    page.curves[0].series[0].0 = evil.to_string();
    page.timelines[0].title = evil.to_string();
    page.timelines[0].lanes[2].name = evil.to_string();
    let html = page.to_html();
    assert!(!html.contains("<img") && !html.contains('\u{1b}'));
    let scripts = |html: &str| html.matches("</script>").count();
    assert_eq!(scripts(&html), scripts(&self::page().to_html()));
}

/// A comparison of two schedulers that takes a moment.
fn comparison() -> lab::Report {
    let line = "fio --name=r --filename=/dev/sda --rw=randrw --bs=4k --direct=1 --size=16m \
                --ioengine=libaio --iodepth=4 --number_ios=200";
    let job = lab::JobSpec::new("r", lab::Work::Command(line.to_string()), "test");
    let mut experiment = lab::Experiment::of_jobs("", vec![job]);
    experiment.schedulers =
        ["cfq@4.19", "deadline@4.19"].map(|it| (it.to_string(), String::new())).to_vec();
    lab::matrix::run(lab::plan::Plan::new(experiment).unwrap(), None, 2, &|_| {}).unwrap()
}

fn the_page_of_a_comparison_has_the_cells_of_its_text() {
    let report = comparison();
    let summary = lab::summary::Summary::of(&report);
    let took = std::time::Duration::ZERO;
    let recorded = lab::picture::recorded(&report, &summary).unwrap();
    assert_eq!(recorded.len(), 2);
    let page = report::html::compare::page(&report, &summary, took, recorded);
    let text = report::text::compare(&report, &summary, took, &Style::UNBROKEN);
    let cells = page.tables.iter().flat_map(|it| it.rows.iter().flatten());
    assert!(cells.clone().count() > 10);
    cells.for_each(|(cell, _)| assert!(text.contains(cell.as_str()), "{cell}"));
    assert!(page.answer.len() > 10 && !page.findings.is_empty());
}

fn parts_of_a_life_add_up() {
    let report = comparison();
    let recorded = lab::picture::recorded(&report, &lab::summary::Summary::of(&report)).unwrap();
    for run in recorded {
        assert!(run.lives.len() > 150, "{}", run.lives.len());
        for life in &run.lives {
            let sum: base::Duration = life.layers.iter().map(|(_, time)| *time).sum();
            assert_eq!(sum, life.end().since(life.queued), "{life:?}");
        }
        let timeline = insight::Timeline::of(run.clone());
        let done = (0..timeline.requests.len()).map(|at| timeline.requests.completed(at)).max();
        let last = run.lives.iter().map(|it| it.completed.as_nanos()).max();
        assert_eq!((timeline.tick, done), (1, last));
    }
}

fn trace_events_have_a_bar_for_each_request() {
    let timeline = synthetic::timeline("cfq", 300, 1);
    let text = report::perfetto::to_text(std::slice::from_ref(&timeline));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let bars = events.iter().filter(|it| it["ph"] == "X" && it["args"]["sector"].is_u64());
    assert_eq!(bars.count(), 600, "one in the task's lane, one in the device's");
    let flows = |phase: &str| events.iter().filter(|it| it["ph"] == phase).count();
    assert_eq!((flows("s"), flows("f")), (6, 6));
}

/// What is kept of the first so many requests of a run, in so many slices.
pub fn kept(run: &Recorded, requests: usize, slices: usize) -> Recorded {
    let mut keeper = Keeper::with_room(slices);
    let mut lives: Vec<&Life> = run.lives[..requests].iter().collect();
    lives.sort_by_key(|it| it.end());
    lives.into_iter().for_each(|it| keeper.see(it));
    run.held.iter().for_each(|it| keeper.see_held(*it));
    let (title, tasks, groups) = (run.title.clone(), run.tasks.clone(), run.groups.clone());
    Recorded { title, tasks, groups, ..keeper.finish(run.end) }
}

fn of_a_long_run_some_slices_are_kept_and_all_is_summed_up() {
    let run = synthetic::recorded("cfq", 150_000, 1);
    let whole = insight::Timeline::of(run.clone());
    let cut = kept(&run, 50_000, 30);
    assert!(!cut.is_cut() && cut.lives.len() == 50_000);
    let cut = kept(&run, 150_000, 30);
    assert!(cut.is_cut() && (58_000..65_000).contains(&cut.lives.len()), "{}", cut.lives.len());
    assert!(cut.requests() == 150_000 && cut.kept.len() > 10, "{:?}", cut.kept);
    // Whatever was under way at a time that is kept is there.
    let within = |life: &insight::Life| {
        let touches = |(from, to): &(_, _)| life.queued < *to && life.end() > *from;
        cut.kept.iter().any(touches)
    };
    let mut numbers: Vec<u64> =
        cut.lives.iter().map(|it| it.sector.0 ^ it.queued.as_nanos()).collect();
    numbers.sort_unstable();
    let missing = run
        .lives
        .iter()
        .filter(|it| within(it))
        .filter(|it| numbers.binary_search(&(it.sector.0 ^ it.queued.as_nanos())).is_err());
    assert_eq!(missing.count(), 0);
    // The slowest of all is among them.
    let slowest = |it: &insight::timeline::Recorded| it.lives.iter().map(|it| it.total()).max();
    assert_eq!(slowest(&cut), slowest(&run));
    // Sums are those of all requests.
    let timeline = insight::Timeline::of(cut.clone());
    let time = |it: &insight::Timeline, lane: usize| {
        let of_lane = it.pyramid.series.iter().filter(|it| it.lane == lane);
        let unit = |most: u64| most as f64 / 1000.0 / insight::timeline::FULL as f64;
        let finest = it.pyramid.levels[0];
        of_lane
            .map(|it| {
                it.parts[..finest].iter().map(|it| f64::from(*it)).sum::<f64>() * unit(it.most)
            })
            .sum::<f64>()
            * it.pyramid.width as f64
    };
    let device =
        |it: &insight::Timeline| it.lanes.iter().position(|it| it.name == "device").unwrap();
    let (all, some) = (time(&whole, device(&whole)), time(&timeline, device(&timeline)));
    assert!((0.9..1.1).contains(&(all / some)), "{all} {some}");
    use insight::timeline::spread;
    let bytes = |it| spread::bytes_over_time(it, run.end, 300).1.iter().sum::<u64>();
    let (all, some) = (bytes(&run), bytes(&cut));
    assert!(all.abs_diff(some) < all / 1000, "{all} {some}");
    let counts = |it| spread::by_layer(it).iter().map(|it| (it.count, it.max)).collect::<Vec<_>>();
    assert_eq!(counts(&run), counts(&cut));
}
