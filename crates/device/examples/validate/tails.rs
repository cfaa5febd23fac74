//! Published tails, and what the models show under the same load.

use base::{Duration, Rng};
use block::command::CommandOp::{self, Flush, Read, Write};
use device::Model;

use crate::competition::{Ask, Loop, Seen, compete};
use crate::targets::digits;

const NVME_PLP: &str = include_str!("../../../../models/nvme-plp.toml");
pub const NVME_980PRO: &str = include_str!("../../../../models/nvme-980pro.toml");

const VM_DISK: &str = include_str!("../../../../models/vm-disk.toml");

/// A host that writes back through the drive: at once, eight writes in order of place.
const WRITES_BACK: &str = r#"[write_back]
after   = { value = 0, unit = "s", source = "assumed", from = "as soon as it can" }
at_once = { value = 8, source = "assumed", from = "as many as reads" }
largest = { value = 64, unit = "KiB", source = "assumed", from = "a stripe" }

[jitter]"#;

/// A load on a model, and whose figures it is held against.
struct Row<'a> {
    model: &'static str,
    load: &'a str,
    /// What each figure is, and the unit of the times.
    figures: &'static str,
    from: &'static str,
}

impl Row<'_> {
    fn print(&self, published: &[f64], modelled: &[f64]) {
        let list = |values: &[f64]| -> String {
            let values: Vec<String> = values.iter().map(|value| digits(*value)).collect();
            values.join(", ")
        };
        let Row { model, load, figures, from } = self;
        let (published, modelled) = (list(published), list(modelled));
        println!("| {model} | {load} | {figures} | {published} | {modelled} | {from} |");
    }
}

/// Prints the table.
pub fn print() {
    println!("| model | load | figures | published | modelled | published of |");
    println!("|---|---|---|---|---|---|");
    reads_alone();
    protected_drive();
    beside_compaction();
    beside_flushes();
    beside_deep_writers();
    flushes();
    forced_writes();
    volume_below_its_limit();
    volume_at_its_limit();
    slices();
    host_writes_back();
}

fn model(name: &str) -> Model {
    Model::builtin(name).expect("a built-in model")
}

/// The model in this text without one of its optional sections.
fn without(name: &str, text: &str, section: &str) -> Model {
    let start = text.find(section).expect("the section");
    let end = text[start..].find("\n\n").map_or(text.len(), |length| start + length);
    let text = format!("{}{}", &text[..start], &text[end..]);
    Model::from_text(name, &text).expect("the section is optional")
}

fn span(from_ms: u64, until_ms: u64) -> (Duration, Duration) {
    (Duration::from_millis(from_ms), Duration::from_millis(until_ms))
}

/// So many commands in flight, as fast as the drive allows.
fn at_once(depth: u32, next: impl FnMut(&mut Rng) -> Ask + 'static) -> Loop {
    Loop { depth, core: Duration::ZERO, rest: None, next: Box::new(next) }
}

/// Random commands of so many sectors.
fn random(model: &Model, op: CommandOp, sectors: u32, depth: u32) -> Loop {
    let blocks = model.facts().capacity.0 / 512 / u64::from(sectors);
    at_once(depth, move |rng| {
        let sector = rng.below(blocks) * u64::from(sectors);
        Ask { op, sector, sectors, fua: false }
    })
}

/// One random 4 KiB write after the other, with forced unit access or not.
fn writes(model: &Model, fua: bool) -> Loop {
    let blocks = model.facts().capacity.0 / 4096;
    at_once(1, move |rng| Ask { op: Write, sector: rng.below(blocks) * 8, sectors: 8, fua })
}

/// One random 4 KiB write after the other, with a flush after each.
fn writes_with_flushes(model: &Model) -> Loop {
    let blocks = model.facts().capacity.0 / 4096;
    let mut flush = true;
    at_once(1, move |rng| {
        flush = !flush;
        let (op, sectors) = if flush { (Flush, 0) } else { (Write, 8) };
        let sector = if flush { 0 } else { rng.below(blocks) * 8 };
        Ask { op, sector, sectors, fua: false }
    })
}

/// The first of these loops, as it was seen on one drive.
fn first(model: &Model, loops: Vec<Loop>, (from, until): (Duration, Duration)) -> Seen {
    compete(model, 1, loops, (from, until)).swap_remove(0)
}

