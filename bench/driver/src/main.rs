//! Takes one sample of one server: starts it, sends requests, checks every response, and prints the figures as
//! `name value` lines, which `cargo xtask bench` reads.
//!
//! ```text
//! bench-driver start ERA                            -- COMMAND [ARGUMENT…]
//! bench-driver load  ERA WINDOW WARMUP MEASURE CORE -- COMMAND [ARGUMENT…]
//! bench-driver batch ERA WINDOW COUNT               -- COMMAND [ARGUMENT…]
//! bench-driver http  ERA ASKED CONNECTIONS CROWD WARMUP MEASURE CORE [KEY] -- COMMAND [ARGUMENT…]
//! bench-driver idle  ERA KIND COUNT CORE            -- COMMAND [ARGUMENT…]
//! bench-driver relay ERA ASKED CONNECTIONS WARMUP MEASURE CORE ADDRESS -- COMMAND [ARGUMENT…]
//! bench-driver memory ERA SIZE CORE ADDRESS         -- COMMAND [ARGUMENT…]
//! bench-driver large stdio|http SIZE                --
//! ```
//!
//! The first three use a server on stdin and stdout. The others use a server on HTTP that prints its address on stderr.
//!
//! `start` measures the time to the first response. `load` measures throughput, processor time and memory. `batch`
//! makes COUNT calls, WINDOW at a time, and lets the server exit. It measures nothing, because the command is a
//! profiler around the server.
//!
//! `http` measures throughput, latency, processor time and memory with a request in flight on each of CONNECTIONS, with
//! at least CROWD sessions open. ASKED is `echo`, another tool's name, or `list:N` for a list of N tools. KEY is an API
//! key for the server. `idle` opens COUNT `streams` or `sessions` and measures memory.
//!
//! `relay` is `http` for a gateway that does not print its address: it listens at ADDRESS, which may have a path, when
//! it is ready. `memory` measures the memory of such a gateway while it forwards a result of SIZE bytes from the server
//! `large`.
//!
//! ERA is `legacy` or `modern`, WINDOW is the number of requests in flight, WARMUP and MEASURE are milliseconds, and
//! CORE is the core that the server is pinned to, or `any`.

mod dialect;
mod http;
mod large;
mod load;
mod server;
mod usage;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dialect::Era;
use load::Conversation;
use server::Server;

/// The timeout after which a silent server counts as dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same timeout for a server inside a profiler, which is about fifty times slower.
const PROFILER_PATIENCE: Duration = Duration::from_secs(60);

/// The time for a server to become idle before memory and processor time are read.
const SETTLE: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let end = arguments.iter().position(|a| a == "--").ok_or("missing `-- COMMAND`")?;
    let command = &arguments[end + 1..];
    let words: Vec<&str> = arguments[..end].iter().map(String::as_str).collect();
    match words.as_slice() {
        ["start", era] => start(Era::parse(era)?, command),
        ["load", era, window, warmup, measure, core] => load(
            &Load {
                era: Era::parse(era)?,
                window: number(window)?,
                warmup: Duration::from_millis(number(warmup)?),
                measure: Duration::from_millis(number(measure)?),
                core: (*core != "any").then_some(*core),
            },
            command,
        ),
        ["batch", era, window, count] => {
            batch(Era::parse(era)?, number(window)?, number(count)?, command)
        }
        ["http", era, asked, connections, crowd, warmup, measure, core, key @ ..]
            if key.len() < 2 =>
        {
            if let Some(key) = key.first() {
                // This is the only call of `set` in a run.
                let _ = http::KEY.set((*key).to_owned());
            }
            http::load(
                &http::Load {
                    era: Era::parse(era)?,
                    asked: http::Asked::parse(asked)?,
                    connections: number(connections)?,
                    crowd: number(crowd)?,
                    warmup: Duration::from_millis(number(warmup)?),
                    measure: Duration::from_millis(number(measure)?),
                    address: None,
                },
                &pinned((*core != "any").then_some(*core), command),
            )
        }
        ["relay", era, asked, connections, warmup, measure, core, address] => http::load(
            &http::Load {
                era: Era::parse(era)?,
                asked: http::Asked::parse(asked)?,
                connections: number(connections)?,
                crowd: 0,
                warmup: Duration::from_millis(number(warmup)?),
                measure: Duration::from_millis(number(measure)?),
                address: Some(place(address)?),
            },
            &pinned((*core != "any").then_some(*core), command),
        ),
        ["memory", era, size, core, address] => http::memory(
            Era::parse(era)?,
            number(size)?,
            address.parse().map_err(|_| format!("invalid address `{address}`"))?,
            &pinned((*core != "any").then_some(*core), command),
        ),
        ["large", "stdio", size] => large::serve_stdio(number(size)?),
        ["large", "http", size] => large::serve_http(number(size)?),
        ["idle", era, kind, count, core] => http::idle(
            Era::parse(era)?,
            http::Kind::parse(kind)?,
            number(count)?,
            &pinned((*core != "any").then_some(*core), command),
        ),
        _ => Err(format!("cannot read the arguments {words:?}: see the head of main.rs")),
    }
}

