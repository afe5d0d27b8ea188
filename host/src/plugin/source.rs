//! Where documents and components come from. A volume now; a registry of
//! images in time.
//!
//! Nothing is read that lies outside the folder, is no regular file or is
//! larger than its limit.

pub mod hash;
mod file;
mod volume;
pub mod oci;
pub mod cluster;

pub use file::{DocumentFile, FileError, FileRule, SourceError};
pub use volume::{BUNDLE, artifact, bundle, read, stamp};
