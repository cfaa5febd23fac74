//! Model files: what is built in, how one is loaded, and the device that is built from it.
//!
//! A model is a TOML file (see [`params`] for its form) and the tables it names. The
//! ones that come with the project are part of the binary, so it works from anywhere.

use std::path::Path;
use std::sync::Arc;

use base::{Bytes, Sector, Sectors};
use block::command::{Facts, Transport};

use crate::table::{FindTable, TableText};
use crate::{Device, builtin, flash, null, rotational, single_server};
use crate::{token_bucket, virtual_disk};
use base::nearest;
use params::Accept::{Choice, Flag, Size, Whole};
use params::Error;
use params::{Document, Format, Parameter, Section, Table, read, spec};

/// A device model: what a model file says, checked and turned into tables.
#[derive(Clone, Debug)]
pub struct Model {
    name: String,
    title: String,
    kind: &'static str,
    facts: Facts,
    parameters: Vec<Parameter>,
    kind_parameters: Kind,
}

/// What the kinds of model keep.
#[derive(Clone, Debug)]
enum Kind {
    Flash(Arc<flash::Parameters>),
    Null(null::Parameters),
    Rotational(Arc<rotational::Parameters>),
    SingleServer(Arc<single_server::Parameters>),
    TokenBucket(token_bucket::Parameters),
    VirtualDisk(virtual_disk::Parameters, Box<Model>),
}

/// Model files.
const FORMAT: Format = Format {
    what: "model",
    heads: &[("kind", true), ("title", true), ("like", false)],
    is_dated: false,
};

const KINDS: [&str; 6] =
    ["flash", "null", "rotational", "single-server", "token-bucket", "virtual-disk"];

const DISK: Section = Section {
    name: "disk",
    required: true,
    specs: &[
        spec("transport", Choice(&["sata", "scsi", "nvme", "virtio", "loop"])),
        spec("capacity", Size(65_536.0, 1e14)),
        spec("rotational", Flag),
        spec("volatile_cache", Flag),
        spec("fua", Flag),
        spec("queue_depth", Whole(1, 65_536, "")),
        spec("hardware_queues", Whole(1, 1024, "")),
        spec("logical_block", Size(512.0, 4096.0)),
        spec("max_transfer", Size(4096.0, 1e9)),
        spec("max_segments", Whole(1, 65_535, "")),
        spec("discard", Flag),
        spec("chunk", Size(0.0, 1e9)),
    ],
};

