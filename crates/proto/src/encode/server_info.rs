//! Encodes the results of `initialize` and `server/discover`.

use alloc::vec::Vec;

use super::{
    write_comma, write_data, write_foreign_key, write_key, write_raw_member, write_text_member,
};
use crate::dialect::{CapabilityShape, Dialect};
use crate::method::Method;
use crate::model::{SKILLS_EXTENSION, ServerCapabilities, TASKS_EXTENSION};
use crate::operation::ServerInfo;
use crate::revision::{Opening, Rules, TaskModel};
use crate::wire::quote;

/// Writes the members of the `initialize` or `server/discover` result
/// (2025-11-25 schema, `InitializeResult`; 2026-07-28 schema, `DiscoverResult`).
pub(super) fn write_server_info(
    out: &mut Vec<u8>,
    card: &ServerInfo,
    version: &str,
    dialect: &Dialect,
    rules: &Rules,
) {
    match rules.opening {
        Opening::Initialize => {
            write_text_member(out, "protocolVersion", version);
            write_capabilities(out, &card.capabilities, dialect, rules);
            write_key(out, "serverInfo");
            write_data(out, &*card.identity);
        }
        Opening::Discover => {
            write_key(out, "supportedVersions");
            out.push(b'[');
            for revision in dialect.revisions() {
                write_comma(out);
                quote(out, revision.rules().name);
            }
            out.push(b']');
            write_capabilities(out, &card.capabilities, dialect, rules);
        }
    }
    if let Some(instructions) = &card.instructions {
        write_text_member(out, "instructions", instructions);
    }
}

fn write_capabilities(
    out: &mut Vec<u8>,
    has: &ServerCapabilities,
    dialect: &Dialect,
    rules: &Rules,
) {
    write_key(out, "capabilities");
    out.push(b'{');
    let shown = |name: &str, has: bool| dialect.shows_capability(name, has);
    if shown("tools", has.tools) {
        write_capability(out, "tools", &[("listChanged", has.list_changed)], dialect);
    }
    if shown("resources", has.resources) {
        let details = [("subscribe", has.subscribe), ("listChanged", has.list_changed)];
        write_capability(out, "resources", &details, dialect);
    }
    if shown("prompts", has.prompts) {
        write_capability(out, "prompts", &[("listChanged", has.list_changed)], dialect);
    }
    if shown("completions", has.completions && rules.completions_capability) {
        write_capability(out, "completions", &[], dialect);
    }
    if shown("logging", has.logging) {
        write_capability(out, "logging", &[], dialect);
    }
    write_tasks(out, has, dialect, rules);
    write_extensions(out, has, dialect, rules);
    if let CapabilityShape::Flags(further) = &dialect.capabilities {
        for (name, value) in further.iter() {
            write_foreign_key(out, name);
            out.extend_from_slice(if *value { b"true" } else { b"false" });
        }
    }
    out.push(b'}');
}

/// Writes the capability for tasks. It is an own member in 2025-11-25 and an extension in 2026-07-28.
fn write_tasks(out: &mut Vec<u8>, has: &ServerCapabilities, dialect: &Dialect, rules: &Rules) {
    if dialect.has_tasks(rules) && has.tasks && rules.tasks == TaskModel::ClientRequested {
        let all = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;
        write_raw_member(out, "tasks", all);
    }
}

/// Writes the extensions that the server has and that these rules support, each with its settings.
fn write_extensions(out: &mut Vec<u8>, has: &ServerCapabilities, dialect: &Dialect, rules: &Rules) {
    let tasks = dialect.has_tasks(rules) && has.tasks && rules.tasks == TaskModel::Extension;
    let skills = rules.methods.contains(Method::ListSkills)
        && dialect.shows_capability("skills", has.skills);
    let all =
        [(TASKS_EXTENSION, tasks, "{}"), (SKILLS_EXTENSION, skills, r#"{"directoryRead":true}"#)];
    if all.iter().all(|(_, is_shown, _)| !is_shown) {
        return;
    }
    write_key(out, "extensions");
    out.push(b'{');
    for (name, _, settings) in all.iter().filter(|(_, is_shown, _)| *is_shown) {
        write_raw_member(out, name, settings);
    }
    out.push(b'}');
}

fn write_capability(
    out: &mut Vec<u8>,
    name: &'static str,
    details: &[(&'static str, bool)],
    dialect: &Dialect,
) {
    match &dialect.capabilities {
        CapabilityShape::Flags(_) => write_raw_member(out, name, "true"),
        CapabilityShape::Plain => write_raw_member(out, name, "{}"),
        CapabilityShape::Detailed => {
            write_key(out, name);
            out.push(b'{');
            for (detail, _) in details.iter().filter(|(_, holds)| *holds) {
                write_raw_member(out, detail, "true");
            }
            out.push(b'}');
        }
    }
}
