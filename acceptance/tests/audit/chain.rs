//! The hash chain of two processes that write to one log.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::Value;

use super::{audit, call_many, configure, lines, log_names, start};

/// Verifies all files of the log; returns the exit code, the report and the message on stderr.
fn verify(folder: &Path) -> (Option<i32>, Value, String) {
    let names = log_names(folder);
    let words: Vec<&str> =
        ["verify", "--json"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let found = audit(folder, &words);
    (found.code, serde_json::from_str(&found.stdout).unwrap(), found.stderr)
}

/// Changes a file, verifies, and restores the file.
fn verify_changed(folder: &Path, name: &str, change: impl Fn(&mut Vec<String>)) -> (Value, String) {
    let file = folder.join(name);
    let before = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let (code, report, message) = verify(folder);
    fs::write(&file, before).unwrap();
    assert_eq!((code, &report["ok"]), (Some(1), &Value::Bool(false)), "{report}");
    (report["break"].clone(), message)
}

#[test]
fn two_processes_write_one_chain_and_a_changed_or_removed_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "file = \"audit.log\"\nchain = true\nmax_bytes = 1000000\nkeep = 50");
    let writers = [(); 2].map(|()| {
        let path = folder.path().to_owned();
        thread::spawn(move || {
            // Each has a restart.
            for _ in 0..2 {
                let mut server = start(&path);
                call_many(&mut server, 2500);
                let exit = server.finish();
                assert_eq!(exit.code, Some(0), "{}", exit.log);
            }
        })
    });
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let names = log_names(folder.path());
    assert!(names.len() > 3, "the log was rotated: {names:?}");
    let (code, report, message) = verify(folder.path());
    assert_eq!(code, Some(0), "{report} {message}");
    let all: Vec<Value> = names.iter().flat_map(|it| lines(&folder.path().join(it))).collect();
    assert_eq!(report["lines"], all.len());
    assert_eq!(all.iter().filter(|line| line["method"] == "tools/call").count(), 10_000);
    let chains = report["chains"].as_array().unwrap();
    assert!(chains.len() == 1 && chains[0]["isWhole"] == true, "{report}");

    let (found, message) = verify_changed(folder.path(), &names[2], |lines| {
        lines[41] = lines[41].replacen("calculate", "calculatE", 1);
    });
    assert_eq!((&found["file"], &found["line"]), (&names[2].as_str().into(), &42.into()));
    assert!(message.contains(&format!("{}:42: the line was changed", names[2])), "{message}");
    let (found, _) = verify_changed(folder.path(), &names[1], |lines| drop(lines.remove(9)));
    assert_eq!((&found["file"], &found["line"]), (&names[1].as_str().into(), &10.into()));
    let (found, _) = verify_changed(folder.path(), &names[1], |lines| drop(lines.pop()));
    assert_eq!((&found["file"], &found["line"]), (&names[0].as_str().into(), &1.into()));

    // A removed end is found with a hash that is known.
    let newest = chains[0]["newest"].as_str().unwrap();
    let file = folder.path().join("audit.log");
    let text = fs::read_to_string(&file).unwrap();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let known = [&["verify", "--contains", newest], &words[..]].concat();
    assert_eq!(audit(folder.path(), &known).code, Some(0));
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&file, &text[..last]).unwrap();
    let without = [&["verify"], &words[..]].concat();
    assert_eq!(audit(folder.path(), &without).code, Some(0), "nothing shows the removed end");
    let found = audit(folder.path(), &known);
    assert_eq!(found.code, Some(1));
    assert!(found.stderr.contains("the end is missing"), "{}", found.stderr);
}

#[test]
fn the_newest_hash_is_an_event_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path(), "file = \"audit.log\"\nchain = true");
    let config = folder.path().join("creole.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}[log]\nlevel = \"info\"\n")).unwrap();
    let mut server = start(folder.path());
    call_many(&mut server, 3);
    let exit = server.finish();
    let (_, report, _) = verify(folder.path());
    let newest = report["chains"][0]["newest"].as_str().unwrap();
    assert!(exit.log.contains(newest), "{newest} is not in {}", exit.log);
}
