//! Compiled code in a folder of this user's own, so that a start costs no compile.
//!
//! Whoever writes such code owns the process, so nothing counts that another
//! could have written: folder and file must be this user's, with no right to
//! write for others, and a plain file under no link. A file begins with a
//! checksum of the rest: what was cut off or damaged is found before it is
//! loaded. Each is written under another name and renamed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::limits::{CACHE_BYTES, COMPILED_BYTES};

/// Below the folder that is given: a mount point need not be ours.
const FOLDER: &str = "compiled";
const EXTENSION: &str = "code";
const MARK: &[u8; 16] = b"keelson-compiled";
const CHECKSUM: usize = 32;

/// Why it is not used, or an entry of it is not.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("{}: {problem}", path.display())]
    Io { path: PathBuf, problem: std::io::Error },
    #[error("{} {rule}", path.display())]
    Untrusted { path: PathBuf, rule: &'static str },
    #[error("{} is damaged", path.display())]
    Damaged { path: PathBuf },
}

/// A folder that may be used.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// What was done for components since the engine was made.
#[derive(Debug, Default)]
pub struct Counts {
    compiled: AtomicU64,
    cached: AtomicU64,
    rebuilt: AtomicU64,
}

impl Counts {
    pub(super) fn count_compiled(&self) {
        self.compiled.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_cached(&self) {
        self.cached.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_rebuilt(&self) {
        self.rebuilt.fetch_add(1, Ordering::Relaxed);
    }

    /// Components that were compiled.
    pub fn compiled(&self) -> u64 {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Those that came out of the cache.
    pub fn cached(&self) -> u64 {
        self.cached.load(Ordering::Relaxed)
    }

    /// Entries of the cache that were damaged, and compiled anew.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::Relaxed)
    }
}

impl Cache {
    /// Makes the folder where it is not there. An error where it cannot be written, or others can.
    pub fn open(at: &Path) -> Result<Self, CacheError> {
        let folder = at.join(FOLDER);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(problem) if problem.kind() != ErrorKind::AlreadyExists => {
                return Err(CacheError::Io { path: folder, problem });
            }
            _ => {}
        }
        let cache = Self { folder };
        cache.check_folder()?;
        // That it is ours does not tell that its file system takes writes.
        let probe = cache.temporary();
        let io = |problem| CacheError::Io { path: probe.clone(), problem };
        drop(create(&probe).map_err(io)?);
        fs::remove_file(&probe).map_err(io)?;
        Ok(cache)
    }

    /// By all that the code depends on: this program, the `settings` of its engine, and the component.
    pub(super) fn key(&self, settings: &str, component: &[u8]) -> String {
        let digest = Sha256::new()
            .chain_update(env!("CARGO_PKG_VERSION"))
            .chain_update([0])
            .chain_update(settings)
            .chain_update([0])
            .chain_update(Sha256::digest(component))
            .finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// None where there is no entry.
    pub(super) fn read(&self, key: &str) -> Result<Option<Vec<u8>>, CacheError> {
        self.check_folder()?;
        let path = self.entry(key);
        let io = |problem| CacheError::Io { path: path.clone(), problem };
        let mut file = match OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
            Ok(file) => file,
            Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(io(problem)),
        };
        let found = file.metadata().map_err(io)?;
        if !found.is_file() {
            return Err(CacheError::Untrusted { path, rule: "is no plain file" });
        }
        check_owner(&path, &found)?;
        if found.len() > COMPILED_BYTES + 64 {
            return Err(CacheError::Damaged { path });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
        file.read_to_end(&mut bytes).map_err(io)?;
        let head = MARK.len() + CHECKSUM;
        let whole = bytes.starts_with(MARK)
            && bytes
                .get(MARK.len()..head)
                .zip(bytes.get(head..))
                .is_some_and(|(sum, code)| Sha256::digest(code)[..] == *sum);
        if !whole {
            return Err(CacheError::Damaged { path });
        }
        // Used just now: the last to go when the folder is full. Where that cannot be written nothing is lost.
        let _ = file.set_modified(SystemTime::now());
        bytes.drain(..head);
        Ok(Some(bytes))
    }

    pub(super) fn write(&self, key: &str, code: &[u8]) -> Result<(), CacheError> {
        self.check_folder()?;
        self.make_room(code.len() as u64);
        let (new, path) = (self.temporary(), self.entry(key));
        let written = (|| {
            let mut file = create(&new)?;
            file.write_all(MARK)?;
            file.write_all(&Sha256::digest(code))?;
            file.write_all(code)?;
            file.sync_data()?;
            fs::rename(&new, &path)
        })();
        written.map_err(|problem| {
            let _ = fs::remove_file(&new);
            CacheError::Io { path: self.folder.clone(), problem }
        })
    }

    /// Takes away what was used longest ago, and what a process that ended left half written.
    fn make_room(&self, bytes: u64) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                let _ = fs::remove_file(&path);
                continue;
            }
            kept.push((found.modified().unwrap_or(SystemTime::UNIX_EPOCH), found.len(), path));
        }
        kept.sort();
        let mut sum: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in kept {
            if sum + bytes <= CACHE_BYTES {
                return;
            }
            if fs::remove_file(path).is_ok() {
                sum -= size;
            }
        }
    }

    fn entry(&self, key: &str) -> PathBuf {
        self.folder.join(key).with_extension(EXTENSION)
    }

    fn temporary(&self) -> PathBuf {
        self.folder.join(format!("{}-{:08x}.new", std::process::id(), getrandom::u32().unwrap_or(0)))
    }

    fn check_folder(&self) -> Result<(), CacheError> {
        let path = self.folder.clone();
        let found = fs::symlink_metadata(&path).map_err(|problem| CacheError::Io { path: path.clone(), problem })?;
        if !found.is_dir() {
            return Err(CacheError::Untrusted { path, rule: "is no folder" });
        }
        check_owner(&path, &found)
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

#[allow(unsafe_code)]
fn check_owner(path: &Path, found: &fs::Metadata) -> Result<(), CacheError> {
    let untrusted = |rule| Err(CacheError::Untrusted { path: path.to_owned(), rule });
    // SAFETY: the call takes nothing and cannot fail.
    if found.uid() != unsafe { libc::geteuid() } {
        return untrusted("belongs to another user");
    }
    if found.mode() & 0o022 != 0 {
        return untrusted("can be written by others");
    }
    Ok(())
}
