//! The model files and tables that are part of the binary.

/// Name and text of every built-in model.
pub(crate) const MODELS: &[(&str, &str)] = &[
    ("hdd-7200-sata", include_str!("../../../models/hdd-7200-sata.toml")),
    ("null", include_str!("../../../models/null.toml")),
];

/// Name and text of every table that a built-in model names.
pub(crate) const TABLES: &[(&str, &str)] =
    &[("hdd-7200-zones.csv", include_str!("../../../models/hdd-7200-zones.csv"))];
