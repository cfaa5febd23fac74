//! Whatever a file or an option says, it is understood or refused, and never ends in a panic.

use base::Rng;
use lab::fidelity::random::whole;
use lab::plan::Plan;
use lab::{Axis, Experiment, JobSpec, SchedulerSpec};

const WHOLE: &str = include_str!("../../../experiments/first-light.toml");
const MORE: &str = "title = \"t\"\nmemory = \"1 GiB\"\nkernel = \"4.19\"\nseeds = [3, 9]\n\
    schedulers = [\"noop@4.19\", \"deadline:fifo_batch=1,nr_requests=64\", \"all\"]\n\
    setup = [\"drop_caches\"]\n[settings]\nnr_requests = 16\n[[cgroup]]\npath = \"db\"\n\
    weight = 800\n[[job]]\nname = \"pg\"\nrun = \"dd if=/dev/zero of=/dev/sda count={n}\"\n\
    cgroup = \"db\"\nioprio = \"be/2\"\nstart = \"2s\"\nduration = \"30 s\"\n[axes]\nn = [1, 5]\n\
    model = [\"null\", \"hdd-7200-sata\"]\n[expect]\n\
    \"noop@4.19 n=5\" = { \"pg.write_bw\" = \"60 kB/s ± 10 %\", elapsed = \"< 3 s\" }\n";

/// More rounds can be asked for.
fn rounds() -> u64 {
    let asked = std::env::var("PATERNOSTER_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(2000)
}

/// A text with a few letters changed, removed, doubled or taken from elsewhere in it.
fn mutated(text: &str, rng: &mut Rng) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..rng.between(1, 4) {
        let length = letters.len() as u64;
        if length < 2 {
            break;
        }
        let (at, from) = (rng.below(length) as usize, rng.below(length) as usize);
        match rng.below(5) {
            0 => letters[at] = letters[from],
            1 => letters[at] = char::from(rng.between(32, 126) as u8),
            2 => drop(letters.remove(at)),
            3 => letters.insert(at, ['{', '}', '"', '=', '\n', '9', '±', ':'][from % 8]),
            _ => {
                let end = (from + rng.below(20) as usize).min(letters.len());
                let piece: Vec<char> = letters[from..end].to_vec();
                letters.splice(at..at, piece);
            }
        }
    }
    letters.into_iter().collect()
}

#[test]
fn no_experiment_ends_in_a_panic() {
    let mut rng = Rng::stream(1, "test/experiments");
    let mut understood = 0;
    for round in 0..rounds() {
        let text = mutated(if round % 2 == 0 { WHOLE } else { MORE }, &mut rng);
        let Ok(mut experiment) = Experiment::parse("x.toml", &text) else { continue };
        experiment.axes.truncate(2);
        match Plan::new(experiment) {
            Ok(_) => understood += 1,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert!(understood > 0, "some changes do no harm");
}

#[test]
fn no_option_ends_in_a_panic() {
    let mut rng = Rng::stream(2, "test/options");
    for _ in 0..rounds() {
        let spec = mutated("mq-deadline@6.18:fifo_batch=1,front_merges=0", &mut rng);
        let _ = SchedulerSpec::parse(&spec, "-s", None).map(|spec| spec.label());
        let _ = Axis::parse(&mutated("nr_requests=32,64", &mut rng));
        let head = mutated("pg:cgroup=db,weight=800,ioprio=be/4", &mut rng);
        let _ = JobSpec::parse(&head, "dd if=/dev/zero of=/dev/sda");
    }
}

#[test]
fn whole_runs_of_any_kind_end_without_a_panic() {
    for number in 0..rounds() / 100 {
        whole::run(3, number).unwrap_or_else(|refused| panic!("{number}: {refused}"));
    }
}
