//! What the sources say about each model's drive, and what the model does.

use block::command::CommandOp::{Read, Write};
use device::Model;

use crate::load::{closed_loop, end_to_end, random, sequential, write_and_flush};

/// A figure of a source: none, one number, or the two ends of a range.
enum Expected {
    Unknown,
    About(f64),
    Between(f64, f64),
}
use Expected::{About, Between, Unknown};

/// Time a request spends in the host, in the measurements of the 980 PRO (us): 2.35 for
/// submission, and 4 of the 20.4 of a read of never-written blocks.
const HOST_980: f64 = 6.35;

/// Prints the table.
pub fn print() {
    println!("| model | what | source | modelled | unit | difference | where the figure is from |");
    println!("|---|---|---|---|---|---|---|");
    hdd_7200_sata();
    hdd_sas_2009();
    cheetah9lp();
    virtual_disks();
    ssd_sata_m4();
    ssd_sata_px256m5s();
    nvme_980pro();
    nvme_plp();
    cloud();
}

fn hdd_7200_sata() {
    let model = model("hdd-7200-sata");
    let last = model.facts().capacity.0 / 512 - 3_000_000;
    let row =
        |what, expected, seen, unit, from| row("hdd-7200-sata", what, expected, seen, unit, from);
    row(
        "4 KiB random read, depth 1",
        About(91.0),
        random(&model, Read, 8, 1, 20_000).iops,
        "IOPS",
        "seek + half a turn + overhead",
    );
    row(
        "4 KiB random read, depth 32",
        Between(190.0, 240.0),
        random(&model, Read, 8, 32, 20_000).iops,
        "IOPS",
        "enterprise drives with ideal reordering",
    );
    row(
        "sequential read, outer edge",
        About(165.3),
        sequential(&model, Read, 0, 1, 20_000),
        "MB/s",
        "zone table with skew",
    );
    row(
        "sequential read, inner edge",
        About(105.4),
        sequential(&model, Read, last, 1, 8000),
        "MB/s",
        "zone table with skew",
    );
    row(
        "sequential write, outer edge",
        About(165.3),
        sequential(&model, Write, 0, 1, 20_000),
        "MB/s",
        "zone table with skew",
    );
    let seek = end_to_end(&model) / 1e3 - 60_000.0 / 7200.0 / 2.0 - 0.1 - 0.02;
    row(
        "full stroke, less half a turn",
        About(12.3),
        seek,
        "ms",
        "seek formula at 244,736 cylinders",
    );
    row(
        "4 KiB write + flush",
        Between(8.0, 12.0),
        write_and_flush(&model) / 1e3,
        "ms",
        "mean of one block at a time",
    );
}

fn hdd_sas_2009() {
    let model = model("hdd-sas-2009");
    let row =
        |what, expected, seen, unit, from| row("hdd-sas-2009", what, expected, seen, unit, from);
    row(
        "4 KiB random read, depth 1",
        About(123.0),
        random(&model, Read, 8, 1, 20_000).iops,
        "IOPS",
        "4.84 ms seek + half a turn + 0.25 ms overhead",
    );
    row(
        "sequential read, outer edge",
        Between(76.9, 79.0),
        sequential(&model, Read, 0, 1, 20_000),
        "MB/s",
        "founding report 3; 78.2 by the zone table",
    );
    let seek = end_to_end(&model) / 1e3 - 60_000.0 / 10_001.0 / 2.0 - 0.25 - 0.05;
    row("full stroke, less half a turn", About(9.07), seek, "ms", "seek table at 78,200 cylinders");
    let one = random(&model, Write, 8, 1, 20_000).mean_us / 1e3;
    row(
        "4 KiB random write, depth 1",
        About(4.99 + 3.0 + 0.25),
        one,
        "ms",
        "write seek + half a turn + overhead",
    );
    row("flush", About(0.0), write_and_flush(&model) / 1e3 - one, "ms", "no volatile cache");
}

