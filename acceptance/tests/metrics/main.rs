//! The metrics of the real binary, judged by `promtool` and by a Prometheus that scrapes it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod bounds;
mod gateway;
mod requests;
mod rules;
mod scraped;

use std::collections::BTreeSet;

/// The names of the metrics in a scrape.
fn names(scrape: &str) -> BTreeSet<&str> {
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.filter_map(|line| line.split(' ').next()).collect()
}

/// The lines of a metric's samples.
fn samples<'a>(scrape: &'a str, name: &'a str) -> Vec<&'a str> {
    let is_it =
        move |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    scrape.lines().filter(is_it).collect()
}

/// The value of the only sample with these labels.
#[track_caller]
fn value(scrape: &str, name: &str, labels: &[&str]) -> f64 {
    let all = samples(scrape, name);
    let found: Vec<_> =
        all.iter().filter(|line| labels.iter().all(|label| line.contains(label))).collect();
    let [only] = found.as_slice() else { panic!("{name} {labels:?}: {all:#?}") };
    only.rsplit(' ').next().unwrap().parse().unwrap()
}
