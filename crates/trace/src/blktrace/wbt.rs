//! What writeback throttling tells of itself, as messages.
//!
//! The kernel has events for it, which are not of blktrace. Recordings of the linux world have them
//! as messages, and recordings of the simulator have the same.

/// The events of tracefs with the message of each. Where their fields lie was observed on 6.1.192,
/// 6.12.117 and 7.3.4, in the file `format` of each, which agree.
///
/// Each is said as the event is printed, behind its name, but for the message of wbt_step and the
/// means and maxima of wbt_stat.
pub const EVENTS: [(&str, &str); 4] = [
    ("wbt/wbt_timer", "wbt_timer: {s8}: status={w40}, step={i44}, inflight={w48}"),
    ("wbt/wbt_lat", "wbt_lat: {s8}: latency {q40}us"),
    ("wbt/wbt_stat", "wbt_stat: {s8}: rmin={q48}, rsamples={q64}, wsamples={q104}"),
    ("wbt/wbt_step", WBT_STEP),
];
const WBT_STEP: &str =
    "wbt_step: {s8}: step={i48}, window={q56}us, background={w64}, normal={w68}, max={w72}";
