//! Lists the files of the console, so that a new file needs no change in Rust.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("console");
    println!("cargo::rerun-if-changed=console");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut table = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let name = file.strip_prefix(&root).expect("it is below the root");
        let (name, path) =
            (name.display().to_string().replace('\\', "/"), file.display().to_string());
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),").expect("a string takes it");
    }
    table.push_str("];\n");
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("files.rs");
    fs::write(target, table).expect("the build folder can be written");
}

/// The files of a folder that a browser loads.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|end| {
            ["html", "js", "css", "svg", "png"].iter().any(|known| end == *known)
        }) {
            files.push(path);
        }
    }
}
