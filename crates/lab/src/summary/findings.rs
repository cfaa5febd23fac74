//! What differs between schedulers, in words: which is best, why, and what it costs the others.

use super::pairs::Paired;
use super::{JobColumn, Line, Summary};
use crate::figure::{Figure, Layer, Point, What};
use crate::matrix::Report;
use crate::metrics::disk;
use crate::plan::Row;
use crate::quantity::{Kind, human};
use crate::statistics::{Estimate, MOST_SEEDS, seeds_for_difference};

/// Two means nearer than this part of each other are called alike: two bins of a histogram, which
/// are 1/64 of their value wide.
pub(super) const ALIKE: f64 = 0.032;
/// Rows with such tails are told of so many.
const MOST_TAILS: usize = 2;
/// A p99.9 so many times the p99 is a tail that the p99 hides (assumed).
const LONG_TAIL: f64 = 10.0;
/// A disk held for less of the time is not worth a word (assumed).
const HELD_WORTH_A_WORD: f64 = 1.0;
/// Who waits for whom is told of so many.
const MOST_PAIRS: usize = 3;
/// Rows that are alike are named up to so many.
const MOST_ALIKE: usize = 5;

/// Names and values of axes.
type Circumstances = Vec<(String, String)>;

/// Puts what differs into words.
pub(super) struct Findings<'a> {
    pub(super) report: &'a Report,
    pub(super) summary: &'a Summary,
}

