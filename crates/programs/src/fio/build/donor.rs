//! The donor of ioengine `e4defrag`: its name, and when it gets its blocks.
//!
//! What fio 3.33 does with the options was seen with strace.

use base::Bytes;

use super::super::engine::Engine;
use super::super::error::ParseError;
use super::super::job::{Donor, DonorRoom, FileKind};
use super::Builder;
use machine::Format;

impl Builder<'_, '_> {
    /// The donor, if the engine has one.
    pub(super) fn donor(&self, engine: Engine) -> Result<Option<Donor>, ParseError> {
        if engine != Engine::Exchange {
            return Ok(None);
        }
        if self.context.mount.is_some_and(|it| it.format == Format::Xfs) {
            let message = "ioengine e4defrag asks for what only ext4 does, and the job would fail";
            return Err(self.error("ioengine", message).accepts("fs = \"ext4\""));
        }
        let Some(name) = self.text("donorname").filter(|it| !it.is_empty()) else {
            let message = "ioengine e4defrag needs a donorname";
            return Err(self.error("donorname", message).accepts("the name of another file"));
        };
        // Observed: the directory is what `directory` says, to the letter, also before a name that
        // begins with a slash.
        let directory = self.text("directory").filter(|it| !it.is_empty());
        if directory.is_some_and(|it| it.contains(':')) {
            let message = "fio 3.33 takes several directories for one when it opens the donor";
            return Err(self.error("directory", message).accepts("one directory"));
        }
        let full = directory.map_or(name.to_owned(), |directory| format!("{directory}/{name}"));
        let file = self.file(None, &full)?;
        if file.kind != FileKind::File {
            let message = format!("the donor {} is no file of a file system", file.name);
            return Err(self.error("donorname", message));
        }
        Ok(Some(Donor { name: file.name, room: self.donor_room()? }))
    }

    fn donor_room(&self) -> Result<DonorRoom, ParseError> {
        if self.number("inplace").is_some_and(|it| it > 0) {
            return Ok(DonorRoom::EachRequest);
        }
        // Observed: `size` does not count, and a donor of no bytes is refused by the kernel.
        let [from, to, _] = self.numbers("filesize");
        let most = from.max(to).and_then(|most| u64::try_from(most).ok());
        match most {
            Some(most) => Ok(DonorRoom::Whole(Bytes(most))),
            None => {
                let message = "the donor gets as many blocks as filesize says, and it says none";
                Err(self.error("inplace", message).accepts("filesize, or inplace=1"))
            }
        }
    }
}
