//! The filter that selects the visible files of a folder.

use super::pattern::Pattern;

/// Selects the visible files of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFilter {
    /// A file must match one of these; empty means all files.
    pub(crate) include: Vec<Pattern>,
    /// Neither a file nor a folder above it may match one of these.
    pub(crate) exclude: Vec<Pattern>,
    /// Whether names that begin with a dot are visible.
    pub(crate) hidden: bool,
    /// Maximum depth of nested folders.
    pub(crate) max_depth: usize,
}

impl FileFilter {
    /// Whether a file is visible. The path contains no `.` or `..`.
    pub(crate) fn includes_file(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        (folder.is_empty() || self.descends_into(folder))
            && self.matches_include(path)
            && (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(path)))
    }

    /// Whether a folder is scanned: neither it nor a folder above it is excluded.
    pub(crate) fn descends_into(&self, path: &str) -> bool {
        let slashes = path.match_indices('/').map(|(offset, _)| offset);
        let mut ways = slashes.chain([path.len()]).map(|end| &path[..end]);
        path.matches('/').count() < self.max_depth && ways.all(|way| self.matches_include(way))
    }

    fn matches_include(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        (self.hidden || !name.starts_with('.'))
            && !self.exclude.iter().any(|pattern| pattern.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
    }

    #[test]
    fn an_excluded_folder_is_excluded_with_its_content() {
        let rules = FileFilter {
            include: patterns(&["*.md"]),
            exclude: patterns(&["drafts", "secret*"]),
            hidden: false,
            max_depth: 2,
        };
        for shown in ["a.md", "a/b.md", "a/b/c.md"] {
            assert!(rules.includes_file(shown), "{shown}");
        }
        for hidden in [
            "a.txt",
            ".a.md",
            ".git/a.md",
            "a/.b/c.md",
            "drafts/a.md",
            "a/drafts/b.md",
            "secret.md",
            "a/secrets/b.md",
            "a/b/c/d.md",
        ] {
            assert!(!rules.includes_file(hidden), "{hidden}");
        }
    }
}
