//! `kind = "timeout"` in a table of a chain: the reader of TOML is told which table that makes it.
//!
//! A table that is chosen by one of its own keys would have to be read twice, and its values would lose
//! their places in between. So the document is changed before it is read: `{ kind = "timeout", seconds = 5 }`
//! becomes `{ timeout = { seconds = 5 } }`, with every place kept.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::chain::KINDS;
use super::error::Problem;
use super::nearest::suggestion;

/// Changes each table of each chain of the document.
pub(crate) fn fold(document: &mut DeTable<'_>) -> Result<(), Problem> {
    for (key, value) in document.iter_mut() {
        match (&**key.get_ref(), value.get_mut()) {
            ("server", DeValue::Table(server)) => fold_in(server)?,
            ("servers", DeValue::Array(servers)) => {
                for server in servers.iter_mut() {
                    fold_below(server.get_mut())?;
                }
            }
            ("upstreams", DeValue::Table(upstreams)) => {
                for (_, upstream) in upstreams.iter_mut() {
                    fold_below(upstream.get_mut())?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn fold_below(value: &mut DeValue<'_>) -> Result<(), Problem> {
    match value {
        DeValue::Table(table) => fold_in(table),
        // What is wrong with it is said when it is read.
        _ => Ok(()),
    }
}

/// Changes the tables of the chain of a server or an upstream.
fn fold_in(table: &mut DeTable<'_>) -> Result<(), Problem> {
    let chain = table.iter_mut().find(|(key, _)| key.get_ref() == "chain");
    let Some((_, chain)) = chain else { return Ok(()) };
    let DeValue::Array(layers) = chain.get_mut() else { return Ok(()) };
    for layer in layers.iter_mut() {
        let span = layer.span();
        let DeValue::Table(options) = layer.get_mut() else { continue };
        let kind = take_kind(options).map_err(|problem| problem.at_least(span.clone()))?;
        let options = std::mem::take(options);
        let mut folded = DeTable::new();
        folded.insert(kind, Spanned::new(span, DeValue::Table(options)));
        *layer.get_mut() = DeValue::Table(folded);
    }
    Ok(())
}

/// Takes the kind out of a table.
fn take_kind<'a>(options: &mut DeTable<'a>) -> Result<Spanned<Cow<'a, str>>, Problem> {
    let key = options.keys().find(|key| key.get_ref() == "kind").cloned();
    let found = key.and_then(|key| options.remove(&key));
    let help = || format!("write `kind = \"…\"`; {}", suggestion("", "the kinds", &KINDS));
    match found.map(|kind| (kind.span(), kind.into_inner())) {
        None => Err(Problem::new("`kind` is missing").help(help())),
        Some((span, DeValue::String(kind))) => {
            if KINDS.contains(&&*kind) {
                return Ok(Spanned::new(span, kind));
            }
            let said = suggestion(&kind, "the kinds", &KINDS);
            Err(Problem::new(format!("unknown kind of layer `{kind}`")).help(said).at(span))
        }
        Some((span, _)) => Err(Problem::new("expected a word in quotes").help(help()).at(span)),
    }
}