fn cheetah9lp() {
    let model = model("cheetah9lp");
    let row =
        |what, expected, seen, unit, from| row("cheetah9lp", what, expected, seen, unit, from);
    let derived = 5.468 + 60_000.0 / 10_045.0 / 2.0 + 0.284 + 8.0 * 0.1033;
    row(
        "4 KiB random read, depth 1",
        About(derived),
        random(&model, Read, 8, 1, 20_000).mean_us / 1e3,
        "ms",
        "mean seek + half a turn + overhead + bus",
    );
    let seek = end_to_end(&model) / 1e3 - 60_000.0 / 10_045.0 / 2.0 - 0.284 - 8.0 * 0.1033;
    row("full stroke, less half a turn", About(10.627), seek, "ms", "measured seek table");
    row(
        "sequential read, outer edge",
        About(4.956),
        sequential(&model, Read, 0, 1, 4000),
        "MB/s",
        "the host's bus is the limit",
    );
}

fn virtual_disks() {
    let medians = [
        ("vm-disk", 64.0, 84.0),
        ("vm-disk-wt", 79.0, 79.0),
        ("vm-ssd-m4", 40.0, 100.0),
        ("vm-ssd-m4-qd1", 44.5, 104.5),
    ];
    for (name, write, both) in medians {
        let model = model(name);
        let row = |what, expected, seen, unit, from| row(name, what, expected, seen, unit, from);
        row(
            "4 KiB write, depth 1, median",
            About(write),
            random(&model, Write, 8, 1, 20_000).median_us,
            "us",
            "fitted to the founding report",
        );
        row(
            "4 KiB write + flush",
            About(both),
            write_and_flush(&model),
            "us",
            "the same, and the outliers",
        );
    }
    for name in ["vm-ssd-m4", "vm-ssd-m4-qd1"] {
        row(
            name,
            "16 KiB random write, depth 1, median",
            Between(45.0, 49.9),
            random(&model(name), Write, 32, 1, 50_000).median_us,
            "us",
            "modes 51-52, p50 53.8 without fsync, founding report 4, less 6 us of its host",
        );
    }
}

fn ssd_sata_m4() {
    let model = model("ssd-sata-m4");
    let row =
        |what, expected, seen, unit, from| row("ssd-sata-m4", what, expected, seen, unit, from);
    row(
        "4 KiB random read, depth 1",
        About(190.0),
        random(&model, Read, 8, 1, 50_000).mean_us,
        "us",
        "derived from depth 3, host included",
    );
    row(
        "4 KiB random read, depth 3",
        About(15_000.0),
        random(&model, Read, 8, 3, 50_000).iops,
        "IOPS",
        "Tom's Hardware, host included",
    );
    row(
        "4 KiB random read, depth 32",
        About(46_824.0),
        random(&model, Read, 8, 32, 200_000).iops,
        "IOPS",
        "Tom's Hardware",
    );
    row(
        "4 KiB random write, depth 32",
        About(59_175.0),
        random(&model, Write, 8, 32, 200_000).iops,
        "IOPS",
        "Tom's Hardware, fresh drive",
    );
    row(
        "sequential read, depth 32",
        About(415.0),
        sequential(&model, Read, 0, 32, 20_000),
        "MB/s",
        "data sheet",
    );
    row(
        "sequential write, depth 32",
        About(260.0),
        sequential(&model, Write, 0, 32, 20_000),
        "MB/s",
        "data sheet",
    );
    row(
        "4 KiB write + flush",
        About(2.9),
        write_and_flush(&model) / 1e3,
        "ms",
        "program 1.3 + 1.5 + accept, assumed",
    );
}

