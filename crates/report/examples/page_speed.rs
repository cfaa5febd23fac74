//! A page with the timeline of a made-up run, and how fast a browser is with it:
//! `page_speed REQUESTS FILE [RUNS]`.

#[path = "../tests/page/browser.rs"]
#[allow(dead_code)]
mod browser;
#[path = "../tests/page/synthetic.rs"]
mod synthetic;

use browser::Browser;
use report::html::Page;
use std::path::Path;
use std::time::Instant;

/// Moves through the run for so many frames: how long drawing took, and what lay between frames.
const MOVE: &str = "(async () => {
  const { view, runs } = window.paternoster;
  const [drawn, between] = [[], []];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let last = await frame();
  for (let i = 0; i < 400; i++) {
    // From the whole run down to microseconds and back, moving all the while.
    view.zoom(i % 100 < 50 ? 0.75 : 1 / 0.75, 0.3 + 0.4 * Math.random());
    view.pan(0.05);
    const now = await frame();
    between.push(now - last);
    last = now;
    drawn.push(runs.reduce((sum, it) => sum + it.took, 0));
  }
  const p = (all, part) => all.sort((a, b) => a - b)[Math.floor(part * (all.length - 1))];
  const three = (all) => [0.5, 0.95, 1].map((part) => p(all, part).toFixed(1)).join(', ');
  return `drawing ${three(drawn)} ms, between frames ${three(between)} ms (p50, p95, longest)`;
})()";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [requests, file, rest @ ..] = words.as_slice() else {
        return eprintln!("page_speed REQUESTS FILE [RUNS]");
    };
    let requests: u32 = requests.parse().expect("a number of requests");
    let runs: u32 = rest.first().map_or(1, |it| it.parse().expect("a number of runs"));
    let began = Instant::now();
    let timelines = (1..=runs).map(|number| {
        synthetic::timeline(&format!("run {number}"), requests / runs, number.into())
    });
    let page = Page {
        title: "A made-up run".to_string(),
        answer: "Nothing is asked.".to_string(),
        timelines: timelines.collect(),
        ..Page::default()
    };
    let html = page.to_html();
    println!(
        "written in {:.1} s, {:.2} MB",
        began.elapsed().as_secs_f64(),
        html.len() as f64 / 1e6
    );
    std::fs::write(file, html).expect("the file can be written");
    let file = std::fs::canonicalize(Path::new(file)).expect("it was just written");
    let mut browser = Browser::start(1300, 900);
    for _ in 0..3 {
        browser.call("Page.navigate", serde_json::json!({ "url": "about:blank" }));
        let took = browser.open(&file, "");
        let own = browser.ask("window.paternoster.ready");
        println!("opened in {:.2} s; by its own clock {own} ms", took.as_secs_f64());
    }
    println!("{}", browser.ask(MOVE).as_str().unwrap_or_default());
}
