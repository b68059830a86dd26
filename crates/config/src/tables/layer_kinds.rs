//! Rewrites `kind = "timeout"` in a table of a chain so that the TOML reader can select the type of the layer.
//!
//! A table that is selected by one of its own keys would be buffered by serde, and its values would lose their
//! positions. So the document is changed before it is read: `{ kind = "timeout", seconds = 5 }` becomes
//! `{ timeout = { seconds = 5 } }`, and every position is kept.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::tables::chain::LAYER_KINDS;

/// Rewrites each table of each chain of the document.
pub(crate) fn tag_layer_kinds(document: &mut DeTable<'_>) -> Result<(), ConfigProblem> {
    for (key, value) in document.iter_mut() {
        match (&**key.get_ref(), value.get_mut()) {
            ("server", DeValue::Table(server)) => tag_in_table(server)?,
            ("servers", DeValue::Array(servers)) => {
                for server in servers.iter_mut() {
                    tag_in_value(server.get_mut())?;
                }
            }
            ("upstreams", DeValue::Table(upstreams)) => {
                for (_, upstream) in upstreams.iter_mut() {
                    tag_in_value(upstream.get_mut())?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn tag_in_value(value: &mut DeValue<'_>) -> Result<(), ConfigProblem> {
    match value {
        DeValue::Table(table) => tag_in_table(table),
        // Invalid values are reported when the document is read.
        _ => Ok(()),
    }
}

/// Rewrites the tables in the chain of a server or an upstream.
fn tag_in_table(table: &mut DeTable<'_>) -> Result<(), ConfigProblem> {
    let chain = table.iter_mut().find(|(key, _)| key.get_ref() == "chain");
    let Some((_, chain)) = chain else { return Ok(()) };
    let DeValue::Array(layers) = chain.get_mut() else { return Ok(()) };
    for layer in layers.iter_mut() {
        let span = layer.span();
        let DeValue::Table(options) = layer.get_mut() else { continue };
        let kind = take_kind(options).map_err(|problem| problem.or_at(span.clone()))?;
        let options = std::mem::take(options);
        let mut folded = DeTable::new();
        folded.insert(kind, Spanned::new(span, DeValue::Table(options)));
        *layer.get_mut() = DeValue::Table(folded);
    }
    Ok(())
}

/// Removes the kind from a table and returns it.
fn take_kind<'a>(options: &mut DeTable<'a>) -> Result<Spanned<Cow<'a, str>>, ConfigProblem> {
    let key = options.keys().find(|key| key.get_ref() == "kind").cloned();
    let found = key.and_then(|key| options.remove(&key));
    let help =
        || format!("write `kind = \"…\"`; {}", suggestion("", "the known kinds", &LAYER_KINDS));
    match found.map(|kind| (kind.span(), kind.into_inner())) {
        None => Err(ConfigProblem::new("`kind` is missing").help(help())),
        Some((span, DeValue::String(kind))) => {
            if LAYER_KINDS.contains(&&*kind) {
                return Ok(Spanned::new(span, kind));
            }
            let text = suggestion(&kind, "the known kinds", &LAYER_KINDS);
            Err(ConfigProblem::new(format!("unknown kind of layer `{kind}`")).help(text).at(span))
        }
        Some((span, _)) => {
            Err(ConfigProblem::new("expected a string in quotes").help(help()).at(span))
        }
    }
}
