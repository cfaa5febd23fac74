//! What can be said of a job and of a control group.

use super::of_file::FILE;
use super::{Flag, Form, Key};
use crate::error::Error;
use crate::experiment::cgroup::CgroupSpec;
use crate::experiment::job::{JobSpec, parse_clones, parse_ioprio, parse_weight};
use crate::experiment::setting;
use crate::quantity::{self, ACCEPTED_DURATION, ACCEPTED_SPAN};
use base::Duration;
use block::IoprioClass;
use serde_json::json;

/// The keys of a job; those with an option may stand after its name in `--job`.
pub static JOB: [Key<JobSpec>; 11] = [
    Key::<JobSpec>::new("name", Form::Text, "a text", "")
        .about("What it is called in results; required.")
        .json("name", |it| json!(it.name)),
    Key::<JobSpec>::new("run", Form::Text, "a command", "")
        .about(
            "What is typed (`paternoster list programs`), with `{axis}` for values of axes; \
                required.",
        )
        .json("run", |it| json!(it.work.to_string())),
    Key::<JobSpec>::new("clones", Form::Word, "a number or `{axis}`", "1")
        .about("So many at once; `{clone}` in run and cgroup is the number, from 1 on.")
        .set(|it, text, place| {
            if !text.contains('{') {
                parse_clones(text, place)?;
            }
            it.clones = Some(text.to_string());
            Ok(())
        })
        .json("clones", |it| json!(it.clones)),
    Key::<JobSpec>::new("cgroup", Form::Text, "a path", "the root")
        .about("Its control group.")
        .set(|it, text, _| {
            it.cgroup = Some(text.to_string());
            Ok(())
        })
        .flags(&[Flag { name: "job", value: "JOB", help: "cgroup=PATH" }])
        .json("cgroup", |it| json!(it.cgroup)),
    Key::<JobSpec>::new("weight", Form::Whole, "1 to 10000", "")
        .about("The weight of that group.")
        .set(|it, text, place| {
            it.weight = Some(parse_weight(text, place)?);
            Ok(())
        })
        .flags(&[Flag { name: "job", value: "JOB", help: "weight=1 to 10000" }])
        .json("weight", |it| json!(it.weight)),
    Key::<JobSpec>::new("move", Form::List, "a list of `{ at = \"5s\", to = \"GROUP\" }`", "")
        .about("Its tasks go to another group, once or several times.")
        .json("move", |it| {
            it.moves.iter().map(|it| json!({ "at_ns": it.at.as_nanos(), "to": it.to })).collect()
        }),
    Key::<JobSpec>::new(
        "ioprio",
        Form::Text,
        "`rt/0` to `rt/7`, `be/0` to `be/7`, `idle`, `none`",
        "none",
    )
    .about("Its I/O priority.")
    .set(|it, text, place| {
        it.ioprio = Some(parse_ioprio(text, place)?);
        Ok(())
    })
    .flags(&[Flag { name: "job", value: "JOB", help: "ioprio=CLASS/LEVEL" }])
    .json("ioprio", |it| json!(it.ioprio.map(ioprio_text))),
    Key::<JobSpec>::new("start", Form::Text, "a time", "at once")
        .about("When it starts.")
        .set(|it, text, place| {
            let refuse = || Error::bad(place, format!("start \"{text}\""), ACCEPTED_DURATION);
            it.start = quantity::duration(text).ok_or_else(refuse)?;
            Ok(())
        })
        .json("start_ns", |it| json!(it.start.as_nanos())),
    Key::<JobSpec>::new("duration", Form::Text, "a time", "until it ends")
        .about("When it is stopped, counted from its start (`--duration`).")
        .set(|it, text, place| {
            let refuse = || Error::bad(place, format!("duration \"{text}\""), ACCEPTED_SPAN);
            it.duration = Some(quantity::span(text).ok_or_else(refuse)?);
            Ok(())
        })
        .json("duration_ns", |it| json!(it.duration.map(Duration::as_nanos))),
    Key::<JobSpec>::new("background", Form::Flag, "`true`, `false`", "false")
        .about("Whether it is stopped when the others have ended.")
        .set(|it, text, _| {
            it.background = text == "true";
            Ok(())
        })
        .json("background", |it| json!(it.background)),
    Key::<JobSpec>::new(
        FILE,
        Form::Files,
        "a text or a number, as the kernel takes it",
        "the kernel's",
    )
    .about("A file of that group, in the world linux (see *Files of control groups*).")
    .flags(&[Flag { name: "job", value: "JOB", help: "io.max=…" }])
    .json("files", |it| setting::to_json(&it.files)),
];

/// The keys of a control group.
pub static GROUP: [Key<CgroupSpec>; 6] = [
    Key::<CgroupSpec>::new("path", Form::Text, "a path", "")
        .about("Which group; required.")
        .json("path", |it| json!(it.path)),
    Key::<CgroupSpec>::new("weight", Form::Whole, "1 to 10000", "the kernel's")
        .about("Its weight against its siblings (see *Control groups*).")
        .set(|it, text, place| {
            it.weight = Some(parse_weight(text, place)?);
            Ok(())
        })
        .json("weight", |it| json!(it.weight)),
    Key::<CgroupSpec>::new("leaf_weight", Form::Whole, "1 to 10000", "the kernel's")
        .about("The weight of its own tasks against its children.")
        .set(|it, text, place| {
            it.leaf_weight = Some(parse_weight(text, place)?);
            Ok(())
        })
        .json("leaf_weight", |it| json!(it.leaf_weight)),
    Key::<CgroupSpec>::new("weight_device", Form::Table, "`{ sda = WEIGHT }`", "")
        .about("`weight` for one disk; goes before the one for all.")
        .json("weight_device", |it| json!(it.weight_device)),
    Key::<CgroupSpec>::new("leaf_weight_device", Form::Table, "`{ sda = WEIGHT }`", "")
        .about("`leaf_weight` for one disk.")
        .json("leaf_weight_device", |it| json!(it.leaf_weight_device)),
    Key::<CgroupSpec>::new(
        FILE,
        Form::Files,
        "a text or a number, as the kernel takes it",
        "the kernel's",
    )
    .about("A file of the group, in the world linux (see *Files of control groups*).")
    .json("files", |it| setting::to_json(&it.files)),
];

fn ioprio_text(it: block::Ioprio) -> String {
    match it.class {
        IoprioClass::RealTime => format!("rt/{}", it.level),
        IoprioClass::BestEffort => format!("be/{}", it.level),
        IoprioClass::Idle => "idle".to_string(),
        IoprioClass::None => "none".to_string(),
    }
}