fn quantiles(seen: &Seen, shares: &[f64], unit_us: f64) -> Vec<f64> {
    shares.iter().map(|share| seen.quantile_us(*share) / unit_us).collect()
}

fn reads_alone() {
    let (name, from) = ("nvme-980pro", "980 PRO, ICPE 2024, less 6.35 us of host");
    let pro = model(name);
    let alone = |model: &Model, depth, until_ms| {
        first(model, vec![random(model, Read, 8, depth)], span(0, until_ms))
    };
    let load = "4 KiB random reads, depth 1";
    let seen = quantiles(&alone(&pro, 1, 20_000), &[0.5, 0.99, 0.999, 0.9999], 1.0);
    Row { model: name, load, figures: "p50, p99, p99.9, p99.99 us", from }
        .print(&[57.9, 70.9, 83.3, 144.0], &seen);
    let seen = quantiles(&alone(&pro, 32, 2000), &[0.5, 0.99, 0.999], 1.0);
    Row { model: name, load: "the same, depth 32", figures: "p50, p99, p99.9 us", from }
        .print(&[74.1, 217.9, 290.6], &seen);
    let (name, seen) = ("nvme-plp", alone(&model("nvme-plp"), 1, 20_000));
    let from = "at most 500 of an Intel S3700, 300 of an S4500: specifications";
    Row { model: name, load, figures: "p99.9 us", from }
        .print(&[300.0], &quantiles(&seen, &[0.999], 1.0));
    let from = "a little more of an Intel P4510, AnandTech 13704";
    Row { model: name, load, figures: "p99.99 : mean", from }
        .print(&[2.5], &[seen.quantile_us(0.9999) / seen.mean_us()]);
}

fn protected_drive() {
    let (name, plp) = ("nvme-plp", model("nvme-plp"));
    let alone = first(&plp, vec![writes(&plp, false)], span(0, 10_000));
    let load = "4 KiB random writes, depth 1";
    let from = "at most 500 of an Intel S3700, 800 of an S4500: specifications";
    Row { model: name, load, figures: "p99.9 us", from }
        .print(&[500.0], &quantiles(&alone, &[0.999], 1.0));
    let beside = |model: &Model| {
        let loops = vec![random(model, Read, 8, 1), writes(model, false)];
        quantiles(&first(model, loops, span(0, 10_000)), &[0.5, 0.95, 0.99, 0.999], 1.0)
    };
    let figures = "p50, p95, p99, p99.9 us";
    let load = "4 KiB random reads, depth 1, beside 4 KiB writes, depth 1; no garbage collection";
    let from = "Micron 7300 (programs take 2.6 ms), nearly empty, ublk-disksim";
    let seen = beside(&without(name, NVME_PLP, "[garbage_collection]"));
    Row { model: name, load, figures, from }.print(&[115.0, 172.0, 380.0, 2700.0], &seen);
    let load = "the same with garbage collection";
    let from = "the same in steady state";
    Row { model: name, load, figures, from }.print(&[104.0, 489.0, 2376.0, 3097.0], &beside(&plp));
}

/// How compaction writes is not published: here 112 MiB at once, five times a second.
fn beside_compaction() {
    let plp = model("nvme-plp");
    let mut at = 0;
    let mut compaction = at_once(112, move |_| {
        at += 2048;
        Ask { op: Write, sector: at, sectors: 2048, fua: false }
    });
    compaction.rest = Some((112, Duration::from_millis(200)));
    let mut reads = random(&plp, Read, 8, 32);
    // 135 thousand a second when nothing is written.
    reads.core = Duration::from_nanos(7400);
    let seen = first(&plp, vec![reads, compaction], span(0, 8000));
    let load = "4 KiB random reads, depth 32, beside 112 MiB written five times a second";
    let from = "Azure local NVMe beside compaction, eloqstore PR 461; how that writes is assumed";
    Row { model: "nvme-plp", load, figures: "p50, p99, p99.9 us", from }
        .print(&[97.0, 991.0, 19_800.0], &quantiles(&seen, &[0.5, 0.99, 0.999], 1.0));
}

