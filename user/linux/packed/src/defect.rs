//! Defects of a packed tree.

/// A reason why bytes are no packed tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// The bytes begin with something else, or are of another version.
    NotPacked,
    /// The bytes end before the index or the contents do.
    CutOff,
    /// An entry is damaged, or there are more or fewer than the head says.
    BadEntry,
    /// A path is empty, begins with a slash, or has `.`, `..` or too long a name in it.
    BadPath,
    /// The paths are not in order, or one occurs twice.
    OutOfOrder,
    /// A symbolic link leads nowhere, or a further name belongs to nothing before it.
    BadLink,
    /// The contents of a file lie outside.
    ContentsOutside,
}

impl core::fmt::Display for Defect {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Defect::NotPacked => "they are not packed in the form of this version",
            Defect::CutOff => "they are cut off",
            Defect::BadEntry => "an entry of their index is damaged",
            Defect::BadPath => "their index has a path that does not lead from the root",
            Defect::OutOfOrder => "the paths in their index are out of order",
            Defect::BadLink => "a link in their index is damaged",
            Defect::ContentsOutside => "the contents of a file lie outside of them",
        })
    }
}

impl core::error::Error for Defect {}