fn ssd_sata_px256m5s() {
    let model = model("ssd-sata-px256m5s");
    let row = |what, expected, seen, unit, from| {
        row("ssd-sata-px256m5s", what, expected, seen, unit, from)
    };
    row(
        "4 KiB random read, depth 1",
        About(163.0),
        random(&model, Read, 8, 1, 50_000).mean_us,
        "us",
        "178 published, less 15 of host",
    );
    // Each reader spends 15 us in the host between two reads, as the row above.
    let mean_us = random(&model, Read, 8, 10, 100_000).mean_us;
    let ten = 10.0 / (mean_us + 15.0) * 4096.0;
    row(
        "4 KiB random read, depth 10",
        Between(191.0, 203.0),
        ten,
        "MB/s",
        "BFQ's tables; modelled with 15 us of host",
    );
    row(
        "4 KiB random read, depth 32",
        About(73_888.0),
        random(&model, Read, 8, 32, 200_000).iops,
        "IOPS",
        "Tom's Hardware",
    );
    row(
        "4 KiB random write, depth 32",
        About(69_346.0),
        random(&model, Write, 8, 32, 200_000).iops,
        "IOPS",
        "Tom's Hardware, fresh drive",
    );
    row(
        "sequential read, depth 32",
        About(515.0),
        sequential(&model, Read, 0, 32, 20_000),
        "MB/s",
        "measured",
    );
    row(
        "sequential write, depth 32",
        About(390.0),
        sequential(&model, Write, 0, 32, 20_000),
        "MB/s",
        "data sheet",
    );
    row(
        "4 KiB write + flush",
        Between(2.8, 3.2),
        write_and_flush(&model) / 1e3,
        "ms",
        "3.2 of a Samsung 850 EVO",
    );
}

fn nvme_980pro() {
    let model = model("nvme-980pro");
    let row = |what: &str, expected, seen, unit, from| {
        row("nvme-980pro", what, expected, seen, unit, from)
    };
    let figures = [(1, 68.3), (2, 67.6), (4, 68.3), (8, 70.4), (16, 76.4), (32, 85.9), (64, 114.0)];
    for (depth, mean_us) in figures {
        let seen = random(&model, Read, 8, depth, 200_000).mean_us;
        row(
            &format!("4 KiB random read, depth {depth}"),
            About(mean_us - HOST_980),
            seen,
            "us",
            "ICPE 2024, less 6.35 us of host",
        );
    }
    for (depth, iops) in [(128, 731.0), (256, 781.0)] {
        let seen = random(&model, Read, 8, depth, 400_000).iops / 1e3;
        row(
            &format!("4 KiB random read, depth {depth}"),
            About(iops),
            seen,
            "kIOPS",
            "ICPE 2024, four processes",
        );
    }
    nvme_980pro_large(&model);
}

fn nvme_980pro_large(model: &Model) {
    let row = |what: &str, expected, seen, unit, from| {
        row("nvme-980pro", what, expected, seen, unit, from)
    };
    for (kib, mean_us) in [(8, 114.0), (16, 126.0), (32, 148.0), (64, 153.0)] {
        let seen = random(model, Read, kib * 2, 1, 50_000).mean_us;
        row(
            &format!("{kib} KiB random read, depth 1"),
            About(mean_us - HOST_980),
            seen,
            "us",
            "ICPE 2024, less 6.35 us of host",
        );
    }
    for (kib, kiops) in [(8, 303.0), (16, 135.0), (32, 64.0), (64, 32.2)] {
        let seen = random(model, Read, kib * 2, 256, 100_000).iops / 1e3;
        row(&format!("{kib} KiB random read, depth 256"), About(kiops), seen, "kIOPS", "ICPE 2024");
    }
    row(
        "sequential read, depth 32",
        About(3200.0),
        sequential(model, Read, 0, 32, 50_000),
        "MB/s",
        "PCIe 3 x4 limit of the same host",
    );
    row(
        "sequential write, depth 32, fast area of an empty drive",
        About(3300.0),
        sequential(&empty_980_pro(), Write, 0, 32, 50_000),
        "MB/s",
        "AnandTech, PCIe 3",
    );
    row(
        "sequential write, depth 32, after it",
        About(2000.0),
        sequential_after_fast_area(&empty_980_pro()),
        "MB/s",
        "assumed",
    );
    row(
        "4 KiB write + flush",
        About(1.915),
        write_and_flush(model) / 1e3,
        "ms",
        "2 TB behind LUKS and LVM, Freund",
    );
}