/// Prints the time from the start of the process to its first response.
fn start(era: Era, command: &[String]) -> Result<(), String> {
    let began = Instant::now();
    let mut server = Server::spawn(command, PATIENCE)?;
    let mut conversation = Conversation::new(era);
    let opened = conversation.first_answer(&mut server);
    let elapsed = began.elapsed();
    opened.map_err(|error| server.explain(&error))?;
    println!("nanoseconds {}", elapsed.as_nanos());
    Ok(())
}

/// The parameters of one load sample.
struct Load<'a> {
    era: Era,
    window: usize,
    warmup: Duration,
    measure: Duration,
    core: Option<&'a str>,
}

/// Prints throughput, processor time and memory of one server under load.
fn load(load: &Load<'_>, command: &[String]) -> Result<(), String> {
    let pinned = pinned(load.core, command);
    let mut server = Server::spawn(&pinned, load.warmup + load.measure + PATIENCE)?;
    sample(load, &mut server).map_err(|error| server.explain(&error))
}

fn sample(load: &Load<'_>, server: &mut Server) -> Result<(), String> {
    let mut conversation = Conversation::new(load.era);
    conversation.first_answer(server)?;
    conversation.finish_opening(server)?;
    std::thread::sleep(SETTLE);
    let idle = usage::memory(server.id())?.resident;

    conversation.run(server, load.window, load.warmup)?;
    std::thread::sleep(SETTLE);
    let before = usage::processor_time(server.id())?;
    let mut outcome = conversation.run(server, load.window, load.measure)?;
    std::thread::sleep(SETTLE);
    let after = usage::processor_time(server.id())?;
    let peak = usage::memory(server.id())?.peak;

    outcome.latencies.sort_unstable();
    println!("messages {}", outcome.latencies.len());
    println!("answered {}", outcome.latencies.len());
    println!("nanoseconds {}", outcome.elapsed.as_nanos());
    println!("middle_nanoseconds {}", http::percentile(&outcome.latencies, 50));
    println!("slow_nanoseconds {}", http::percentile(&outcome.latencies, 99));
    println!("processor_nanoseconds {}", after.since(&before).as_nanos());
    println!("idle_bytes {idle}");
    println!("peak_bytes {peak}");
    Ok(())
}

/// Makes `count` calls in batches of `window`. Each batch waits for the responses to the one before, so that two runs
/// execute the same instructions.
fn batch(era: Era, window: usize, count: usize, command: &[String]) -> Result<(), String> {
    let mut server = Server::spawn(command, PROFILER_PATIENCE)?;
    let mut conversation = Conversation::new(era);
    let mut talk = || {
        conversation.first_answer(&mut server)?;
        conversation.finish_opening(&mut server)?;
        for _ in 0..count / window {
            conversation.run(&mut server, window, Duration::ZERO)?;
        }
        server.close()
    };
    let talked = talk();
    talked.map_err(|error| server.explain(&error))
}

/// The command prefix that pins a process to a core, if one is given.
fn pinned(core: Option<&str>, command: &[String]) -> Vec<String> {
    let mut pinned = Vec::new();
    if let Some(core) = core {
        pinned.extend(["taskset", "-c", core].map(String::from));
    }
    pinned.extend_from_slice(command);
    pinned
}

/// Parses an address. Its path, if it has one, is the path of the endpoint.
fn place(text: &str) -> Result<SocketAddr, String> {
    let (address, path) = text.split_once('/').map_or((text, None), |(it, path)| (it, Some(path)));
    if let Some(path) = path {
        // This is the only call of `set` in a run.
        let _ = http::PATH.set(format!("/{path}"));
    }
    address.parse().map_err(|_| format!("invalid address `{text}`"))
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number"))
}
