//! A short run of every fuzz target on a stable toolchain, with the same inputs each time, derived from the seeds.
//!
//! `smoke [iterations per target] [seed]`. It mutates without coverage feedback, so it only guards against simple
//! regressions. libFuzzer finds new defects.

use std::error::Error;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;

use creole_fuzz::TARGETS;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let iterations: u64 = arguments.next().map_or(Ok(20_000), |number| number.parse())?;
    let seed: u64 = arguments.next().map_or(Ok(1), |number| number.parse())?;
    for (name, check) in TARGETS {
        let seeds = seeds(name)?;
        let mut mutator = Mutator { dice: seed, seeds: &seeds };
        let mutants = (0..iterations).map(|_| mutator.mutant());
        for input in seeds.iter().cloned().chain(mutants) {
            if catch_unwind(|| check(&input)).is_err() {
                eprintln!("{name} failed on b\"{}\"", input.escape_ascii());
                return Ok(ExitCode::FAILURE);
            }
        }
        println!("{name}: {} seeds, {iterations} mutants", seeds.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// The seed files of one target, sorted by name so that runs are reproducible.
fn seeds(target: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut paths = Vec::new();
    for entry in directory.read_dir()? {
        paths.push(entry?.path());
    }
    paths.sort();
    let seeds = paths.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    if seeds.is_empty() {
        return Err(format!("no seeds in {}", directory.display()).into());
    }
    Ok(seeds)
}

struct Mutator<'a> {
    dice: u64,
    seeds: &'a [Vec<u8>],
}

impl Mutator<'_> {
    fn mutant(&mut self) -> Vec<u8> {
        let seeds = self.seeds;
        let mut input = seeds[self.roll(seeds.len())].clone();
        for _ in 0..self.roll(6) {
            self.mutate(&mut input);
        }
        input.truncate(4096);
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let start = self.roll(input.len() + 1);
        let end = start + self.roll((input.len() - start + 1).min(32));
        match self.roll(6) {
            0 => drop(input.drain(start..end)),
            1 => input.insert(start, self.dice as u8),
            2 => {
                let token = TOKENS[self.roll(TOKENS.len())];
                input.splice(start..start, token.iter().copied());
            }
            3 => {
                let copy = input[start..end].to_vec();
                let place = self.roll(input.len() + 1);
                input.splice(place..place, copy);
            }
            4 => {
                let other = &self.seeds[self.roll(self.seeds.len())];
                let from = self.roll(other.len() + 1);
                input.splice(start..end, other[from..].iter().copied());
            }
            _ => input[start..end].iter_mut().for_each(|byte| *byte ^= 1 << (self.dice % 8)),
        }
    }

    /// A number below `sides`, by SplitMix64.
    fn roll(&mut self, sides: usize) -> usize {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }
}

/// The tokens of the grammars. A single changed byte rarely passes the first check.
const TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\\u0069d",
    b"\\ud83d\\ude00",
    b"\\udc00",
    b"\"id\":1,",
    b"\"a\":null,",
    b"1e400",
    b"-0",
    b"0.5",
    b"true",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\t",
    b"\0",
    b"Bearer ",
    b"scope=",
    b"STATE",
    b"&state=",
    b"%2F",
    b"\"kid\":\"a\",",
    b"e30",
    b"data: ",
    b"id:",
    b"event:",
    b"retry: 9",
    b":",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"\xff",
];
