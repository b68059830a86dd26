//! Which files of a folder are shown.

use super::pattern::Pattern;

/// Which files of a folder are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFilter {
    /// One of these is for each file; all files if there is none.
    pub(crate) include: Vec<Pattern>,
    /// None of these is for a file or for a folder that it is in.
    pub(crate) exclude: Vec<Pattern>,
    /// Whether names that begin with a dot are shown.
    pub(crate) hidden: bool,
    /// How many folders may be inside of one another.
    pub(crate) max_depth: usize,
}

impl FileFilter {
    /// Whether a file is shown. The path is a plain way down.
    pub(crate) fn includes_file(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        (folder.is_empty() || self.descends_into(folder))
            && self.matches_include(path)
            && (self.include.is_empty() || self.include.iter().any(|it| it.matches(path)))
    }

    /// Whether a folder is looked into: neither it nor one that it is in is left out.
    pub(crate) fn descends_into(&self, path: &str) -> bool {
        let slashes = path.match_indices('/').map(|(at, _)| at);
        let mut ways = slashes.chain([path.len()]).map(|end| &path[..end]);
        path.matches('/').count() < self.max_depth && ways.all(|way| self.matches_include(way))
    }

    fn matches_include(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        (self.hidden || !name.starts_with('.')) && !self.exclude.iter().any(|it| it.matches(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::new(text).unwrap()).collect()
    }

    #[test]
    fn what_is_left_out_is_left_out_with_all_that_is_in_it() {
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
