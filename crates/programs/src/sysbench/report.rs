//! What sysbench says at the end.

use super::Counts;
use super::options::{Generation, Sysbench};
use base::Duration;

const MIB: u128 = 1 << 20;

/// The closing lines.
pub(super) fn lines(options: &Sysbench, counts: &Counts, elapsed: Duration) -> Vec<String> {
    let read = u128::from(counts.reads) * u128::from(options.block);
    let written = u128::from(counts.writes) * u128::from(options.block);
    let rate = |bytes| rate(bytes, MIB, elapsed);
    let operations = |count: u64| self::rate(count.into(), 1, elapsed);
    match options.generation {
        Generation::V0_4 => vec![
            format!(
                "Operations performed:  {} Read, {} Write, {} Other = {} Total",
                counts.reads,
                counts.writes,
                counts.syncs,
                counts.reads + counts.writes + counts.syncs
            ),
            format!(
                "Read {}  Written {}  Total transferred {}  ({}Mb/sec)",
                amount(read),
                amount(written),
                amount(read + written),
                rate(read + written)
            ),
            format!("{} Requests/sec executed", operations(counts.reads + counts.writes)),
        ],
        Generation::V1_0 => vec![
            "File operations:".to_string(),
            format!("    reads/s:                      {}", operations(counts.reads)),
            format!("    writes/s:                     {}", operations(counts.writes)),
            format!("    fsyncs/s:                     {}", operations(counts.syncs)),
            "Throughput:".to_string(),
            format!("    read, MiB/s:                  {}", rate(read)),
            format!("    written, MiB/s:               {}", rate(written)),
        ],
    }
}

/// Units per second, with two decimals.
fn rate(amount: u128, unit: u128, elapsed: Duration) -> String {
    let nanos = u128::from(elapsed.as_nanos().max(1));
    let hundredths = (amount * 100_000_000_000 + unit * nanos / 2) / (unit * nanos);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// Bytes as 0.4 shows them: `2Gb`, `1.5Mb`, `512b`.
fn amount(bytes: u128) -> String {
    let units = [(1 << 30, "Gb"), (1 << 20, "Mb"), (1 << 10, "Kb")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        None => format!("{bytes}b"),
        Some((unit, name)) => {
            let thousandths = bytes * 1_000 / unit;
            let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
            let text = text.trim_end_matches('0').trim_end_matches('.');
            format!("{text}{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_amounts_are_shown_as_the_program_does() {
        assert_eq!(rate(2 << 30, MIB, Duration::from_secs(26)), "78.77");
        assert_eq!(amount(2 << 30), "2Gb");
        assert_eq!(amount(3 << 19), "1.5Mb");
        assert_eq!(amount(12), "12b");
    }

    #[test]
    fn both_generations_say_what_was_done() {
        let parse = |text: &str| {
            let words = text.split(' ').map(str::to_string).collect::<Vec<_>>();
            Sysbench::parse(&words, None, guest::Profile::uml().habits.sysbench)
        };
        let old = "--test=fileio --file-test-mode=seqrd run";
        let options = parse(old).unwrap();
        let counts = Counts { reads: 64, writes: 0, syncs: 1 };
        let lines = lines(&options, &counts, Duration::from_secs(1));
        assert_eq!(lines[0], "Operations performed:  64 Read, 0 Write, 1 Other = 65 Total");
        assert_eq!(lines[1], "Read 1Mb  Written 0b  Total transferred 1Mb  (1.00Mb/sec)");
        assert_eq!(lines[2], "64.00 Requests/sec executed");
        let new = parse("fileio --file-test-mode=seqrd run").unwrap();
        let lines = super::lines(&new, &counts, Duration::from_secs(2));
        assert!(lines.iter().any(|line| line.ends_with("0.50")), "{lines:?}");
    }
}
