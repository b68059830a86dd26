//! Tests that secrets reach only the program and the service that they are for.

use std::process::{Command, Stdio};

use creole_acceptance::process_under_test::{Server, shell, told};
use creole_acceptance::stage::stdio::binary;
use serde_json::json;

use crate::service::{Service, answer};
use crate::{ConfiguredServer, reapers};

const SECRET: &str = "hunter2-hunter2";
const FILED: &str = "filed-hunter3-filed";

#[test]
fn a_program_gets_its_secrets_and_they_are_redacted() {
    let script = "echo \"$TOKEN/$FILED/$MINE/$CREOLE_TEST_OTHER/$PASSED\"; echo \"$TOKEN $FILED\" >&2; exit $CODE";
    let tables = format!(
        "[log]\nlevel = 'trace'\n[tools.bad]\ndescription = 'x'\ncommand = ['sh', '-c', '''{script}''']\n\
         env = {{ TOKEN = '${{SECRET}}', CODE = '1' }}\nenv_files = {{ FILED = 'filed.txt' }}\nprogress = true\n\
         [tools.good]\ndescription = 'x'\ncommand = ['sh', '-c', '''{script}''']\n\
         env = {{ TOKEN = '${{SECRET}}', CODE = '0' }}\nenv_files = {{ FILED = 'filed.txt' }}\n\
         env_pass = ['PASSED', 'UNSET_HERE']\n"
    );
    let variables =
        [("SECRET", SECRET), ("CREOLE_TEST_OTHER", "other"), ("MINE", "mine"), ("PASSED", "on")];
    let mut server = ConfiguredServer::start_with(&tables, &["--debug"], &variables);
    let missing = server.call("good", json!({})).unwrap_err();
    assert!(
        missing.contains("cannot read a secret") && !missing.contains("filed.txt"),
        "{missing}"
    );
    std::fs::write(server.path().join("filed.txt"), format!("{FILED}\n")).unwrap();
    // The program gets only the named variables: neither the variable with the secret nor others.
    assert_eq!(server.call("good", json!({})), Ok(format!("{SECRET}/{FILED}///on\n")));
    let failed = server.call("bad", json!({})).unwrap_err();
    assert_eq!(failed, "the program exited with code 1:\n[secret] [secret]");
    let ended = server.server.finish();
    assert!(!ended.log.contains(SECRET) && !ended.log.contains(FILED), "{}", ended.log);
}

#[test]
fn a_service_gets_its_credentials_and_nobody_else_hears_of_them() {
    let service = Service::start(|_, request| {
        let shown = request.header("authorization").or(request.header("x-key")).unwrap_or_default();
        answer("401 Unauthorized", "", &format!("who is {shown}?"))
    });
    let url = service.url();
    let tables = format!(
        "[log]\nlevel = 'trace'\n\
         [tools.bearer]\ndescription = 'x'\nhttp = {{ url = '{url}/', auth = {{ bearer = '${{SECRET}}' }} }}\n\
         [tools.basic]\ndescription = 'x'\n\
         http = {{ url = '{url}/', auth = {{ user = 'ann', password = '${{SECRET}}' }} }}\n\
         [tools.key]\ndescription = 'x'\n\
         http = {{ url = '{url}/', auth = {{ header = 'X-Key', value_file = 'key.txt' }} }}\n"
    );
    let mut server = ConfiguredServer::start_with(&tables, &["--debug"], &[("SECRET", SECRET)]);
    std::fs::write(server.path().join("key.txt"), format!("{FILED}\n")).unwrap();
    for (tool, shown) in
        [("bearer", "Bearer [secret]"), ("basic", "Basic [secret]"), ("key", "[secret]")]
    {
        let output = server.call(tool, json!({})).unwrap_err();
        assert_eq!(
            output,
            format!("the service responded with status 401 Unauthorized:\nwho is {shown}?")
        );
    }
    let requests = service.requests();
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!(requests[1].header("authorization"), Some("Basic YW5uOmh1bnRlcjItaHVudGVyMg=="));
    assert_eq!(requests[2].header("x-key"), Some(FILED));
    let config = server.path().join("creole.toml");
    let checked = Command::new(binary().unwrap())
        .args(["config", "check"])
        .arg(config)
        .env("SECRET", SECRET)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap();
    assert!(shown.contains("tool     bearer: sends requests to 127.0.0.1"), "{shown}");
    let ended = server.server.finish();
    for text in [&shown, &ended.log] {
        assert!(
            !text.contains(SECRET) && !text.contains(FILED) && !text.contains("YW5uOmh1"),
            "{text}"
        );
    }
}

/// The test leaves two files open in the server's process. Neither the program of a tool nor an upstream nor the reaper
/// inherits them, or any file that the server opened.
#[test]
fn a_program_is_given_no_open_file_of_the_server_or_of_who_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let tables = "[server]\npacks = ['tasks']\n[state]\nfile = 'state.sqlite3'\n\
                  [tasks]\nurl = 'sqlite:tasks.sqlite3'\n\
                  [folders.here]\npath = '.'\ninclude = ['*.md']\n\
                  [tools.open]\ndescription = 'x'\ncommand = ['ls', '/proc/self/fd']\n\
                  [tools.mask]\ndescription = 'x'\ncommand = ['sh', '-c', 'umask; pwd']\n\
                  [upstreams.behind]\ncommand = ['sh', '-c', 'ls /proc/self/fd > behind.txt; exec creole serve --preset everything']\n";
    std::fs::write(folder.path().join("creole.toml"), tables).unwrap();
    let script =
        "exec 8<creole.toml 9>left.txt; ls /proc/self/fd >&9; exec creole serve creole.toml";
    let mut server = Server::start_command(shell(folder.path(), script)).greeted();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("left.txt").contains("8\n9\n"), "{}", read("left.txt"));

    told(&server.call("create_task", &json!({ "description": "opens a file" }))).unwrap();
    // The fourth descriptor is the folder that `ls` reads.
    let alone = "0\n1\n2\n3\n";
    assert_eq!(told(&server.call("open", &json!({}))), Ok(alone.to_owned()));
    told(&server.call("behind__test_simple_text", &json!({}))).unwrap();
    assert_eq!(read("behind.txt"), alone);
    let reapers = reapers(server.id());
    assert_eq!(reapers.len(), 1, "a reaper is running");
    for reaper in reapers {
        let mut open: Vec<_> = std::fs::read_dir(format!("/proc/{reaper}/fd"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        open.sort();
        assert_eq!(open, ["0", "1", "2"]);
    }

    let mask = Command::new("sh").args(["-c", "umask"]).output().unwrap();
    let mask = String::from_utf8(mask.stdout).unwrap();
    let expected = format!("{mask}{}\n", folder.path().canonicalize().unwrap().display());
    assert_eq!(told(&server.call("mask", &json!({}))), Ok(expected));
}
