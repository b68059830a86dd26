//! The referee of the skills extension (SEP-2640), whose results are in no revision's schema.
//!
//! They are checked against the extension's document. The resources of a directory are checked against the revision,
//! like a list of resources.

use creole::proto::method::Method;
use creole::proto::revision::Revision;
use serde_json::{Value, json};

use super::{ServerMessageKind, schema, types};

const METHODS: [Method; 3] = [Method::ListSkills, Method::GetSkill, Method::ReadDirectory];
const MOST_FILES: usize = 512;
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Whether a message is a response of the extension.
pub(super) fn is_of(revision: Revision, kind: ServerMessageKind<'_>) -> bool {
    let ServerMessageKind::Answer { method, .. } = kind else { return false };
    METHODS.iter().any(|own| own.name() == method && revision.rules().methods.contains(*own))
}

/// Checks one response of the extension.
pub(super) fn check_skills(revision: Revision, kind: ServerMessageKind<'_>) -> Result<(), String> {
    let ServerMessageKind::Answer { method, result } = kind else { return Ok(()) };
    if result["resultType"] != "complete" {
        return Err("`resultType` must be \"complete\"".to_owned());
    }
    if !result["nextCursor"].is_null() && !result["nextCursor"].is_string() {
        return Err("`nextCursor` must be a string".to_owned());
    }
    match method {
        "skills/list" => {
            check_members(
                result,
                &["resultType", "skills", "nextCursor", "ttlMs", "cacheScope", "_meta"],
            )?;
            check_cache(result)?;
            list(result, "skills")?.iter().try_for_each(check_skill)
        }
        "skills/get" => {
            check_members(result, &["resultType", "skill", "ttlMs", "cacheScope", "_meta"])?;
            check_cache(result)?;
            check_skill(&result["skill"])
        }
        _ => check_directory(revision, result),
    }
}

fn check_directory(revision: Revision, result: &Value) -> Result<(), String> {
    check_members(result, &["resultType", "resources", "nextCursor", "_meta"])?;
    // With the cache members of a list of resources, it is one.
    let mut listed = result.clone();
    (listed["ttlMs"], listed["cacheScope"]) = (json!(0), json!("private"));
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": &listed});
    let kind = ServerMessageKind::Answer { method: "resources/list", result: &listed };
    types::check_types(revision, kind, &message)?;
    schema::check_schema(revision, kind, &message)
}

fn check_cache(result: &Value) -> Result<(), String> {
    let is_whole = result["ttlMs"].is_u64()
        && ["public", "private"].map(Value::from).contains(&result["cacheScope"]);
    if is_whole { Ok(()) } else { Err("`ttlMs` and `cacheScope` are missing or wrong".to_owned()) }
}

fn check_skill(skill: &Value) -> Result<(), String> {
    check_members(skill, &["uri", "frontmatter", "resources"])?;
    let uri = skill["uri"].as_str().ok_or("a skill has no `uri`")?;
    let folder = uri.strip_suffix("/SKILL.md").ok_or("the uri of a skill ends with /SKILL.md")?;
    let front = &skill["frontmatter"];
    for key in ["name", "description"] {
        if front[key].as_str().is_none_or(str::is_empty) {
            return Err(format!("{uri}: the front matter has no `{key}`"));
        }
    }
    if folder.rsplit('/').next() != front["name"].as_str() {
        return Err(format!("{uri}: the folder and the skill have different names"));
    }
    let files = list(skill, "resources")?;
    let (mut seen, mut total) = (Vec::new(), 0);
    for file in files {
        check_members(file, &["uri", "digest", "size"])?;
        let location = file["uri"].as_str().ok_or("a file has no `uri`")?;
        if !location.starts_with(&format!("{folder}/")) || seen.contains(&location) {
            return Err(format!("{uri}: {location} is outside of the skill or listed twice"));
        }
        let digest = file["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        let is_hex =
            |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !digest.is_some_and(|hex| hex.len() == 64 && is_hex(hex)) {
            return Err(format!("{location}: `digest` is not `sha256:` and 64 hexadecimal digits"));
        }
        seen.push(location);
        total += file["size"].as_u64().ok_or("a file has no `size`")?;
    }
    if !seen.contains(&uri) || files.len() > MOST_FILES || total > MOST_BYTES {
        return Err(format!("{uri}: SKILL.md is not among the files, or the skill is too large"));
    }
    Ok(())
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    value[key].as_array().map(Vec::as_slice).ok_or_else(|| format!("`{key}` is not a list"))
}

fn check_members(value: &Value, allowed: &[&str]) -> Result<(), String> {
    let members = value.as_object().ok_or("it must be an object")?;
    match members.keys().find(|key| !allowed.contains(&key.as_str())) {
        None => Ok(()),
        Some(stranger) => Err(format!("`{stranger}` does not belong here")),
    }
}
