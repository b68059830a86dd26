//! Tests with real children: how they start, what they inherit, and that none of them is left.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use creole_test_wait::{blocking, eventually};
use tokio::time::timeout;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Program {
    let quick = GracePeriods {
        after_close: Duration::from_millis(50),
        after_signal: Duration::from_millis(300),
    };
    Program { grace_periods: quick, ..Program::new("files", "sh").args(["-c", script]) }
}

async fn read_line(output: &mut ChildOutput) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\n") {
        let read = timeout(LONG, output.read(&mut text, 4096)).await.unwrap().unwrap();
        assert_ne!(read, 0, "the output ended after {:?}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap().trim_end().to_owned()
}

/// Whether a process runs; a zombie does not.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state.flatten(), None | Some('Z' | 'X'))
}

/// Whether a process is gone, zombies included.
fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn a_child_gets_arguments_and_entries_as_they_are_and_nothing_else() {
    let script = "printf '%s|%s|%s|%s\\n' \"$1\" \"$TOKEN\" \"$CARGO_MANIFEST_DIR\" \"$PWD\"; cat";
    let program = sh(script).env("TOKEN", "a $(b)");
    let args = ["-c", script, "zero", "; rm -rf \"$HOME\" `x`"];
    let program = Program { folder: Some("/".into()), ..program.args(args) };
    let (child, stdin, mut stdout) = Child::start(&program).await.unwrap();
    assert_eq!(read_line(&mut stdout).await, "; rm -rf \"$HOME\" `x`|a $(b)||/");
    stdin.write(b"echo\n").await.unwrap();
    assert_eq!(read_line(&mut stdout).await, "echo");
    drop(stdin);
    assert_eq!(timeout(LONG, child.wait_for_exit()).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn a_child_inherits_no_open_descriptor() {
    use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

    // A number that no shell uses itself.
    let left = fcntl_dupfd_cloexec(fs::File::open("/dev/null").unwrap(), 300).unwrap();
    fcntl_setfd(&left, FdFlags::empty()).unwrap();
    let look = format!("ls /proc/$$/fd | grep -c {}; cat", left.as_raw_fd());
    let (_child, _stdin, mut stdout) = Child::start(&sh(&look)).await.unwrap();
    assert_eq!(read_line(&mut stdout).await, "0");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named_without_its_arguments() {
    let missing = Program::new("files", "/no/such/program").args(["--token=secret"]);
    let nowhere = Program { folder: Some("/no/such/folder".into()), ..sh("true") };
    for program in [missing, nowhere] {
        let fault = Child::start(&program).await.unwrap_err();
        assert!(fault.detail.contains("`files`"), "{}", fault.detail);
        assert!(!format!("{fault:?} {program:?}").contains("secret"), "{fault:?} {program:?}");
        assert!(!fault.detail.contains("/no/such"), "{}", fault.detail);
    }
}

#[tokio::test]
async fn stopping_ends_the_process_tree_even_if_it_ignores_the_signal() {
    let scripts = [
        "sleep 1000 & echo $$ $!; sleep 1000",
        "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & echo $$ $!; while :; do sleep 1; done",
        "(trap '' TERM; exec sleep 1000) & echo $$ $!; exec cat",
    ];
    for script in scripts {
        let (child, stdin, mut stdout) = Child::start(&sh(script)).await.unwrap();
        let line = read_line(&mut stdout).await;
        let (leader, grandchild) = line.split_once(' ').unwrap();
        assert!(is_alive(leader) && is_alive(grandchild), "{script}");
        drop(stdin);
        timeout(LONG, child.stop()).await.unwrap();
        assert!(is_gone(leader), "{script}");
        eventually("the grandchild ends", || !is_alive(grandchild)).await;
    }
}

#[tokio::test]
async fn a_dropped_child_is_ended_with_the_processes_that_it_left() {
    let (child, stdin, mut stdout) = Child::start(&sh("echo $$; sleep 1000")).await.unwrap();
    let leader = read_line(&mut stdout).await;
    drop((child, stdin));
    eventually("the leader is reaped", || is_gone(&leader)).await;

    let script = "sleep 1000 & echo $!; exit 7";
    let (child, _stdin, mut stdout) = Child::start(&sh(script)).await.unwrap();
    let left = read_line(&mut stdout).await;
    assert_eq!(timeout(LONG, child.wait_for_exit()).await.unwrap(), Exit::Code(7));
    eventually("the child ends", || !is_alive(&left)).await;
    let fault = Exit::Code(7).fault("files");
    assert_eq!(fault.detail, "`files` exited with code 7");
}

#[test]
fn the_end_of_the_runtime_ends_its_children() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let script = "trap '' TERM; sleep 1000 & echo $$ $!; wait; wait";
    let (_child, _stdin, line) = runtime.block_on(async {
        let (child, stdin, mut stdout) = Child::start(&sh(script)).await.unwrap();
        let line = read_line(&mut stdout).await;
        (child, stdin, line)
    });
    drop(runtime);
    let (leader, grandchild) = line.split_once(' ').unwrap();
    assert!(is_gone(leader));
    blocking::eventually("the grandchild ends", || !is_alive(grandchild));
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_the_child_nor_grows() {
    let script =
        "head -c 20000000 /dev/zero >&2; printf 'last \\033[1mwords\\n' >&2; echo done; cat";
    let (child, _stdin, mut stdout) = Child::start(&sh(script)).await.unwrap();
    assert_eq!(read_line(&mut stdout).await, "done");
    let is_last = |line: String| line.ends_with("words");
    eventually("the last line arrives", || child.tail().last_line().is_some_and(is_last)).await;
    assert!(child.tail().last_line().unwrap().ends_with("last \\u{1b}[1mwords"));
    assert!(child.tail().text().len() < 100_000);
}

#[tokio::test]
async fn a_signal_from_outside_is_reported() {
    let (child, _stdin, mut stdout) = Child::start(&sh("echo $$; exec sleep 1000")).await.unwrap();
    let pid = read_line(&mut stdout).await.parse().ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
    let exit = timeout(LONG, child.wait_for_exit()).await.unwrap();
    assert_eq!(exit, Exit::Signal(9));
    assert_eq!(exit.fault("files").detail, "`files` was killed by signal 9");
}

#[tokio::test]
async fn lines_on_stderr_are_counted_as_they_arrive() {
    let script = "echo one >&2; read go; echo two >&2; echo three >&2";
    let program = Program { log_stderr: false, ..sh(script) };
    let (child, stdin, _stdout) = Child::start(&program).await.unwrap();
    assert_eq!(timeout(LONG, child.tail().wait_lines_after(0)).await.unwrap(), Some(1));
    assert_eq!(child.tail().last_line().as_deref(), Some("one"));
    stdin.write(b"go\n").await.unwrap();
    let mut seen = 1;
    while let Some(lines) = timeout(LONG, child.tail().wait_lines_after(seen)).await.unwrap() {
        seen = lines;
    }
    assert_eq!(seen, 3, "nothing follows the end");
    assert_eq!(child.tail().last_line().as_deref(), Some("three"));
}