impl Model {
    /// The names of the built-in models.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        builtin::MODELS.iter().map(|(name, _)| *name)
    }

    /// The built-in model of this name.
    pub fn builtin(name: &str) -> Result<Model, Error> {
        Model::builtin_as(name, Role::Disk)
    }

    /// The model in a file; tables it names lie beside it or are built in.
    pub fn load(path: &Path) -> Result<Model, Error> {
        Model::load_as(path, Role::Disk)
    }

    /// The model in `text`, called `name` in messages; what it names is built in.
    pub fn from_text(name: &str, text: &str) -> Result<Model, Error> {
        let model = |name: &str| Model::builtin_as(name, Role::Backing);
        let beside =
            Beside { role: Role::Disk, text: &builtin_text, table: &builtin_table, model: &model };
        Model::parse(name, name, text, &beside)
    }

    fn builtin_as(name: &str, role: Role) -> Result<Model, Error> {
        let TableText { file, text } = builtin_text(name)?;
        let model = |name: &str| Model::builtin_as(name, Role::Backing);
        let beside = Beside { role, text: &builtin_text, table: &builtin_table, model: &model };
        Model::parse(name, &file, &text, &beside)
    }

    fn load_as(path: &Path, role: Role) -> Result<Model, Error> {
        let text = read(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let directory = path.parent().unwrap_or(Path::new(""));
        let found = |name: &str, builtin: &FindTable<'_>| {
            let beside = directory.join(name);
            match beside.exists() {
                true => Ok(TableText { file: beside.display().to_string(), text: read(&beside)? }),
                false => builtin(name.trim_end_matches(".toml")),
            }
        };
        let table = |name: &str| found(name, &builtin_table);
        let other = |name: &str| found(&format!("{name}.toml"), &builtin_text);
        let model = |name: &str| {
            let beside = directory.join(format!("{name}.toml"));
            match beside.exists() {
                true => Model::load_as(&beside, Role::Backing),
                false => Model::builtin_as(name, Role::Backing),
            }
        };
        let beside = Beside { role, text: &other, table: &table, model: &model };
        Model::parse(&name, &path.display().to_string(), &text, &beside)
    }

    /// A built-in model by its name, or the model in the file if it looks like a path.
    pub fn find(name_or_path: &str) -> Result<Model, Error> {
        match name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            true => Model::load(Path::new(name_or_path)),
            false => Model::builtin(name_or_path),
        }
    }

    /// The name: that of the file without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is modelled, in a line.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The kind of model, such as `rotational`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// What the device will tell the kernel about itself.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// All parameters in the order of the file.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// A device in its first moment; `seed` decides whatever it leaves to chance.
    pub fn build(&self, seed: u64) -> Box<dyn Device> {
        let facts = self.facts.clone();
        match &self.kind_parameters {
            Kind::Flash(parameters) => Box::new(flash::Drive::new(facts, parameters.clone(), seed)),
            Kind::Null(parameters) => Box::new(null::Null::new(facts, parameters)),
            Kind::Rotational(parameters) => {
                Box::new(rotational::Drive::new(facts, parameters.clone(), seed))
            }
            Kind::SingleServer(parameters) => {
                Box::new(single_server::Server::new(facts, parameters.clone(), seed))
            }
            Kind::TokenBucket(parameters) => {
                Box::new(token_bucket::Volume::new(facts, parameters.clone(), seed))
            }
            Kind::VirtualDisk(parameters, backing) => {
                let (parameters, backing) = (parameters.clone(), backing.build(seed));
                Box::new(virtual_disk::VirtualDisk::new(facts, parameters, backing, seed))
            }
        }
    }

    /// A rotational drive as its own type, for tests that look inside.
    #[cfg(test)]
    pub(crate) fn build_rotational(&self, seed: u64) -> rotational::Drive {
        match &self.kind_parameters {
            Kind::Rotational(parameters) => {
                rotational::Drive::new(self.facts.clone(), parameters.clone(), seed)
            }
            _ => panic!("{} does not turn", self.name),
        }
    }

    /// A flash drive as its own type, for tests that look inside.
    #[cfg(test)]
    pub(crate) fn build_flash(&self) -> flash::Drive {
        match &self.kind_parameters {
            Kind::Flash(parameters) => flash::Drive::new(self.facts.clone(), parameters.clone(), 1),
            _ => panic!("{} is not flash", self.name),
        }
    }

    /// A disk that does one thing at a time as its own type, for tests that look inside.
    #[cfg(test)]
    pub(crate) fn build_single_server(&self) -> single_server::Server {
        match &self.kind_parameters {
            Kind::SingleServer(parameters) => {
                single_server::Server::new(self.facts.clone(), parameters.clone(), 0)
            }
            _ => panic!("{} does several things at once", self.name),
        }
    }

    fn parse(name: &str, file: &str, text: &str, beside: &Beside<'_>) -> Result<Model, Error> {
        let document = Document::parse(&FORMAT, file, text)?;
        let stated = document.head("kind");
        let Some(kind) = KINDS.into_iter().find(|kind| *kind == stated) else {
            let problem = format!("unknown kind \"{stated}\"{}", nearest(stated, KINDS));
            let accepted = format!("kinds: {}", KINDS.join(", "));
            return Err(document.refuse_head("kind", problem, accepted));
        };
        if beside.role == Role::Backing && kind == "virtual-disk" {
            let accepted = "a model behind a virtual disk is none itself".to_string();
            return Err(document.refuse_head("kind", format!("kind \"{kind}\""), accepted));
        }
        let mut schema = vec![&DISK];
        match kind {
            "flash" => schema.extend(flash::SCHEMA),
            "null" => schema.push(&null::SCHEMA),
            "single-server" => schema.extend(single_server::SCHEMA),
            "token-bucket" => schema.extend(token_bucket::SCHEMA),
            "virtual-disk" => schema.extend(virtual_disk::SCHEMA),
            _ => schema.extend(rotational::SCHEMA),
        }
        let (table, parameters) = checked(&document, kind, &schema, beside)?;
        let facts = facts(&table)?;
        let kind_parameters = match kind {
            "flash" => Kind::Flash(Arc::new(flash::Parameters::load(&table)?)),
            "null" => Kind::Null(null::Parameters::load(&table)),
            "single-server" => {
                Kind::SingleServer(Arc::new(single_server::Parameters::load(&table, &facts)?))
            }
            "token-bucket" => Kind::TokenBucket(token_bucket::Parameters::load(&table)?),
            "virtual-disk" => {
                let backing = load_backing(&table, &facts, beside)?;
                Kind::VirtualDisk(virtual_disk::Parameters::load(&table)?, Box::new(backing))
            }
            _ => {
                let loaded = rotational::Parameters::load(&table, &facts, beside.table)?;
                Kind::Rotational(Arc::new(loaded))
            }
        };
        let (name, title) = (name.to_string(), document.head("title").to_string());
        Ok(Model { name, title, kind, facts, parameters, kind_parameters })
    }
}

