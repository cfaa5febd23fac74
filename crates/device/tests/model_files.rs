//! Model files: the built-in ones, and what is said about wrong ones.

use std::path::{Path, PathBuf};

use base::{Instant, Sector, Sectors};
use block::command::{Command, CommandOp, Tag};
use device::Model;
use params::SOURCES;
use proptest::prelude::*;

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

#[test]
fn every_parameter_of_every_built_in_model_has_a_source() {
    let names: Vec<&str> = Model::names().collect();
    let wanted = [
        "hdd-7200-sata",
        "hdd-sas-2009",
        "cheetah9lp",
        "vm-disk",
        "vm-disk-wt",
        "ssd-sata-m4",
        "ssd-sata-px256m5s",
        "nvme-980pro",
        "nvme-plp",
        "cloud-gp3",
        "null",
        "recorded-fast",
        "recorded-hddra",
    ];
    for name in wanted {
        assert!(names.contains(&name), "{name} is missing");
    }
    for name in names {
        let model = Model::builtin(name).unwrap_or_else(|error| panic!("{error}"));
        assert!(model.parameters().len() > 10, "{name}");
        for parameter in model.parameters() {
            assert!(SOURCES.contains(&parameter.source.as_str()), "{name}: {parameter:?}");
            assert!(!parameter.from.is_empty(), "{name}: {parameter:?}");
        }
    }
}

#[test]
fn a_file_and_the_built_in_model_of_its_name_are_the_same() {
    for name in Model::names() {
        let loaded = Model::load(&models().join(format!("{name}.toml"))).unwrap();
        let builtin = Model::builtin(name).unwrap();
        assert_eq!(loaded.parameters(), builtin.parameters(), "{name}");
        assert_eq!(loaded.facts(), builtin.facts(), "{name}");
    }
}

#[test]
fn a_wrong_name_lists_the_nearest() {
    let error = Model::find("hdd-7200-stata").unwrap_err().to_string();
    assert!(
        error.starts_with(
            "unknown model \"hdd-7200-stata\"; nearest: \"hdd-7200-sata\"; built-in models: "
        ),
        "{error}"
    );
    let error = Model::find("/nonexistent/x.toml").unwrap_err().to_string();
    assert!(error.starts_with("/nonexistent/x.toml: cannot be read: "), "{error}");
}

/// The message about `model` with the first `old` replaced by `new`.
fn complaint(model: &str, old: &str, new: &str) -> String {
    let text = std::fs::read_to_string(models().join(format!("{model}.toml"))).unwrap();
    assert!(text.contains(old), "{model} has no {old}");
    match Model::from_text("FILE", &text.replacen(old, new, 1)) {
        Ok(_) => "accepted".to_string(),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_damaged_model_file_is_refused_or_works(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8), 1..4),
    ) {
        let names: Vec<&str> = Model::names().collect();
        let name = names[which.index(names.len())];
        let mut text = std::fs::read_to_string(models().join(format!("{name}.toml"))).unwrap();
        for (at, change) in changes {
            let at = at.index(text.len());
            if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
                let new = ["", "0", "9", "\"", "=", "\n", "-", "e9"][change];
                text.replace_range(at..at + 1, new);
            }
        }
        if let Ok(model) = Model::from_text("FILE", &text) {
            let mut device = model.build(1);
            let (mut now, mut completed) = (Instant::ZERO, Vec::new());
            let ops = [CommandOp::Write, CommandOp::Flush, CommandOp::Read];
            for (tag, op) in ops.into_iter().enumerate() {
                let sectors = Sectors(if op == CommandOp::Flush { 0 } else { 8 });
                let tag = Tag(tag as u32);
                let command = Command { tag, op, sector: Sector(0), sectors, fua: false };
                device.accept(now, command);
                while completed.len() <= tag.0 as usize {
                    now = device.next_event().expect("a command is in flight");
                    device.advance(now, &mut completed);
                }
            }
        }
    }
}

