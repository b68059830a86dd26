//! Plays every transcript on each stage: the pure machine, in memory, the binary over stdio and over HTTP.
//!
//! `TRANSCRIPT=bossman/ping` plays only the files whose path contains the text. `UPDATE=1` rewrites the expected lines
//! that do not match, for review.

#![allow(clippy::print_stdout, reason = "played and skipped files are printed")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use creole_acceptance::referee::Referee;
use creole_acceptance::stage::http::HttpStage;
use creole_acceptance::stage::machine::MachineStage;
use creole_acceptance::stage::memory::MemoryStage;
use creole_acceptance::stage::service::service;
use creole_acceptance::stage::stdio::{StdioChild, repository};
use creole_acceptance::stage::{Stage, http, machine, memory, stdio};
use creole_acceptance::transcript;
use creole_acceptance::transcript::Transcript;

const WORKERS: usize = 4;

#[test]
fn every_transcript_passes_on_the_machine_driver() {
    hold_on(machine::NAME);
}

#[test]
fn every_transcript_passes_in_memory() {
    hold_on(memory::NAME);
}

#[test]
fn every_transcript_passes_over_stdio() {
    stdio::binary().expect("the binary under test");
    hold_on(stdio::NAME);
}

#[test]
fn every_transcript_passes_over_http() {
    stdio::binary().expect("the binary under test");
    hold_on(http::NAME);
}

/// The front of the chain must follow its document, wherever the tools are. Here they are those of an external server,
/// which uses the specification's dialect and does not know the front.
#[test]
fn every_transcript_of_the_chain_passes_through_the_chain() {
    let folder = root().join("seeds/001-mcp-chain");
    let files: Vec<PathBuf> = all().into_iter().filter(|file| file.starts_with(&folder)).collect();
    assert!(files.len() > 20, "{}", files.len());
    let failures: Vec<String> =
        files.iter().filter_map(|file| play_through_the_chain(file).err()).collect();
    assert!(failures.is_empty(), "\n\n{}", failures.join("\n"));
}

fn play_through_the_chain(file: &Path) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let transcript = Transcript::load(file).map_err(|error| error.to_string())?;
    let [config] = transcript.server() else {
        return Err(format!("{}: one configuration was expected", file.display()));
    };
    let text = fs::read_to_string(repository().join(config)).map_err(told)?;
    let of_kind = |stored: &str| -> String {
        let kept: Vec<&str> = stored.split(',').collect();
        let is_kept = |line: &&str| kept.iter().any(|key| line.starts_with(key));
        text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
    };
    let data = tempfile::tempdir().map_err(told)?;
    let (front, external) = (data.path().join("front.toml"), data.path().join("external.toml"));
    fs::write(&external, format!("[server]\n{}", of_kind("packs"))).map_err(told)?;
    let server = of_kind("name,version,dialect,page_size");
    let (binary, external) = (stdio::binary()?, external.display().to_string());
    let chained = format!(
        "[server]\n{server}[upstreams.external]\ncommand = [{:?}, \"serve\", {external:?}]\nprefix = \"\"\n\
         [[upstreams.external.chain]]\nkind = \"timeout\"\nseconds = 60\n",
        binary.display().to_string()
    );
    fs::write(&front, chained).map_err(told)?;
    let mut child = StdioChild::serve(&[front.display().to_string()])?;
    refereed(&transcript, &mut child).map(drop)
}

fn hold_on(stage: &str) {
    let files = selected();
    let outcomes = play_all(&files, stage);
    let (mut held, mut skipped) = (0, 0);
    let mut failures = Vec::new();
    for (file, outcome) in files.iter().zip(outcomes) {
        match outcome {
            Outcome::Held => held += 1,
            Outcome::Skipped(reason) => {
                skipped += 1;
                println!("skipped {}: {reason}", shown(file));
            }
            Outcome::Rewritten => println!("rewritten {}", shown(file)),
            Outcome::Failed(report) => failures.push(report),
        }
    }
    let (all, failed) = (files.len(), failures.len());
    println!("{stage}: {held} of {all} transcripts held, {failed} failed, {skipped} were skipped");
    assert!(failures.is_empty(), "\n\n{}", failures.join("\n"));
}

