//! Why a call on a file or a disk fails, as programs are told.

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Errno {
    /// Offset or length is not a multiple of the logical block, or the call makes no sense here.
    #[error("Invalid argument")]
    Einval,
    /// A write beyond the end of the disk.
    #[error("No space left on device")]
    Enospc,
    /// There is no such file.
    #[error("No such file or directory")]
    Enoent,
    /// There is something of this name already.
    #[error("File exists")]
    Eexist,
    /// It is a directory.
    #[error("Is a directory")]
    Eisdir,
    /// It is no directory.
    #[error("Not a directory")]
    Enotdir,
    /// Something is in the directory.
    #[error("Directory not empty")]
    Enotempty,
    /// Something is in use that would have to change.
    #[error("Device or resource busy")]
    Ebusy,
    /// There is nothing where the call wants something.
    #[error("No data available")]
    Enodata,
    /// A file is no disk.
    #[error("Inappropriate ioctl for device")]
    Enotty,
    /// The disk does not do that.
    #[error("Operation not supported")]
    Eopnotsupp,
}