fn beside_flushes() {
    let (name, sata) = ("ssd-sata-px256m5s", model("ssd-sata-px256m5s"));
    let loops = vec![random(&sata, Read, 8, 1), writes_with_flushes(&sata)];
    let seen = first(&sata, loops, span(0, 100_000));
    let mut modelled = vec![seen.per_second];
    modelled.extend(quantiles(&seen, &[0.5, 0.99, 0.999], 1e3));
    let load = "4 KiB random reads, depth 1, beside 4 KiB write + flush";
    let figures = "a second; p50, p99, p99.9 ms";
    Row { model: name, load, figures, from: "Samsung 850 EVO, ublk-disksim" }
        .print(&[612.0, 2.7, 6.7, 8.8], &modelled);
}

/// Figure 12 b of ICPE 2024: on eight drives whose fast areas are full, one process of small reads
/// and some of large writes. The amplification is that of the published rate of 32 writers.
fn beside_deep_writers() {
    let text = NVME_980PRO.replace("random     = { value = 5", "random = { value = 1.6");
    let full = without("nvme-980pro", &text, "[fast_area]");
    let published: [(&str, usize, [f64; 5]); 6] = [
        ("1 process of 64 KiB random writes, depth 128", 1, [164.0, 0.782, 2.04, 3.13, 27.4]),
        ("2 processes", 2, [74.2, 1.72, 4.05, 31.9, 48.5]),
        ("4 processes", 4, [19.8, 6.45, 56.4, 85.5, 137.0]),
        ("8 processes", 8, [14.3, 8.96, 66.8, 123.0, 217.0]),
        ("16 processes", 16, [9.89, 12.9, 93.8, 188.0, 329.0]),
        ("32 processes", 32, [5.49, 23.3, 114.0, 413.0, 734.0]),
    ];
    for (beside, count, published) in published {
        let mut loops = vec![random(&full, Read, 8, 128)];
        // The core of the readers does 382 thousand a second.
        loops[0].core = Duration::from_nanos(2620);
        loops.extend((0..count).map(|_| random(&full, Write, 128, 128)));
        let seen = compete(&full, 8, loops, span(2000, 5000)).swap_remove(0);
        let mut modelled = vec![seen.per_second / 1e3, seen.mean_us() / 1e3];
        modelled.extend(quantiles(&seen, &[0.95, 0.99, 0.999], 1e3));
        let load = match count {
            1 => format!("8 drives, 4 KiB random reads, depth 128, beside {beside}"),
            _ => format!("the same beside {beside}"),
        };
        let figures = "thousand a second; mean, p95, p99, p99.9 ms";
        Row { model: "nvme-980pro", load: &load, figures, from: "980 PRO, ICPE 2024 fig. 12 b" }
            .print(&published, &modelled);
    }
}

fn flushes() {
    let ratios = "mean ms; p99 : p50, p99.9 : p50";
    for (name, figures, published, from) in [
        ("ssd-sata-m4", ratios, &[3.17, 2.4, 3.0] as &[f64], "Samsung 850 EVO (ratios derived)"),
        ("ssd-sata-px256m5s", ratios, &[3.17, 2.4, 3.0], "the same"),
        ("nvme-980pro", "the same, mean published", &[1.915], "980 PRO 2 TB, LUKS and LVM, Freund"),
    ] {
        let model = model(name);
        let seen = first(&model, vec![writes_with_flushes(&model)], span(0, 100_000)).in_pairs();
        let p50 = seen.quantile_us(0.5);
        let ratio = |share| seen.quantile_us(share) / p50;
        let modelled = [seen.mean_us() / 1e3, ratio(0.99), ratio(0.999)];
        Row { model: name, load: "4 KiB write + flush, depth 1", figures, from }
            .print(published, &modelled);
    }
}

fn forced_writes() {
    let (name, pro) = ("nvme-980pro", model("nvme-980pro"));
    let seen = first(&pro, vec![writes(&pro, true)], span(0, 60_000));
    let load = "4 KiB write with forced unit access, depth 1";
    Row { model: name, load, figures: "mean ms", from: "the same" }
        .print(&[4.47], &[seen.mean_us() / 1e3]);
}