impl Findings<'_> {
    pub(super) fn all(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (point, lines) in self.points() {
            let at: Vec<String> =
                point.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let prefix = if at.is_empty() { String::new() } else { format!("{}: ", at.join(" ")) };
            let sentences = self.at_point(&lines);
            if !sentences.is_empty() {
                findings.push(format!("{prefix}{}", sentences.join(" ")));
            }
        }
        findings.extend(self.cut_off());
        findings.extend(self.apart());
        findings.extend(self.starved());
        findings.extend(self.tails());
        findings.extend(self.held());
        findings.extend(self.weights());
        findings.extend(self.without_effect());
        findings
    }

    /// The values of axes that are not for choice, each with the lines that compete there.
    fn points(&self) -> Vec<(Circumstances, Vec<&Line>)> {
        let mut points: Vec<(Circumstances, Vec<&Line>)> = Vec::new();
        for line in self.lines() {
            let point = self.circumstances(line);
            match points.iter_mut().find(|(it, _)| *it == point) {
                Some((_, lines)) => lines.push(line),
                None => points.push((point, vec![line])),
            }
        }
        points
    }

    /// Of each point at which one is best the operations of the best and of the worst, paired.
    pub(super) fn pairs(&self) -> Vec<Paired> {
        let Some(main) = &self.summary.main else { return Vec::new() };
        let of_point = |(_, lines): (Circumstances, Vec<&Line>)| {
            let ranked = ranked(main, &lines);
            let ((best, _), (worst, _)) = (ranked.first()?, ranked.last()?);
            let is_verdict = ranked[1..].iter().any(|(it, _)| !self.are_alike(main, best, it));
            is_verdict
                .then(|| Paired::of(main, self.judged()?, self.report, best.row, worst.row))?
        };
        self.points().into_iter().filter_map(of_point).collect()
    }

    /// Whether an axis is something to choose, as a tunable is, rather than what one has to live
    /// with, as a load is: rows with different values of it compete.
    fn is_choice(&self, axis: &str) -> bool {
        self.report.plan.rows.iter().any(|row| row.sets(axis))
    }

    /// The values of axes that are not for choice.
    fn circumstances(&self, line: &Line) -> Circumstances {
        line.axes.iter().filter(|(name, _)| !self.is_choice(name)).cloned().collect()
    }

    /// The lines of the first world: another one is there to judge it.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        let rows = &self.report.plan.rows;
        self.summary.lines.iter().filter(|line| rows[line.row].world == rows[0].world)
    }

    /// Which scheduler is best for the main figure, why, and what it costs the others.
    fn at_point(&self, lines: &[&Line]) -> Vec<String> {
        let Some(main) = &self.summary.main else { return Vec::new() };
        let ranked = ranked(main, lines);
        let [(best, value), rest @ ..] = ranked.as_slice() else { return Vec::new() };
        let [.., (worst, worst_value)] = rest else { return Vec::new() };
        let (name, kind) = (figure_name(main), main.what.kind());
        let alike = rest.iter().take_while(|(line, _)| self.are_alike(main, best, line)).count();
        let (unknown, same): (Vec<_>, Vec<_>) =
            rest[..alike].iter().partition(|(line, _)| self.is_open(main, best, line));
        let unknown = self.too_few_seeds(main, best, &unknown);
        if alike == rest.len() {
            let mut sentences = self.why_alike(&name, main, lines);
            sentences.extend(unknown);
            return sentences;
        }
        let mut sentences = vec![format!(
            "Best for {name}: {}{} ({}; {} {}).",
            self.name(best),
            self.and_alike(&same),
            value.human(kind),
            self.name(worst),
            worst_value.human(kind)
        )];
        if let Some((next, theirs)) = rest.get(alike).filter(|_| rest.len() > alike + 1) {
            let margin =
                margin(value.mean, theirs.mean).map_or(String::new(), |it| format!(", {it}"));
            let (next, theirs) = (self.name(next), theirs.human(kind));
            sentences.push(format!("The next is {next} with {theirs}{margin}."));
        }
        if self.report.plan.experiment.seeds.len() == 1 {
            sentences.push("One seed does not say what is chance.".to_string());
        }
        sentences.extend(unknown);
        sentences.extend(self.neighbours(main, best, lines));
        sentences.extend(self.contradictions(main, best, lines));
        sentences.extend(self.why(best, worst));
        sentences.extend(self.price(best, lines));
        sentences
    }

    /// Which others are as good as the best.
    fn and_alike(&self, alike: &[&(&Line, Estimate)]) -> String {
        match alike {
            [] => String::new(),
            alike => format!(", and alike {}", self.names(alike)),
        }
    }

    /// The names of rows, or of the first of many.
    fn names(&self, rows: &[&(&Line, Estimate)]) -> String {
        let names: Vec<String> =
            rows.iter().take(MOST_ALIKE).map(|(line, _)| self.name(line)).collect();
        match rows.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    /// Of which rows the seeds do not say whether they are worse than the best.
    fn too_few_seeds(
        &self,
        main: &Figure,
        best: &Line,
        rows: &[&(&Line, Estimate)],
    ) -> Option<String> {
        let needed = |line: &Line| Some(seeds_for_difference(&self.differences(main, best, line)?));
        let needed = rows.iter().filter_map(|(line, _)| needed(line)).max()?;
        let needed = match needed {
            MOST_SEEDS => format!("more than {MOST_SEEDS}"),
            few => format!("about {few}"),
        };
        let (names, are) = (self.names(rows), if rows.len() == 1 { "is" } else { "are" });
        Some(format!("Too few seeds to say whether {names} {are} worse; {needed} needed."))
    }

    /// What comes of the values next to those of the best, one axis at a time.
    fn neighbours(&self, main: &Figure, best: &Line, lines: &[&Line]) -> Option<String> {
        let mut found = Vec::new();
        let rows = &self.report.plan.rows;
        for (index, axis) in self.report.plan.experiment.axes.iter().enumerate() {
            let place = |line: &Line| axis.values.iter().position(|it| *it == line.axes[index].1);
            let others_agree = |line: &Line| {
                let pairs = line.axes.iter().zip(&best.axes).enumerate();
                pairs.into_iter().all(|(at, (one, other))| at == index || one == other)
            };
            let Some(here) = place(best).filter(|_| self.is_choice(&axis.name)) else { continue };
            for line in lines {
                let is_next = place(line).is_some_and(|it| it.abs_diff(here) == 1);
                let is_same = rows[line.row].spec.label() == rows[best.row].spec.label();
                if let Some(value) = line.get(main).filter(|_| is_next && is_same)
                    && others_agree(line)
                {
                    let value = value.human(main.what.kind());
                    found.push(format!("{}={} {value}", axis.name, line.axes[index].1));
                }
            }
        }
        // With one axis of few values the sentence before has said it all.
        (lines.len() > 3 && !found.is_empty()).then(|| format!("Beside it: {}.", found.join(", ")))
    }

    /// By what else of the same calls another scheduler is better than the best.
    fn contradictions(&self, main: &Figure, best: &Line, lines: &[&Line]) -> Vec<String> {
        let What::Call(kind, judged) = main.what else { return Vec::new() };
        let others = [Point::Mean, Point::Percentile(9990)].into_iter().filter(|it| *it != judged);
        let mut sentences = Vec::new();
        for point in others {
            let figure = Figure { what: What::Call(kind, point), ..main.clone() };
            let value = |line: &Line| line.get(&figure).copied();
            let Some(ours) = value(best) else { continue };
            let all = lines.iter().filter_map(|line| Some((*line, value(line)?)));
            let least = all.min_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
            let Some((other, theirs)) = least else { continue };
            if theirs.mean < ours.mean && !self.are_alike(&figure, best, other) {
                let of = Kind::Time;
                let (theirs, ours) = (theirs.human(of), ours.human(of));
                let name = self.name(other);
                sentences.push(format!("Its {point} is not the best: {ours}; {name} {theirs}."));
            }
        }
        sentences
    }

    /// Where a 99th percentile hides what the slowest calls wait.
    fn tails(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for job in &self.summary.jobs {
            let at = |line: &Line, point| {
                line.get(&job.figure(What::Call(job.main_call, point))).copied()
            };
            let tail = |line: &'_ Line| {
                let p99 = at(line, Point::Percentile(9900))?;
                let (rare, mean) = (at(line, Point::Percentile(9990))?, at(line, Point::Mean)?);
                let hides =
                    mean.mean > p99.mean * (1.0 + ALIKE) || rare.mean > LONG_TAIL * p99.mean;
                hides.then_some((p99, rare, mean, at(line, Point::Max)?))
            };
            let found = self.lines().filter_map(|line| Some((line, tail(line)?)));
            let mut found: Vec<_> = found.collect();
            found.sort_by(|a, b| b.1.3.mean.total_cmp(&a.1.3.mean));
            let each = found.iter().take(MOST_TAILS).map(|(line, (p99, rare, mean, max))| {
                let [p99, rare, mean, max] = [p99, rare, mean, max].map(|it| it.human(Kind::Time));
                let title = self.report.plan.row_title(line.row);
                format!("{title} p99 {p99}, p99.9 {rare}, mean {mean}, max {max}")
            });
            let each: Vec<String> = each.collect();
            if each.is_empty() {
                continue;
            }
            let more = found.len() - each.len();
            let more = if more > 0 { format!("; and {more} more rows") } else { String::new() };
            let call = job.main_call.name();
            sentences.push(format!(
                "A p99 hides the slowest {call}s of {}: {}{more}.",
                job.name,
                each.join("; ")
            ));
        }
        sentences
    }

    /// Why it makes no difference which scheduler is chosen.
    fn why_alike(&self, name: &str, main: &Figure, lines: &[&Line]) -> Vec<String> {
        let kind = main.what.kind();
        let range = |figure: &Figure| {
            let means = lines.iter().filter_map(|line| Some(line.get(figure)?.mean));
            let all: Vec<f64> = means.collect();
            let least = all.iter().copied().reduce(f64::min)?;
            Some((least, all.into_iter().reduce(f64::max)?))
        };
        let Some((least, most)) = range(main) else { return Vec::new() };
        let (least, most) = (human(least, kind), human(most, kind));
        let values = if least == most { least } else { format!("{least} to {most}") };
        let mut sentences =
            vec![format!("No scheduler is measurably better for {name} ({values}).")];
        let layer = |layer| {
            let job = self.judged()?;
            range(&job.figure(What::Layer(layer, Point::Mean)))
        };
        if let (Some((_, waited)), Some((served, _))) = (layer(Layer::Queue), layer(Layer::Device))
            && waited < served
        {
            sentences.push(format!(
                "Schedulers reorder what waits, and little waits here: on average a request is in \
                 the queue for {} at most, and in the device for {} or more.",
                human(waited, Kind::Time),
                human(served, Kind::Time)
            ));
        }
        sentences
    }

    /// Where the worst loses its time, by operations that both have.
    fn why(&self, best: &Line, worst: &Line) -> Vec<String> {
        let is_theirs = |it: &&Paired| it.best == best.row && it.worst == worst.row;
        let found = self.summary.pairs.iter().find(is_theirs);
        found.map_or(Vec::new(), |it| it.sentences(&self.name(best), &self.name(worst)))
    }

    /// The job by which schedulers are judged.
    fn judged(&self) -> Option<&JobColumn> {
        let mut jobs = self.summary.jobs.iter();
        match &self.summary.main.as_ref()?.job {
            Some(name) => jobs.find(|job| job.name == *name),
            // Of a single job everything is meant that is said of the whole.
            None => jobs.next().filter(|_| self.summary.jobs.len() == 1),
        }
    }

    /// What the best for the judged job does to the throughput of the others.
    fn price(&self, best: &Line, lines: &[&Line]) -> Vec<String> {
        let mut prices = Vec::new();
        let Some(judged) = self.judged() else { return prices };
        for job in self.summary.jobs.iter().filter(|it| *it != judged) {
            let figure = job.figure(What::Bandwidth(None));
            let Some(ours) = best.get(&figure) else { continue };
            let others = lines.iter().filter_map(|line| Some((*line, line.get(&figure)?)));
            let Some((most, theirs)) = others.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean)) else {
                continue;
            };
            if ours.mean < theirs.mean * (1.0 - ALIKE) && !self.are_alike(&figure, best, most) {
                let less = 100.0 * (1.0 - ours.mean / theirs.mean);
                prices.push(format!(
                    "It costs {} {less:.0} % of its throughput ({}; {} under {}).",
                    job.name,
                    human(ours.mean, Kind::Rate),
                    human(theirs.mean, Kind::Rate),
                    self.name(most)
                ));
            }
        }
        prices
    }

    fn held(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for line in self.lines() {
            let total: f64 = line.held_by_reason.iter().map(|(_, share)| share).sum();
            let Some((reason, _)) = line.held_by_reason.first() else { continue };
            // That processors take their time is no decision of anybody.
            let is_decision = *reason != disk::HOST;
            if is_decision && total >= HELD_WORTH_A_WORD {
                findings.push(format!(
                    "Under {} the disk stands idle with work queued {} of the time, mostly \
                     because of: {reason}{}.",
                    self.report.plan.row_title(line.row),
                    human(total, Kind::Percent),
                    who_waits(line)
                ));
            }
        }
        findings
    }

    /// Which schedulers take no notice of weights.
    fn weights(&self) -> Option<String> {
        let rows = &self.report.plan.rows;
        let weights: Vec<String> = rows
            .first()?
            .cgroups
            .iter()
            .filter_map(|it| it.weight)
            .map(|it| it.to_string())
            .collect();
        let ignores = |row: &&Row| !row.honours_weights();
        let mut names: Vec<&str> = Vec::new();
        for row in rows.iter().filter(ignores) {
            // There is a row of each at every point of the axes.
            if !names.contains(&row.spec.name) {
                names.push(row.spec.name);
            }
        }
        let names = names.join(", ");
        (!weights.is_empty() && !names.is_empty())
            .then(|| format!("Weights: {names} do not honour {}.", weights.join(":")))
    }

    /// Whether a figure is the same for two lines as far as the seeds tell.
    fn are_alike(&self, figure: &Figure, one: &Line, other: &Line) -> bool {
        let Some(differences) = self.differences(figure, one, other) else { return true };
        let Some(difference) = Estimate::of(&differences) else { return true };
        self.is_small(figure, one, &difference) || !difference.differs_from_zero()
    }

    /// Whether two lines count as alike only because the seeds do not tell them from each other.
    fn is_open(&self, figure: &Figure, one: &Line, other: &Line) -> bool {
        let differences = self.differences(figure, one, other);
        let difference = differences.and_then(|it| Estimate::of(&it));
        difference.is_some_and(|it| !self.is_small(figure, one, &it) && !it.differs_from_zero())
    }

    /// Whether a difference is nothing beside what it is one of.
    fn is_small(&self, figure: &Figure, of: &Line, difference: &Estimate) -> bool {
        let scale = of.get(figure).map_or(0.0, |it| it.mean.abs());
        // Nothing beside nothing, too.
        difference.mean.abs() <= ALIKE * scale
    }

    /// By how much a figure differs between two lines, seed by seed.
    fn differences(&self, figure: &Figure, one: &Line, other: &Line) -> Option<Vec<f64>> {
        let values = |line: &Line| -> Option<Vec<f64>> {
            self.report.results_of(line.row).iter().map(|result| figure.value(result)).collect()
        };
        Some(values(one)?.into_iter().zip(values(other)?).map(|(a, b)| a - b).collect())
    }

    /// What was chosen: tunables and the scheduler.
    fn name(&self, line: &Line) -> String {
        let chosen = line.axes.iter().filter(|(name, _)| self.is_choice(name));
        let words = chosen.map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = words.chain([self.report.plan.row_name(line.row)]).collect();
        words.join(" ")
    }
}

