//! The model files and tables that are part of the binary.

/// Name and text of every built-in model.
pub(crate) const MODELS: &[(&str, &str)] = &[
    ("cheetah9lp", include_str!("../../../models/cheetah9lp.toml")),
    ("cloud-azure-p10", include_str!("../../../models/cloud-azure-p10.toml")),
    ("cloud-gp2", include_str!("../../../models/cloud-gp2.toml")),
    ("cloud-gp3", include_str!("../../../models/cloud-gp3.toml")),
    ("cloud-pd-ssd", include_str!("../../../models/cloud-pd-ssd.toml")),
    ("cloud-sliced", include_str!("../../../models/cloud-sliced.toml")),
    ("hdd-7200-sata", include_str!("../../../models/hdd-7200-sata.toml")),
    ("hdd-7200-sata-ageing", include_str!("../../../models/hdd-7200-sata-ageing.toml")),
    ("hdd-7200-sata-fifo", include_str!("../../../models/hdd-7200-sata-fifo.toml")),
    ("hdd-7200-sata-no-ncq", include_str!("../../../models/hdd-7200-sata-no-ncq.toml")),
    ("hdd-sas-2009", include_str!("../../../models/hdd-sas-2009.toml")),
    ("null", include_str!("../../../models/null.toml")),
    ("nvme-980pro", include_str!("../../../models/nvme-980pro.toml")),
    ("nvme-plp", include_str!("../../../models/nvme-plp.toml")),
    ("recorded-fast", include_str!("../../../models/recorded-fast.toml")),
    ("recorded-fast-qd1", include_str!("../../../models/recorded-fast-qd1.toml")),
    ("recorded-hdd", include_str!("../../../models/recorded-hdd.toml")),
    ("recorded-hdd-fifo", include_str!("../../../models/recorded-hdd-fifo.toml")),
    ("recorded-hdd-qd1", include_str!("../../../models/recorded-hdd-qd1.toml")),
    ("recorded-hddra", include_str!("../../../models/recorded-hddra.toml")),
    ("ssd-sata-m4", include_str!("../../../models/ssd-sata-m4.toml")),
    ("ssd-sata-px256m5s", include_str!("../../../models/ssd-sata-px256m5s.toml")),
    ("vm-disk", include_str!("../../../models/vm-disk.toml")),
    ("vm-disk-wt", include_str!("../../../models/vm-disk-wt.toml")),
    ("vm-ssd-m4", include_str!("../../../models/vm-ssd-m4.toml")),
    ("vm-ssd-m4-qd1", include_str!("../../../models/vm-ssd-m4-qd1.toml")),
];

/// Name and text of every table that a built-in model names.
pub(crate) const TABLES: &[(&str, &str)] = &[
    ("cheetah9lp-seek.csv", include_str!("../../../models/cheetah9lp-seek.csv")),
    ("cheetah9lp-slips.csv", include_str!("../../../models/cheetah9lp-slips.csv")),
    ("cheetah9lp-zones.csv", include_str!("../../../models/cheetah9lp-zones.csv")),
    ("hdd-10k-seek.csv", include_str!("../../../models/hdd-10k-seek.csv")),
    ("hdd-10k-zones.csv", include_str!("../../../models/hdd-10k-zones.csv")),
    ("hdd-7200-zones.csv", include_str!("../../../models/hdd-7200-zones.csv")),
];
