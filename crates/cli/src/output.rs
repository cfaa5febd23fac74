//! Where results go: the standard output, and files that appear only when they are complete.

use lab::Error;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes to the standard output. A reader who has gone away is no failure.
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() != ErrorKind::BrokenPipe => {
            Err(Error::unwritable(Path::new("standard output"), cause))
        }
        _ => Ok(()),
    }
}

/// Writes a file as a whole: under another name first, renamed when it is complete.
pub fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let failed = |cause| Error::unwritable(path, cause);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let unfinished = path.with_file_name(name);
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(failed)?;
    }
    std::fs::write(&unfinished, text).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(failed)
}
