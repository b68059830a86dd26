//! Tests of children whose parent process is killed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole::client::Program;
use creole::internal::process::{Child, Reaper, run_reaper};
use creole_test_wait::{blocking, eventually};

const PART: &str = "CREOLE_TEST_PART";

/// Starts this test binary again in another role.
fn part(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(name)).env(PART, name);
    command
}

fn arguments(name: &str) -> [String; 3] {
    [format!("orphans::{name}"), "--exact".to_owned(), "--test-threads=2".to_owned()]
}

fn plays(name: &str) -> bool {
    std::env::var_os(PART).is_some_and(|part| part == name)
}

/// Not a test: the role of the reaper.
#[test]
fn guards() {
    if plays("guards") {
        run_reaper(std::io::stdin().lock(), Duration::from_millis(100));
    }
}

/// Not a test: a process whose child and grandchild ignore signals, and which then dies.
#[test]
fn exits_without_a_message() {
    if !plays("exits_without_a_message") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let guardian = ["env".into(), format!("{PART}=guards").into()];
    let guardian = guardian.into_iter().chain([std::env::current_exe().unwrap().into_os_string()]);
    let guardian: Vec<OsString> = guardian.chain(arguments("guards").map(OsString::from)).collect();
    let reaper = Reaper::start(&guardian[0], &guardian[1..]).unwrap();
    let script =
        "trap '' TERM HUP; exec </dev/null; sleep 1000 & echo \"pids $$ $!\" >&2; wait; sleep 9";
    let mut program = Program::new("files", "sh").args(["-c", script]);
    program.reaper = Some(reaper);
    runtime.block_on(async {
        let (child, _stdin, _stdout) = Child::start(&program).await.unwrap();
        let line = || child.tail().last_line().filter(|line| line.starts_with("pids "));
        let pids = eventually("the child writes its process ids", line).await;
        std::io::stdout().write_all(format!("\n{pids}\n").as_bytes()).unwrap();
        std::process::abort();
    });
}

/// Not a test: the first process of a container, which adopts orphans.
#[cfg(target_os = "linux")]
#[test]
fn adopts() {
    if !plays("adopts") {
        return;
    }
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let program =
            Program::new("files", "sh").args(["-c", "sleep 1000 & echo $! >&2; exec cat"]);
        let (child, stdin, _stdout) = Child::start(&program).await.unwrap();
        let line = || child.tail().last_line();
        let orphan = eventually("the child writes the process id", line).await;
        drop(stdin);
        child.stop().await;
        assert!(!Path::new("/proc").join(&orphan).exists(), "{orphan} was not reaped");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn orphans_are_noticed_where_they_are_left_to_us() {
    let output = part("adopts").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z") && !stat.contains(") X"))
}

#[test]
fn a_guarded_child_and_its_children_do_not_outlive_the_process_that_started_them() {
    let mut parent = part("exits_without_a_message").stdout(Stdio::piped()).spawn().unwrap();
    let mut text = String::new();
    // The children do not hold this pipe: it ends with the parent.
    parent.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!parent.wait().unwrap().success());
    let pids = text.lines().find_map(|line| line.strip_prefix("pids ")).expect(&text);
    let left = || format!("some of {pids} are left");
    blocking::eventually(left, || !pids.split(' ').any(is_alive));
}

#[test]
fn a_reaper_ends_no_released_process() {
    let stays = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    let mut stays = KillOnDrop(stays);
    let number = stays.0.id();
    run_reaper(format!("+{number}\n-{number}\n+\nx\n+-1\n+0\n").as_bytes(), Duration::ZERO);
    assert!(stays.0.try_wait().unwrap().is_none());
    run_reaper(format!("+{number}\n").as_bytes(), Duration::ZERO);
    stays.0.wait().unwrap();
}

/// Kills the process at the end of the test.
struct KillOnDrop(std::process::Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
    }
}
