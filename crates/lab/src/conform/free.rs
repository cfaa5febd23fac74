//! A free run.
use super::history::History;
use super::setup::Setup;
use super::slots::Decision;
use base::Duration;

pub fn agreement(_h: &History, _s: &Setup, decisions: &[Decision], _p: Duration) -> Vec<bool> {
    vec![false; decisions.len()]
}
