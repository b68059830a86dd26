//! Makes the release program quick to start, where the linker can.
//!
//! What unwinds the stack is linked in: to load its library takes a twentieth of a millisecond at each start.
//!
//! On Linux the program lies at a fixed address, like Python and Node.js: otherwise the loader writes 32,000 addresses
//! into 135 pages before anything else can happen, which is a fifth of a start and half a megabyte that no two
//! processes share. The stack, the heap and all libraries still lie anywhere. Who wants the program to do so too
//! builds it with `CREOLE_PIE` set; the addresses are then kept in packed form, 20 KB instead of 700.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that fails unless it can unwind.
const PROBE: &[u8] = b"fn main() { assert!(std::panic::catch_unwind(|| panic!()).is_err()) }";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A build for tests is not worth the time.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        match is_fixed() {
            true => wish(&["-no-pie"]),
            false => wish(&["-Wl,-z,pack-relative-relocs"]),
        }
        if let Some(folder) = unwinder() {
            wish(&[&format!("-L{}", folder.display())]);
        }
    }
}

/// Whether the program is to lie at a fixed address.
fn is_fixed() -> bool {
    println!("cargo::rerun-if-env-changed=CREOLE_PIE");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    is_linux && env::var_os("CREOLE_PIE").is_none()
}

/// Asks the linker for something, if a program so linked starts and survives a panic: glibc before 2.36 does not know packed addresses, and not every compiler has static libraries.
fn wish(options: &[&str]) {
    if probe(options) == Some(true) {
        for option in options {
            println!("cargo::rustc-link-arg-bins={option}");
        }
    }
}

/// A folder in which linkers find the unwinder's static library under the name of the shared one, which is what
/// Rust asks them for (ld(1), implicit linker scripts).
fn unwinder() -> Option<PathBuf> {
    let folder = Path::new(&env::var_os("OUT_DIR")?).join("unwinder");
    fs::create_dir_all(&folder).ok()?;
    fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc)\n").ok()?;
    Some(folder)
}

/// Whether a program can be linked with these options and runs; nothing where that cannot be tried.
fn probe(options: &[&str]) -> Option<bool> {
    let program = Path::new(&env::var_os("OUT_DIR")?).join("probe");
    let mut rustc = Command::new(env::var_os("RUSTC")?);
    rustc.args(["-", "--crate-name=probe", "--target"]).arg(env::var_os("TARGET")?);
    rustc.arg("-o").arg(&program);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={}", linker.to_string_lossy()));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.args(options.iter().map(|option| format!("-Clink-arg={option}")));
    let mut linking =
        rustc.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    linking.stdin.take()?.write_all(PROBE).ok()?;
    let linked = linking.wait().ok()?.success();
    Some(linked && Command::new(program).stderr(Stdio::null()).status().ok()?.success())
}
