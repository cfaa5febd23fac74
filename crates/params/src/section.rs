//! A section whose parameters are the fields of a struct, said once.

use crate::Table;
use base::{Bytes, Duration};

/// What a file can state as one parameter.
pub trait Stated: Sized {
    /// The value under a name that the schema has, with such a value.
    fn read(table: &Table, name: &str) -> Self;
}

impl Stated for u64 {
    fn read(table: &Table, name: &str) -> u64 {
        table.whole(name)
    }
}

impl Stated for bool {
    fn read(table: &Table, name: &str) -> bool {
        table.flag(name)
    }
}

impl Stated for u32 {
    fn read(table: &Table, name: &str) -> u32 {
        u32::try_from(table.whole(name)).expect("bounded by the schema")
    }
}

impl Stated for u16 {
    fn read(table: &Table, name: &str) -> u16 {
        u16::try_from(table.whole(name)).expect("bounded by the schema")
    }
}

impl Stated for (u64, u64) {
    fn read(table: &Table, name: &str) -> (u64, u64) {
        table.wholes::<2>(name).into()
    }
}

impl Stated for (u64, u64, u64) {
    fn read(table: &Table, name: &str) -> (u64, u64, u64) {
        table.wholes::<3>(name).into()
    }
}

impl Stated for Duration {
    fn read(table: &Table, name: &str) -> Duration {
        table.time(name)
    }
}

impl Stated for Bytes {
    fn read(table: &Table, name: &str) -> Bytes {
        Bytes(table.size(name))
    }
}

impl Stated for String {
    fn read(table: &Table, name: &str) -> String {
        table.text(name).to_string()
    }
}

/// Declares a struct and the section of a file that it is read from, field by field:
/// `name: type = what is accepted`. Structs of other sections may follow: `with { name: type, }`.
#[macro_export]
macro_rules! section {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident in $section:literal {
            $($(#[$said:meta])* $field:ident: $kind:ty = $accept:expr,)*
        }
        $(with { $($(#[$also:meta])* $inner:ident: $section_of:ty,)* })?
    ) => {
        $(#[$about])*
        $vis struct $name {
            $($(#[$said])* pub $field: $kind,)*
            $($($(#[$also])* pub $inner: $section_of,)*)?
        }

        impl $name {
            /// The section of a file.
            $vis const SECTION: $crate::Section = $crate::Section {
                name: $section,
                required: true,
                specs: &[$($crate::spec(stringify!($field), $accept)),*],
            };

            /// What a file states that has the section.
            $vis fn read(table: &$crate::Table) -> $name {
                $name {
                    $($field: $crate::Stated::read(
                        table,
                        concat!($section, ".", stringify!($field)),
                    ),)*
                    $($($inner: <$section_of>::read(table),)*)?
                }
            }
        }
    };
}
