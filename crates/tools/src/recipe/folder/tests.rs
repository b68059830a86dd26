//! Tests of a served folder: listing, reading and completion.

use std::fs;
use std::sync::Arc;

use creole::proto::fault::FaultKind;
use creole::{Contents, ToolError};
use tempfile::{TempDir, tempdir};

use super::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn served(folder: &TempDir, change: impl FnOnce(&mut FolderRecipe)) -> Arc<FolderService> {
    let mut recipe = FolderRecipe::new("docs", folder.path());
    change(&mut recipe);
    FolderService::new(&recipe)
}

fn listed(served: &Arc<FolderService>) -> Vec<String> {
    served.scan().unwrap().files.into_keys().collect()
}

#[track_caller]
fn read(served: &FolderService, uri: &str) -> Contents {
    match served.read_now(uri.to_owned()) {
        Ok(mut contents) => contents.remove(0),
        Err(error) => panic!("{uri}: {error:?}"),
    }
}

#[track_caller]
fn refusal(served: &FolderService, uri: &str) -> FaultKind {
    match served.read_now(uri.to_owned()) {
        Err(ToolError::Fault(fault)) => fault.kind,
        other => panic!("{uri}: {other:?}"),
    }
}

#[test]
fn only_listed_files_are_readable() {
    let folder = folder(&[
        ("a.md", "A"),
        ("guide/b c.md", "B"),
        ("guide/logo.png", "\u{1}"),
        (".env", "SECRET"),
        (".git/config", "SECRET"),
        ("guide/.hidden/x.md", "SECRET"),
        ("drafts/d.md", "SECRET"),
        ("README", "text"),
    ]);
    let served = served(&folder, |recipe| {
        recipe.exclude = vec![Pattern::new("drafts").unwrap()];
    });
    assert_eq!(listed(&served), ["README", "a.md", "guide/b c.md", "guide/logo.png"]);
    let page = read(&served, "folder://docs/guide/b%20c.md");
    assert_eq!(
        (page.text.as_deref(), page.mime_type.as_deref()),
        (Some("B"), Some("text/markdown"))
    );
    assert_eq!(read(&served, "folder://docs/README").mime_type.as_deref(), Some("text/plain"));
    for hidden in [
        ".env",
        ".git/config",
        "guide/.hidden/x.md",
        "drafts/d.md",
        "guide",
        "nowhere.md",
        "../a.md",
    ] {
        let kind = refusal(&served, &format!("folder://docs/{hidden}"));
        assert_eq!(kind, FaultKind::ResourceNotFound, "{hidden}");
    }
}

#[test]
fn bytes_travel_as_bytes_and_sizes_have_an_end() {
    let folder = folder(&[("a.txt", "12345")]);
    fs::write(folder.path().join("b.bin"), [0xff, 0, 1]).unwrap();
    let served = served(&folder, |recipe| recipe.max_file_bytes = 4);
    let bytes = read(&served, "folder://docs/b.bin");
    assert_eq!((bytes.text, bytes.blob.as_deref()), (None, Some("/wAB")));
    assert_eq!(bytes.mime_type.as_deref(), Some("application/octet-stream"));
    assert_eq!(refusal(&served, "folder://docs/a.txt"), FaultKind::Internal);
}

#[test]
fn a_large_folder_is_cut_at_the_lower_levels_and_the_rest_can_be_read() {
    let folder = folder(&[("z.md", ""), ("a/1.md", ""), ("a/2.md", "two"), ("b/c/d/e.md", "")]);
    let served = served(&folder, |recipe| (recipe.max_files, recipe.max_depth) = (2, 2));
    let scan = served.scan().unwrap();
    assert_eq!(scan.files.keys().collect::<Vec<_>>(), ["a/1.md", "z.md"]);
    assert_eq!(scan.truncation.as_deref(), Some("more than 2 files"));
    assert_eq!(read(&served, "folder://docs/a/2.md").text.as_deref(), Some("two"));
    assert_eq!(refusal(&served, "folder://docs/b/c/d/e.md"), FaultKind::ResourceNotFound);
}

#[tokio::test]
async fn a_path_is_proposed_name_by_name() {
    let folder = folder(&[("guide/a.md", ""), ("guide/b.md", ""), ("gone?.md", ""), ("x.md", "")]);
    let served = served(&folder, |recipe| recipe.watch = false);
    let service = Server::new("s").start();
    Arc::clone(&served).start(served.scan().unwrap(), &service.registry());
    assert_eq!(served.complete_path(""), ["gone%3F.md", "guide/", "x.md"]);
    assert_eq!(served.complete_path("g"), ["gone%3F.md", "guide/"]);
    assert_eq!(served.complete_path("guide/"), ["guide/a.md", "guide/b.md"]);
    assert!(served.complete_path("y").is_empty());
}

#[test]
fn a_folder_that_is_none_is_refused_by_its_name() {
    let folder = folder(&[("file", "")]);
    for path in ["nowhere", "file"] {
        let recipe = FolderRecipe::new("docs", folder.path().join(path));
        let Err(error) = recipe.add(Server::new("s")) else { panic!("{path} is no folder") };
        assert!(
            error.to_string().starts_with("cannot serve `docs`: cannot read the folder `"),
            "{error}"
        );
    }
}