/// What a model file states, and what the model states that it is like.
fn checked(
    document: &Document<'_>,
    kind: &str,
    schema: &[&Section],
    beside: &Beside<'_>,
) -> Result<(Table, Vec<Parameter>), Error> {
    let whose = format!("a model of kind \"{kind}\"");
    let like = document.head("like");
    if like.is_empty() {
        return document.check(schema, &whose);
    }
    let refuse = |problem| {
        let accepted = format!("a model of kind \"{kind}\" that states all itself");
        document.refuse_head("like", problem, accepted)
    };
    let TableText { file, text } =
        (beside.text)(like).map_err(|error| refuse(error.to_string()))?;
    let other = Document::parse(&FORMAT, &file, &text)?;
    if other.head("kind") != kind || !other.head("like").is_empty() {
        return Err(refuse(format!("like \"{like}\"")));
    }
    document.check_over(other.check(schema, &whose)?, schema, &whose)
}

/// Loads the model behind a virtual disk, which must be at least as large.
fn load_backing(table: &Table, facts: &Facts, beside: &Beside<'_>) -> Result<Model, Error> {
    let parameter = "backing.model";
    let name = table.text(parameter);
    let backing = table.named(parameter, (beside.model)(name))?;
    if backing.facts.capacity < facts.capacity {
        let problem = format!("{name} holds {} bytes", backing.facts.capacity.0);
        let accepted = format!("a model of at least {} bytes", facts.capacity.0);
        return Err(table.refuse(parameter, problem, &accepted));
    }
    if table.has("write_back") && backing.facts.queue_depth < 2 {
        let problem = format!("{name} takes one command at a time");
        let accepted = "a model that takes two: one may be what the host writes back";
        return Err(table.refuse(parameter, problem, accepted));
    }
    Ok(backing)
}

/// What a model is loaded for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Disk,
    /// To stand behind a virtual disk.
    Backing,
}

/// Where the tables and models that a model file names are found.
struct Beside<'a> {
    role: Role,
    /// The text of a model.
    text: &'a FindTable<'a>,
    table: &'a FindTable<'a>,
    model: &'a dyn Fn(&str) -> Result<Model, Error>,
}

fn facts(table: &Table) -> Result<Facts, Error> {
    let logical_block = table.size("disk.logical_block");
    if !matches!(logical_block, 512 | 4096) {
        let problem = format!("{logical_block} bytes");
        return Err(table.refuse("disk.logical_block", problem, "512 or 4096 bytes"));
    }
    let capacity = table.size("disk.capacity");
    Ok(Facts {
        transport: match table.text("disk.transport") {
            "sata" => Transport::Sata,
            "scsi" => Transport::Scsi,
            "nvme" => Transport::Nvme,
            "virtio" => Transport::Virtio,
            _ => Transport::Loop,
        },
        capacity: Bytes(capacity - capacity % logical_block),
        rotational: table.flag("disk.rotational"),
        volatile_cache: table.flag("disk.volatile_cache"),
        fua: table.flag("disk.fua"),
        queue_depth: table.whole("disk.queue_depth") as u32,
        hardware_queues: table.whole("disk.hardware_queues") as u32,
        logical_block: logical_block as u32,
        max_hw_sectors: table.sectors("disk.max_transfer"),
        max_segments: table.whole("disk.max_segments") as u16,
        discard: table.flag("disk.discard"),
        chunk_sectors: Sectors((table.size("disk.chunk") / Sector::SIZE) as u32),
        segment: Facts::PAGE,
    })
}

fn builtin_text(name: &str) -> Result<TableText, Error> {
    match builtin::MODELS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => {
            let file = format!("models/{name}.toml");
            Ok(TableText { file, text: text.to_string() })
        }
        None => Err(Error::unknown("model", name, Model::names())),
    }
}

fn builtin_table(name: &str) -> Result<TableText, Error> {
    match builtin::TABLES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(TableText { file: format!("models/{name}"), text: text.to_string() }),
        None => {
            let all: Vec<&str> = builtin::TABLES.iter().map(|(name, _)| *name).collect();
            let hint = nearest(name, all.iter().copied());
            let all = format!("a table beside the model file, or one of {}", all.join(", "));
            Err(Error::Unknown { what: "table", name: name.to_string(), hint, all })
        }
    }
}
