//! `sleep NUMBER[s|m]`: does nothing for a time.

use crate::Program;
use base::Duration;
use machine::program::Running;
use machine::task::Task;

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep(pub Duration);

impl Sleep {
    /// What the words behind `sleep` mean: a number, with a fraction perhaps, and a unit.
    pub fn parse(words: &[String]) -> Result<Sleep, String> {
        let refuse = || {
            let given = words.join(" ");
            format!("sleep: '{given}' is no time; accepted: sleep 1.5, sleep 2s, sleep 1m")
        };
        let [word] = words else { return Err(refuse()) };
        let (number, unit) = match word.strip_suffix('m') {
            Some(number) => (number, 60_000),
            None => (word.strip_suffix('s').unwrap_or(word), 1000),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| text.parse::<u32>().map(u64::from).map_err(|_| refuse());
        let thousandths = digits(&format!("{part:0<3}").chars().take(3).collect::<String>())?;
        let millis = digits(whole)? * unit + thousandths * unit / 1000;
        Ok(Sleep(Duration::from_millis(millis)))
    }
}

impl machine::Program for Sleep {
    fn name(&self) -> &str {
        "sleep"
    }

    fn run(&self, task: Task) -> Running {
        let time = self.0;
        Box::pin(async move {
            task.sleep_with_slack(time).await;
            0
        })
    }
}

impl Program for Sleep {}
