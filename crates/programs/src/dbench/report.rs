//! What dbench says: a line each second, a table of operations, and the throughput.
//!
//! Rates are 10^6 bytes a second of all that reads and writes asked for, since the warm-up.

use super::options::Dbench;
use base::Duration;

/// The kinds of operation by the names that they have in the table, in its order.
pub(super) const KINDS: [&str; 17] = [
    "NTCreateX",
    "Close",
    "Rename",
    "Unlink",
    "Rmdir",
    "Deltree",
    "Mkdir",
    "Qpathinfo",
    "Qfileinfo",
    "Qfsinfo",
    "Sfileinfo",
    "Find",
    "WriteX",
    "ReadX",
    "LockX",
    "UnlockX",
    "Flush",
];

/// The operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub count: u64,
    pub time: Duration,
    pub longest: Duration,
}

impl Tally {
    /// One more that took so long.
    pub fn add(&mut self, took: Duration) {
        self.count += 1;
        self.time += took;
        self.longest = self.longest.max(took);
    }

    fn and(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            time: self.time + other.time,
            longest: self.longest.max(other.longest),
        }
    }
}

/// What all clients together have done at the end of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Second {
    /// Clients that have moved data.
    pub active: u64,
    /// How far clients have come in the load file, on average.
    pub lines: u64,
    /// Bytes a second.
    pub rate: u64,
    /// `warmup` or `execute`.
    pub phase: &'static str,
    /// Seconds since the beginning, or since the end of the warm-up.
    pub seconds: u64,
    /// The longest operation since the last line.
    pub longest: Duration,
}

impl Second {
    pub fn line(&self) -> String {
        let Second { active, lines, rate, phase, seconds, longest } = self;
        let rate = decimal(rate + 5_000, 1_000_000, 2);
        let longest = millis(*longest);
        format!(
            "{active:4}  {lines:8}  {rate:>7} MB/sec  {phase} {seconds:3} sec  latency {longest} ms"
        )
    }
}

/// The table of operations, of which there is a tally for each client.
pub(super) fn table(clients: &[[Tally; KINDS.len()]]) -> Vec<String> {
    let mut lines = vec![
        String::new(),
        " Operation      Count    AvgLat    MaxLat".to_string(),
        format!(" {}", "-".repeat(40)),
    ];
    for (at, name) in KINDS.iter().enumerate() {
        let all = clients.iter().fold(Tally::default(), |sum, client| sum.and(client[at]));
        if all.count > 0 {
            let (mean, longest) = (millis(all.time / all.count), millis(all.longest));
            lines.push(format!(" {name:<10}{:10} {mean:>9} {longest:>9}", all.count));
        }
    }
    lines.push(String::new());
    lines
}

/// The last line.
pub(super) fn throughput(options: &Dbench, rate: u64, longest: Duration) -> String {
    let open = if options.syncs_files { " (sync open)" } else { "" };
    let directories = if options.syncs_directories { " (sync dirs)" } else { "" };
    let (rate, clients) = (general(rate), options.clients);
    format!(
        "Throughput {rate} MB/sec{open}{directories}  {clients} clients  {clients} procs  \
         max_latency={} ms",
        millis(longest)
    )
}

/// How long whole passes over the load file took, which Debian's dbench does not say; nothing
/// where there was none.
pub(super) fn passes(took: &[Duration]) -> Option<String> {
    let (least, most) = (took.iter().min()?, took.iter().max()?);
    let mean = took.iter().copied().sum::<Duration>() / took.len() as u64;
    let [mean, least, most] = [mean, *least, *most].map(millis);
    Some(format!("Passes {}  mean={mean} ms  min={least} ms  max={most} ms", took.len()))
}

/// Milliseconds with three decimals.
fn millis(time: Duration) -> String {
    decimal(time.as_nanos() + 500, 1_000_000, 3)
}

/// A number in units of so much, cut off after some decimals.
fn decimal(amount: u64, unit: u64, decimals: u32) -> String {
    let rest = amount % unit / (unit / 10_u64.pow(decimals));
    format!("{}.{rest:0width$}", amount / unit, width = decimals as usize)
}

/// Bytes a second as 10^6 of them with six digits that count (`%g`).
fn general(rate: u64) -> String {
    let mut last = 1;
    while rate / last >= 1_000_000 {
        last *= 10;
    }
    let rounded = (rate + last / 2) / last * last;
    let text = decimal(rounded, 1_000_000, 6);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that Debian's dbench 4.00 has printed.
    #[test]
    fn lines_are_those_of_the_program() {
        let second = Second {
            active: 2,
            lines: 34421,
            rate: 258_070_000,
            phase: "execute",
            seconds: 1,
            longest: Duration::from_micros(50_331),
        };
        let seen = "   2     34421   258.07 MB/sec  execute   1 sec  latency 50.331 ms";
        assert_eq!(second.line(), seen);
        let mut client = [Tally::default(); KINDS.len()];
        client[0] = Tally {
            count: 35196,
            time: Duration::from_micros(50) * 35196,
            longest: Duration::from_micros(51_672),
        };
        let lines = table(&[client]);
        assert_eq!(lines[1], " Operation      Count    AvgLat    MaxLat");
        assert_eq!(lines[3], " NTCreateX      35196     0.050    51.672");
        assert_eq!(lines.len(), 5);
        let rates = [0, 230_423_000, 53_926_340, 12_000_000, 4_325_100, 1_234_567_890, 900];
        let seen = ["0", "230.423", "53.9263", "12", "4.3251", "1234.57", "0.0009"];
        assert_eq!(rates.map(general), seen);
    }

    #[test]
    fn passes_are_summed_up() {
        let took = [1, 2, 6].map(Duration::from_millis);
        let line = passes(&took).unwrap();
        assert_eq!(line, "Passes 3  mean=3.000 ms  min=1.000 ms  max=6.000 ms");
        assert_eq!(passes(&[]), None);
    }
}