#[test]
fn complaints_name_place_cause_and_what_is_accepted() {
    let hdd = |old, new| complaint("hdd-7200-sata", old, new);
    let cases = [
        (hdd("rpm     ", "rmp     "), COMPLAINTS[0]),
        (hdd("[mechanics]\nrpm ", "[mechanics]\n# rpm "), COMPLAINTS[1]),
        (hdd("value = 7200, unit = \"rpm\"", "value = 7200, unit = \"Hz\""), COMPLAINTS[2]),
        (hdd("value = 7200, unit", "value = 72, unit"), COMPLAINTS[3]),
        (hdd("value = 7200, unit", "value = \"fast\", unit"), COMPLAINTS[4]),
        (hdd("[mechanics]", "[mechanic]"), COMPLAINTS[5]),
        (hdd("kind = \"rotational\"", "kind = \"rotary\""), COMPLAINTS[6]),
        (hdd("source = \"datasheet\", from = \"it turns\"", "from = \"it turns\""), COMPLAINTS[7]),
        (hdd("\"next-track\"", "\"next-trak\""), COMPLAINTS[8]),
        (hdd("value = 3, source", "value = 1, source"), COMPLAINTS[9]),
        (hdd("\"hdd-7200-zones.csv\"", "\"hdd-7200-zone.csv\""), COMPLAINTS[10]),
        (hdd("title = \"", "title = "), COMPLAINTS[11]),
        (hdd("value = 32, source", "value = 32, sauce"), COMPLAINTS[12]),
        (complaint("vm-disk", "\"hdd-7200-sata\"", "\"vm-disk-wt\""), COMPLAINTS[13]),
        (complaint("vm-disk", "\"hdd-7200-sata\"", "\"cheetah9lp\""), COMPLAINTS[14]),
        (
            complaint("cloud-gp3", "peak       = { value = 3000", "peak = { value = 30"),
            COMPLAINTS[15],
        ),
        (complaint("vm-disk", "[[0.001, 2000, 10000]]", "[[0.001, 2000]]"), COMPLAINTS[16]),
        (complaint("recorded-fast", "\"fifo\"", "\"positioning\""), COMPLAINTS[17]),
        (hdd("[link]", &optional("write_hits", "are", "\"all\"", "[link]")), COMPLAINTS[18]),
        (
            hdd("[link]", &optional("read_watermark", "share", "2, unit = \"share\"", "[link]")),
            COMPLAINTS[19],
        ),
        (
            hdd("[link]", &optional("zone_fronts", "table", "\"fronts.csv\"", "[link]")),
            COMPLAINTS[20],
        ),
    ];
    for (seen, expected) in cases {
        assert_eq!(seen, expected);
    }
}

/// A section with one parameter, before what follows it.
fn optional(section: &str, name: &str, value: &str, next: &str) -> String {
    format!(
        "[{section}]\n{name} = {{ value = {value}, source = \"assumed\", from = \"x\" }}\n{next}"
    )
}

const COMPLAINTS: [&str; 21] = [
    "FILE:26: unknown parameter \"mechanics.rmp\"; nearest: \"rpm\"; [mechanics] has rpm, \
     head_switch, write_settle, write_settle_track, zero_latency_read, zero_latency_write",
    "FILE:25: missing parameter \"mechanics.rpm\"; add rpm = { value = …, unit = …, \
     source = …, from = … } with a number from 1000 to 30000, unit \"rpm\"",
    "FILE:26: mechanics.rpm: unit \"Hz\"; a number from 1000 to 30000, unit \"rpm\"",
    "FILE:26: mechanics.rpm: value 72 is out of range; a number from 1000 to 30000, unit \
     \"rpm\"",
    "FILE:26: mechanics.rpm: value is a string; a number from 1000 to 30000, unit \"rpm\"",
    "FILE:25: unknown section [mechanic]; nearest: \"mechanics\"; sections of a model of kind \
     \"rotational\": disk, geometry, serpentine, slips, zone_fronts, mechanics, seek_table, \
     seek_formula, overhead, write_hits, link, read_watermark, read_cache, look_ahead, \
     write_cache, queue",
    "FILE:1: unknown kind \"rotary\"; kinds: flash, null, rotational, single-server, \
     token-bucket, virtual-disk",
    "FILE:7: disk.rotational: no source; sources: datasheet, measured, derived, fitted, \
     assumed",
    "FILE:58: look_ahead.until: value \"next-trak\"; nearest: \"next-track\"; one of \
     nothing, track, next-track, cylinder, segment",
    "FILE:6: disk.capacity: 1953525168 sectors do not fit into the zones; at most \
     754222592 sectors",
    "FILE:20: geometry.zones: unknown name \"hdd-7200-zone.csv\"; nearest: \
     \"hdd-7200-zones.csv\"; a table beside the model file, or one of \
     cheetah9lp-seek.csv, cheetah9lp-slips.csv, cheetah9lp-zones.csv, hdd-10k-seek.csv, \
     hdd-10k-zones.csv, hdd-7200-zones.csv",
    "FILE:2: not TOML: unexpected key or value, expected newline, `#`; a model file is \
     TOML 1.0",
    "FILE:10: disk.queue_depth: unknown field \"sauce\"; nearest: \"source\"; value, \
     unit, source, from",
    "models/vm-disk-wt.toml:1: kind \"virtual-disk\"; a model behind a virtual disk is \
     none itself",
    "FILE:19: backing.model: cheetah9lp holds 9105018880 bytes; a model of at least \
     107374182400 bytes",
    "FILE:21: commands.peak: peak 30 below baseline 3000; a peak of at least the baseline",
    "FILE:37: jitter.tail: a row has 2 numbers; a list of rows of 3 numbers, unit \
     \"share, us, us\"",
    "FILE:23: service.order: by positioning, without an arm; \"fifo\", or a section [arm]",
    "FILE:49: write_hits.are: value \"all\"; one of joining-writes, cached-writes",
    "FILE:49: read_watermark.share: value 2 is out of range; a number from 0 to 1, unit \
     \"share\"",
    "FILE:49: zone_fronts.table: unknown name \"fronts.csv\"; a table beside the model file, or \
     one of cheetah9lp-seek.csv, cheetah9lp-slips.csv, cheetah9lp-zones.csv, hdd-10k-seek.csv, \
     hdd-10k-zones.csv, hdd-7200-zones.csv",
];