fn nvme_plp() {
    let model = model("nvme-plp");
    let row = |what, expected, seen, unit, from| row("nvme-plp", what, expected, seen, unit, from);
    row(
        "4 KiB random read, depth 1",
        About(80.0),
        random(&model, Read, 8, 1, 50_000).mean_us,
        "us",
        "data sheet",
    );
    row(
        "4 KiB random read, depth 32",
        Unknown,
        random(&model, Read, 8, 32, 200_000).iops / 1e3,
        "kIOPS",
        "no figure published",
    );
    row(
        "4 KiB random read, depth 512",
        About(850.0),
        random(&model, Read, 8, 512, 500_000).iops / 1e3,
        "kIOPS",
        "data sheet",
    );
    row(
        "4 KiB random write, depth 1",
        Between(14.3, 30.0),
        random(&model, Write, 8, 1, 2000).mean_us,
        "us",
        "measured 14.3; data sheet 30",
    );
    row(
        "4 KiB random write, depth 32, steady",
        About(130.0),
        random(&model, Write, 8, 32, 500_000).iops / 1e3,
        "kIOPS",
        "data sheet",
    );
    row(
        "sequential read, depth 32",
        About(6800.0),
        sequential(&model, Read, 0, 32, 50_000),
        "MB/s",
        "data sheet",
    );
    row(
        "sequential write, depth 32",
        About(2700.0),
        sequential(&model, Write, 0, 32, 50_000),
        "MB/s",
        "data sheet",
    );
    row(
        "4 KiB write + flush",
        Between(14.3, 35.0),
        write_and_flush(&model),
        "us",
        "no flush is sent to it; 34 of a Micron 7300",
    );
}

fn cloud() {
    let (measured, assumed) = ("EBS, probably gp2, Buildkite", "assumed median; mean modelled");
    for (name, mean_us, from, iops, rate) in [
        ("cloud-gp3", About(642.0), measured, 3000.0, 131.1),
        ("cloud-gp2", About(642.0), measured, 3000.0, 134.2),
        ("cloud-azure-p10", Between(1500.0, 1725.0), assumed, 3500.0, 178.3),
        ("cloud-pd-ssd", Between(550.0, 632.5), assumed, 3000.0, 50.3),
    ] {
        let model = model(name);
        let row = |what, expected, seen, unit, from| row(name, what, expected, seen, unit, from);
        row(
            "4 KiB random read, depth 1",
            mean_us,
            random(&model, Read, 8, 1, 20_000).mean_us,
            "us",
            from,
        );
        row(
            "4 KiB random read, depth 32",
            About(iops),
            random(&model, Read, 8, 32, 50_000).iops,
            "IOPS",
            "documentation (burst where there is one)",
        );
        row(
            "sequential read, depth 32",
            About(rate),
            sequential(&model, Read, 0, 32, 20_000),
            "MB/s",
            "documentation (burst where there is one)",
        );
        row(
            "sequential write, depth 32",
            About(rate),
            sequential(&model, Write, 0, 32, 20_000),
            "MB/s",
            "documentation (burst where there is one)",
        );
    }
}

/// The drive before anything was written to it.
fn empty_980_pro() -> Model {
    let (full, empty) = ("prefilled         = { value = true", "prefilled = { value = false");
    let text = crate::tails::NVME_980PRO.replace(full, empty);
    Model::from_text("nvme-980pro", &text).expect("the built-in model, but for one value")
}

fn sequential_after_fast_area(model: &Model) -> f64 {
    // The fast area takes 128 GB: 189 GB of warm-up are enough.
    let mut at = 0;
    let achieved = closed_loop(&mut *model.build(1), 1, 90_000, 110_000, |_| {
        at += 4096;
        (Write, at - 4096, 4096)
    });
    achieved.iops * 2.097_152
}

fn model(name: &str) -> Model {
    Model::builtin(name).expect("a built-in model")
}

fn row(model: &str, what: &str, expected: Expected, seen: f64, unit: &str, from: &str) {
    let (shown, difference) = match &expected {
        Unknown => ("-".to_string(), 0.0),
        About(value) if *value == 0.0 => (digits(*value), seen),
        About(value) => (digits(*value), seen / value - 1.0),
        Between(low, high) => {
            let outside = if seen < *low { seen / low - 1.0 } else { (seen / high - 1.0).max(0.0) };
            (format!("{}-{}", digits(*low), digits(*high)), outside)
        }
    };
    let mark = if difference.abs() > 0.10 { " **(!)**" } else { "" };
    let percent = match expected {
        Unknown => "-".to_string(),
        _ => format!("{:+.1} %{mark}", difference * 100.0),
    };
    println!("| {model} | {what} | {shown} | {} | {unit} | {percent} | {from} |", digits(seen));
}

pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
