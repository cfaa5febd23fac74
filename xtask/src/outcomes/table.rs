//! The table: recorded and simulated figures side by side, and how far they are apart.

use lab::recordings::{Figure, Recording};
use lab::statistics::Regime;
use std::fmt::Write as _;

/// Seeds that differ by more than this make a figure chaotic: their standard deviation, against
/// their mean.
const CHAOS: f64 = 0.10;
/// So far off a figure counts as wrong.
const OFF: f64 = 0.15;

/// A recording and what came of it here.
pub struct Compared {
    name: String,
    rows: Vec<Row>,
}

/// A job: its copies together.
struct Row {
    name: String,
    figures: Vec<Pair>,
    /// Least and most calls of a copy, recorded and in the first run, where there are several.
    spread: Option<[(u64, u64); 2]>,
}

/// A figure, recorded and ours.
struct Pair {
    what: &'static str,
    recorded: f64,
    /// The mean over seeds.
    ours: f64,
    /// Half the distance between the least and the most over seeds, against their mean.
    spread: f64,
    regime: Regime,
}

/// The copies of a job together.
struct Group {
    rate: f64,
    latency: f64,
    sync: Option<f64>,
    least: u64,
    most: u64,
    copies: usize,
}

impl Compared {
    /// A recording beside runs with different seeds.
    pub fn new(recording: &Recording, runs: &[Vec<Figure>]) -> Compared {
        let mut names: Vec<&str> = Vec::new();
        for figure in &recording.figures {
            let name = job_of(&figure.name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let rows = names.iter().map(|name| Row::new(name, &recording.figures, runs)).collect();
        Compared { name: recording.name.clone(), rows }
    }
}

impl Compared {
    /// How many seeds say of every figure whether it is chaotic, if these do not.
    pub fn seeds_needed(&self) -> Option<usize> {
        let needed = |pair: &Pair| match pair.regime {
            Regime::TooFew(needed) => Some(needed),
            Regime::Calm | Regime::Chaotic => None,
        };
        self.rows.iter().flat_map(|row| &row.figures).filter_map(needed).max()
    }
}

/// The job of a copy: `rr` of `rr.3`.
fn job_of(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((job, number)) if number.parse::<u32>().is_ok() => job,
        _ => name,
    }
}

impl Group {
    fn of(name: &str, figures: &[Figure]) -> Option<Group> {
        let copies: Vec<&Figure> = figures.iter().filter(|it| job_of(&it.name) == name).collect();
        let count = copies.len() as f64;
        let syncs: Vec<f64> = copies.iter().filter_map(|it| it.sync).collect();
        Some(Group {
            rate: copies.iter().map(|it| it.rate).sum(),
            latency: copies.iter().map(|it| it.latency).sum::<f64>() / count,
            sync: (!syncs.is_empty()).then(|| syncs.iter().sum::<f64>() / syncs.len() as f64),
            least: copies.iter().map(|it| it.calls).min()?,
            most: copies.iter().map(|it| it.calls).max()?,
            copies: copies.len(),
        })
    }
}

impl Row {
    fn new(name: &str, recorded: &[Figure], runs: &[Vec<Figure>]) -> Row {
        let group = Group::of(name, recorded).expect("the recording has the job");
        let ours: Vec<Group> = runs.iter().filter_map(|run| Group::of(name, run)).collect();
        let mut figures = vec![
            Pair::new("1/s", group.rate, ours.iter().map(|it| it.rate)),
            Pair::new("mean ms", group.latency / 1e3, ours.iter().map(|it| it.latency / 1e3)),
        ];
        if name == "dd" {
            // Its rate is the inverse of its time.
            figures.remove(0);
        }
        if let Some(sync) = group.sync {
            let ours = ours.iter().filter_map(|it| it.sync).map(|it| it / 1e3);
            figures.push(Pair::new("fsync ms", sync / 1e3, ours));
        }
        let spread = ours.first().filter(|_| group.copies > 1 && name != "dd");
        let spread = spread.map(|ours| [(group.least, group.most), (ours.least, ours.most)]);
        Row { name: name.to_string(), figures, spread }
    }
}

impl Pair {
    fn new(what: &'static str, recorded: f64, ours: impl Iterator<Item = f64>) -> Pair {
        let ours: Vec<f64> = ours.collect();
        let mean = ours.iter().sum::<f64>() / ours.len() as f64;
        let least = ours.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ours.iter().copied().fold(0.0, f64::max);
        let (spread, regime) = ((most - least) / 2.0 / mean, Regime::of(&ours, CHAOS));
        Pair { what, recorded, ours: mean, spread, regime }
    }

    /// How far ours is off, against what was recorded; not a number where there is none.
    fn error(&self) -> f64 {
        (self.ours - self.recorded) / self.recorded
    }

    /// More than 15 % off, or there is nothing to compare.
    fn is_off(&self) -> bool {
        let error = self.error().abs();
        error.is_nan() || error > OFF
    }

    /// Whether it is chaotic, in words.
    fn chaos(&self) -> String {
        match self.regime {
            Regime::Calm => String::new(),
            Regime::Chaotic => " chaotic".to_string(),
            Regime::TooFew(needed) => {
                format!(" too few seeds to say whether chaotic; {needed} needed")
            }
        }
    }
}

/// The whole table, with what it comes to.
pub fn text(compared: &[Compared]) -> String {
    let mut out = String::new();
    let pairs: Vec<&Pair> =
        compared.iter().flat_map(|it| &it.rows).flat_map(|row| &row.figures).collect();
    summary(&mut out, compared.len(), &pairs);
    out += "\n| recording | job | figure | recorded | here | off | seeds ± | calls of a copy |\n";
    out += "|---|---|---|---|---|---|---|---|\n";
    for recording in compared {
        for row in &recording.rows {
            for (number, pair) in row.figures.iter().enumerate() {
                let spread = row.spread.filter(|_| number == 0).map(|[theirs, ours]| {
                    format!("{} to {}; {} to {}", theirs.0, theirs.1, ours.0, ours.1)
                });
                let chaos = pair.chaos();
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {:+.1} % | {:.1} %{chaos} | {} |",
                    recording.name,
                    row.name,
                    pair.what,
                    three(pair.recorded),
                    three(pair.ours),
                    pair.error() * 100.0,
                    pair.spread * 100.0,
                    spread.unwrap_or_default(),
                );
            }
        }
    }
    out
}

fn summary(out: &mut String, recordings: usize, pairs: &[&Pair]) {
    let mut errors: Vec<f64> = pairs.iter().map(|pair| pair.error().abs()).collect();
    errors.iter_mut().filter(|it| it.is_nan()).for_each(|it| *it = f64::INFINITY);
    errors.sort_by(f64::total_cmp);
    let median = errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN);
    let in_regime = |is: fn(Regime) -> bool| {
        let of: Vec<&&Pair> = pairs.iter().filter(|pair| is(pair.regime)).collect();
        (of.len(), of.iter().filter(|pair| pair.is_off()).count())
    };
    let (calm, worse) = in_regime(|it| it == Regime::Calm);
    let (unknown, unknown_worse) = in_regime(|it| matches!(it, Regime::TooFew(_)));
    let _ = writeln!(
        out,
        "{recordings} recordings, {} figures: median error {:.1} %; of the {calm} figures that are \
         not chaotic {worse} ({:.1} %) are more than 15 % off; of {unknown} more the seeds are too \
         few to say whether they are chaotic, and {unknown_worse} of them are.",
        pairs.len(),
        median * 100.0,
        worse as f64 * 100.0 / calm.max(1) as f64,
    );
}

/// Three digits.
fn three(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