fn volume_below_its_limit() {
    let (name, gp2) = ("cloud-gp2", model("cloud-gp2"));
    let from = "EBS, probably gp2, Buildkite 2020";
    let seen = |op| first(&gp2, vec![random(&gp2, op, 8, 1)], span(0, 300_000));
    let reads = seen(Read);
    let mut modelled = vec![reads.mean_us()];
    modelled.extend(quantiles(&reads, &[0.01, 0.5, 0.9, 0.99, 0.999, 0.9999], 1.0));
    let figures = "mean, p1, p50, p90, p99, p99.9, p99.99 us";
    Row { model: name, load: "4 KiB random reads, depth 1", figures, from }
        .print(&[642.0, 211.0, 410.0, 1432.0, 3312.0, 5216.0, 9664.0], &modelled);
    let writes = seen(Write);
    let mut modelled = vec![writes.mean_us()];
    modelled.extend(quantiles(&writes, &[0.01, 0.5, 1.0], 1.0));
    let figures = "mean, p1, p50, longest us";
    Row { model: name, load: "4 KiB random writes, depth 1", figures, from }
        .print(&[592.0, 446.0, 556.0, 12_700.0], &modelled);
}

fn volume_at_its_limit() {
    let (name, gp2) = ("cloud-gp2", model("cloud-gp2"));
    let seen = first(&gp2, vec![random(&gp2, Read, 8, 1024)], span(0, 120_000));
    let mut modelled = vec![seen.per_second, seen.mean_us() / 1e3];
    modelled.extend(quantiles(&seen, &[0.1, 0.5, 0.9, 0.99, 1.0], 1e3));
    let figures = "a second; mean, p10, p50, p90, p99, longest ms";
    let from = "EBS with a limit of 3,000, niwinz 2020";
    Row { model: name, load: "4 KiB random reads, depth 1,024", figures, from }
        .print(&[3024.0, 337.0, 317.0, 338.0, 363.0, 384.0, 456.0], &modelled);
}

fn slices() {
    let (name, sliced) = ("cloud-sliced", model("cloud-sliced"));
    let blocks = sliced.facts().capacity.0 / 4096;
    let mixed = at_once(32, move |rng| {
        let op = if rng.chance(1, 2) { Read } else { Write };
        Ask { op, sector: rng.below(blocks) * 8, sectors: 8, fua: false }
    });
    let seen = first(&sliced, vec![mixed], span(0, 120_000));
    let within = |ms: f64| {
        let until = |ms: f64| seen.share_within_us(ms * 1e3);
        (until(ms + 8.0) - until(ms - 8.0)) * 100.0
    };
    let modes = [0.0, 250.0, 500.0, 750.0].map(within);
    let load = "4 KiB random reads and writes, depth 32";
    let figures = "% within 8 ms of 0, 250, 500, 750 ms";
    let from = "modes at all four on an unnamed server, pastebin xxeJp5Vu";
    Row { model: name, load, figures, from }.print(&[], &modes);
}

fn host_writes_back() {
    let seen = |text: &str, others: Option<u64>| {
        let model = Model::from_text("vm-disk", text).expect("a model");
        let paced = |millis| {
            let rest = Some((1, Duration::from_millis(millis)));
            vec![random(&model, Read, 8, 1), Loop { rest, ..random(&model, Write, 8, 1) }]
        };
        match others {
            Some(millis) => first(&model, paced(millis), span(20_000, 80_000)),
            None => first(&model, vec![random(&model, Write, 8, 1)], span(20_000, 80_000)),
        }
    };
    let texts = [("vm-disk", VM_DISK.to_string()), ("the same with `write_back`", through_drive())];
    for (name, text) in texts {
        let (load, from) =
            ("4 KiB random writes, depth 1, after 20 s", "7200 rpm behind a PERC H730");
        Row { model: name, load, figures: "a second", from }
            .print(&[1102.0], &[seen(&text, None).per_second]);
        let reads = seen(&text, Some(10));
        let load = "4 KiB random reads, depth 1, beside one such write every 10 ms";
        let modelled = [reads.per_second, reads.mean_us() / 1e3, reads.quantile_us(0.99) / 1e3];
        Row { model: name, load, figures: "a second; mean, p99 ms", from: "nobody" }
            .print(&[], &modelled);
    }
}

/// The virtual disk whose host writes back through the drive.
fn through_drive() -> String {
    VM_DISK.replacen("[jitter]", WRITES_BACK, 1)
}
