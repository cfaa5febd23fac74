//! The rows as tables of docs/experiments.md.

use super::{EXPERIMENT, FILES, Form, GROUP, JOB, Key};

/// The generated blocks of the document: what stands after `generated:`, and the block.
pub fn markdown() -> [(&'static str, String); 4] {
    [
        ("experiment keys", table(&EXPERIMENT)),
        ("job keys", table(&JOB)),
        ("group keys", table(&GROUP)),
        ("group files", files()),
    ]
}

fn files() -> String {
    let mut text = String::from("| file | such as | of | what it does |\n|---|---|---|---|\n");
    for file in &FILES {
        let of = if file.is_of_root { "the root" } else { "a group" };
        text.push_str(&format!(
            "| `{}` | `{}` | {of} | {} |\n",
            file.name, file.example, file.about
        ));
    }
    text
}

fn table<T>(keys: &[Key<T>]) -> String {
    let mut text = String::from(
        "| key | accepted | default | axis | option | in JSON | what it says |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for key in keys.iter().filter(|key| key.form != Form::Unwritten || !key.flags.is_empty()) {
        let name = match key.form {
            Form::Unwritten => "–".to_string(),
            _ => format!("`{}`", key.name),
        };
        let mut flags: Vec<String> =
            key.flags.iter().map(|it| format!("`--{}`", it.name)).collect();
        flags.dedup();
        let json = key.json_name().map_or(String::new(), |name| format!("`{name}`"));
        let axis = if key.is_axis { "yes" } else { "" };
        let accepted = key.accepted.replace('|', "\\|");
        let cells = [&name, &accepted, key.default, axis, &flags.join(", "), &json, key.about];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}
