//! Determines how much memory this process may use: the limit of its control group, or the memory of the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// The assumption if the system reports nothing.
const ASSUMED_MEMORY: usize = 1024 * 1024 * 1024;

/// How many bytes this process may use.
pub(super) fn available_memory() -> usize {
    let root = Path::new("/");
    let machine = machine_memory(root).unwrap_or(ASSUMED_MEMORY);
    cgroup_limit(root).map_or(machine, |group| group.min(machine))
}

/// The memory of the machine.
fn machine_memory(root: &Path) -> Option<usize> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The limit of this process's control group, or of one above it, in either version of control groups.
fn cgroup_limit(root: &Path) -> Option<usize> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let limits = text.lines().filter_map(|line| {
        // The number of the hierarchy, the controllers, the path.
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let is_of = |name| controllers.split(',').any(|controller| controller == name);
        match controllers {
            "" => min_cgroup_limit(&root.join("sys/fs/cgroup"), path, "memory.max"),
            _ if is_of("memory") => {
                min_cgroup_limit(&root.join("sys/fs/cgroup/memory"), path, "memory.limit_in_bytes")
            }
            _ => None,
        }
    });
    limits.min()
}

/// The lowest limit in a file of this name, in the group of that path or one above it. Within a container the path may
/// be that of the host: then the group is at the top.
fn min_cgroup_limit(top: &Path, path: &str, name: &str) -> Option<usize> {
    let inner: PathBuf = top.join(path.trim_start_matches('/'));
    let groups = inner.ancestors().take_while(|group| group.starts_with(top));
    let limits = groups.filter_map(|group| {
        // "max" is not a number, which means no limit.
        fs::read_to_string(group.join(name)).ok()?.trim().parse::<usize>().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_smallest_limit_of_the_group_and_its_parents_applies() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "268435456\n"),
        ]);
        assert_eq!(cgroup_limit(root.path()), Some(268_435_456));
    }

    #[test]
    fn the_first_version_of_control_groups_is_read_too() {
        let root = tree(&[
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/\n"),
            ("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(cgroup_limit(root.path()), Some(1000));
    }

    #[test]
    fn within_a_container_the_group_is_at_the_top() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/../elsewhere\n"),
            ("sys/fs/cgroup/memory.max", "2000\n"),
        ]);
        assert_eq!(cgroup_limit(root.path()), Some(2000));
    }

    #[test]
    fn without_a_limit_the_memory_of_the_machine_applies() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/\n"),
            ("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 1 kB\n"),
        ]);
        assert_eq!(
            (cgroup_limit(root.path()), machine_memory(root.path())),
            (None, Some(2_097_152))
        );
        let empty = tree(&[]);
        assert_eq!((cgroup_limit(empty.path()), machine_memory(empty.path())), (None, None));
    }
}
