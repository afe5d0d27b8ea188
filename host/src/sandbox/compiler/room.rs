//! Whether there is memory for a compiler beside what runs already. Where the
//! kernel would have to end a process, it is better not to begin.

use std::fs;
use std::path::{Path, PathBuf};

use crate::limits::{COMPILE_MEMORY, COMPILE_RESERVE};
use crate::sandbox::model::LoadError;

const MIB: u64 = 1 << 20;
/// What a compiler takes at the least, and for each byte of a component: 355 MiB were seen for 18 MB of Python, 12 for
/// 230 kB of Rust. One that takes more is stopped when it does.
const BASE: u64 = 8 * MIB;
const PER_BYTE: u64 = 20;

/// Refuses to begin where the container, or the machine, has less left than a component of this size is likely to need.
pub(super) fn check(component: usize) -> Result<(), LoadError> {
    let need = (BASE + PER_BYTE * component as u64).min(COMPILE_MEMORY);
    match left() {
        Some(left) if left < need + COMPILE_RESERVE => Err(LoadError::NoRoom {
            bytes: component,
            need: need.div_ceil(MIB),
            left: left.saturating_sub(COMPILE_RESERVE) / MIB,
        }),
        _ => Ok(()),
    }
}

/// Bytes that a compiler may take: a fixed limit, or what is left.
pub(super) fn limit() -> u64 {
    left().map_or(COMPILE_MEMORY, |left| left.saturating_sub(COMPILE_RESERVE).min(COMPILE_MEMORY))
}

/// What the cgroups of this process have left, else the machine. None where neither can be read.
fn left() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok();
    let of_cgroups = own.as_deref().and_then(path).and_then(|path| in_cgroup(Path::new("/sys/fs/cgroup"), &path));
    of_cgroups.into_iter().chain(available()).min()
}

/// Of version 2: `0::/path`, as this process sees it.
fn path(cgroups: &str) -> Option<PathBuf> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // A process that was moved out of its namespace's root sees a path that leads nowhere.
    (!path.contains("..")).then(|| PathBuf::from(path))
}

/// The least of what this cgroup and those above it have left.
fn in_cgroup(root: &Path, path: &Path) -> Option<u64> {
    path.ancestors().filter_map(|path| left_in(&root.join(path))).min()
}

fn left_in(cgroup: &Path) -> Option<u64> {
    let read = |file: &str| fs::read_to_string(cgroup.join(file)).ok();
    let max: u64 = read("memory.max")?.trim().parse().ok()?;
    let current: u64 = read("memory.current")?.trim().parse().ok()?;
    // What is only cached of files goes before anybody is ended.
    let cached = read("memory.stat").and_then(|stat| field(&stat, "inactive_file")).unwrap_or(0);
    Some(max.saturating_sub(current.saturating_sub(cached)))
}

fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_cgroup_counts() {
        let root = std::env::temp_dir().join(format!("keelson-room-{}", std::process::id()));
        let leaf = root.join("pod/container");
        fs::create_dir_all(&leaf).unwrap();
        let write = |at: &Path, max: &str, current: u64, cached: u64| {
            fs::write(at.join("memory.max"), max).unwrap();
            fs::write(at.join("memory.current"), current.to_string()).unwrap();
            fs::write(at.join("memory.stat"), format!("anon 5\ninactive_file {cached}\nactive_file 9\n")).unwrap();
        };
        write(&leaf, "max\n", 50, 0);
        write(leaf.parent().unwrap(), "100\n", 80, 30);
        assert_eq!(in_cgroup(&root, Path::new("pod/container")), Some(50));
        write(&leaf, "60\n", 50, 0);
        assert_eq!(in_cgroup(&root, Path::new("pod/container")), Some(10));
        assert_eq!(in_cgroup(&root, Path::new("other")), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_version_two_names_a_cgroup() {
        assert_eq!(path("0::/kubepods/pod1/c\n"), Some("kubepods/pod1/c".into()));
        assert_eq!(path("0::/\n"), Some("".into()));
        assert_eq!(path("3:memory:/x\n2:cpu:/x\n"), None);
        assert_eq!(path("0::/../../x\n"), None);
    }
}