#[test]
fn every_transcript_has_prose_and_a_clause() {
    let files = all();
    assert!(!files.is_empty());
    let mistakes: Vec<String> = files
        .iter()
        .filter_map(|file| Transcript::load(file).err())
        .map(|error| error.to_string())
        .collect();
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[test]
fn every_seed_transcript_is_in_the_table_of_clauses() {
    let seeds = root().join("seeds");
    let table = fs::read_to_string(seeds.join("README.md")).unwrap();
    let written: Vec<PathBuf> = all().into_iter().filter(|file| file.starts_with(&seeds)).collect();
    let missing: Vec<String> = written
        .iter()
        .map(|file| file.strip_prefix(&seeds).unwrap().display().to_string())
        .filter(|name| !table.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in seeds/README.md:\n{}", missing.join("\n"));
    let links = table.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let dead: Vec<&str> = links.filter(|link| !seeds.join(link).is_file()).collect();
    assert!(
        dead.is_empty(),
        "seeds/README.md names files that are not there:\n{}",
        dead.join("\n")
    );
}

enum Outcome {
    Held,
    Rewritten,
    Skipped(String),
    Failed(String),
}

/// Plays a limited number of files at a time. The outcomes are in the order of the files.
fn play_all(files: &[PathBuf], stage: &str) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((file, run_transcript(file, stage)));
        }
        done
    };
    let mut outcomes: Vec<(&PathBuf, Outcome)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    outcomes.sort_by_key(|(file, _)| *file);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn run_transcript(file: &Path, name: &str) -> Outcome {
    let transcript = match Transcript::load(file) {
        Ok(transcript) => transcript,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    if let Some(reason) = transcript.skip(name) {
        return Outcome::Skipped(reason.to_owned());
    }
    if transcript.needs_fake_clock() && [stdio::NAME, http::NAME].contains(&name) {
        return Outcome::Skipped("it moves the clock, and a process has a real one".to_owned());
    }
    let played = prepared(&transcript, name).and_then(|(mut stage, _data)| {
        if name == stdio::NAME && env::var_os("UPDATE").is_some_and(|value| value == "1") {
            return rewrite(&transcript, &mut *stage);
        }
        refereed(&transcript, &mut *stage)
    });
    played.unwrap_or_else(Outcome::Failed)
}

/// Plays the exchange while a referee checks the server's messages. The first objection fails it.
fn refereed(transcript: &Transcript, stage: &mut dyn Stage) -> Result<Outcome, String> {
    let data = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut referee = Referee::new(&service(transcript.server(), data.path())?.profile().dialect);
    let mut problem = None;
    let mut observer = |direction, line: &str| {
        if let Err(reason) = referee.observe(direction, line) {
            problem.get_or_insert(reason);
        }
    };
    let played = transcript::run(transcript, stage, &mut observer);
    let file = transcript.file().display();
    match (played, problem) {
        (Ok(()), None) => Ok(Outcome::Held),
        (Ok(()), Some(reason)) => Err(format!("{file}: the referee objects\n{reason}\n")),
        (Err(failure), None) => Err(failure.to_string()),
        (Err(failure), Some(reason)) => {
            Err(format!("{failure}\nthe referee objects too\n{reason}\n"))
        }
    }
}

/// The stage of that name with the transcript's server, and the server's data directory.
fn prepared(
    transcript: &Transcript,
    name: &str,
) -> Result<(Box<dyn Stage>, tempfile::TempDir), String> {
    let data = tempfile::tempdir().map_err(|error| error.to_string())?;
    let stage: Box<dyn Stage> = match name {
        stdio::NAME => Box::new(StdioChild::serve(transcript.server())?),
        http::NAME => Box::new(HttpStage::serve(transcript.server())?),
        memory::NAME => {
            let service = service(transcript.server(), data.path())?;
            Box::new(MemoryStage::new(service, transcript.needs_fake_clock())?)
        }
        _ => Box::new(MachineStage::new(service(transcript.server(), data.path())?)?),
    };
    Ok((stage, data))
}

fn rewrite(transcript: &Transcript, stage: &mut dyn Stage) -> Result<Outcome, String> {
    match transcript::update(transcript, stage).map_err(|failure| failure.to_string())? {
        None => Ok(Outcome::Held),
        Some(text) => fs::write(transcript.file(), text)
            .map(|()| Outcome::Rewritten)
            .map_err(|error| error.to_string()),
    }
}

fn selected() -> Vec<PathBuf> {
    let wanted = env::var("TRANSCRIPT").unwrap_or_default();
    let files: Vec<PathBuf> =
        all().into_iter().filter(|file| shown(file).contains(&wanted)).collect();
    assert!(!files.is_empty(), "no transcript's path contains {wanted:?}");
    files
}

/// Every `.txt` file under `acceptance/transcripts`, in order.
fn all() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of transcripts") {
            let path = entry.expect("an entry of the folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn root() -> PathBuf {
    repository().join("acceptance/transcripts")
}

fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}