/// The lines that have a figure, the best first.
fn ranked<'l>(main: &Figure, lines: &[&'l Line]) -> Vec<(&'l Line, Estimate)> {
    let sign = if main.what.less_is_better() { 1.0 } else { -1.0 };
    let all = lines.iter().filter_map(|line| Some((*line, *line.get(main)?)));
    let mut ranked: Vec<(&Line, Estimate)> = all.collect();
    ranked.sort_by(|a, b| (sign * a.1.mean).total_cmp(&(sign * b.1.mean)));
    ranked
}

/// By how much the next is more or less than the best; none where the best is zero.
fn margin(best: f64, next: f64) -> Option<String> {
    let percent = 100.0 * (next - best) / best;
    (best != 0.0).then(|| match next > best {
        true if percent >= 200.0 => format!("{:.1} times as much", next / best),
        true => format!("{percent:.0} % more"),
        false => format!("{:.0} % less", -percent),
    })
}

/// Who waits for whom, the most important ones.
fn who_waits(line: &Line) -> String {
    let pairs = line.held_for.iter().filter(|(_, share)| *share >= HELD_WORTH_A_WORD);
    let pairs: Vec<String> = pairs
        .take(MOST_PAIRS)
        .map(|(pair, share)| format!("{pair}: {}", human(*share, Kind::Percent)))
        .collect();
    if pairs.is_empty() { String::new() } else { format!(" ({})", pairs.join(", ")) }
}

/// `db read p99`.
fn figure_name(figure: &Figure) -> String {
    let what = figure.what.to_string().replace('_', " ");
    let what = if what == "bw" { "throughput".to_string() } else { what };
    figure.job.as_ref().map_or(what.clone(), |job| format!("{job} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_a_percentage_or_a_multiple() {
        assert_eq!(margin(10.0, 11.0).unwrap(), "10 % more");
        assert_eq!(margin(10.0, 100.0).unwrap(), "10.0 times as much");
        assert_eq!(margin(10.0, 5.0).unwrap(), "50 % less");
        assert_eq!(margin(0.0, 5.0), None);
    }
}
