//! Resolves a tool that calls a service over HTTP.

use std::path::Path;

use creole_tools::recipe::http::{
    Auth, HttpRecipe, JsonTemplate, RequestMethod, ResponseFormat, ResponseOptions, check_template,
};
use creole_tools::recipe::secret::{Secret, SecretSource};
use creole_tools::recipe::template::Template;
use serde_json::Value;

use crate::plan::items::tools::argument_uses::{ArgumentUses, ValueContext};
use crate::plan::items::tools::resolve_file;
use crate::plan::upstream::{endpoint_url, header};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::enums::{HttpMethod, ResponseForm};
use crate::tables::tools::{HttpAuthTable, HttpToolTable};

/// Headers that the transport writes itself.
pub(crate) const OWN_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The maximum depth of a body.
const MAX_DEPTH: usize = 32;

/// The service of a tool.
pub(crate) fn resolve(
    table: HttpToolTable,
    is_idempotent: bool,
    uses: &mut ArgumentUses<'_>,
    folder: &Path,
) -> Result<HttpRecipe, ConfigProblem> {
    let method = request_method(table.method.unwrap_or(HttpMethod::Get));
    if let (RequestMethod::Get, Some(body)) = (method, &table.body) {
        return Err(ConfigProblem::new("a `GET` request has no `body`")
            .help("add a `method`, or use `query`")
            .at(body.span.clone()));
    }
    let retries = match table.retries {
        None if method == RequestMethod::Get => 2,
        None => 0,
        Some(Spanned { value, span }) => {
            let retries = value.get();
            if retries > 0 && !method.is_idempotent() && !is_idempotent {
                return Err(ConfigProblem::new("`retries` needs an idempotent tool")
                    .help("remove `retries`, or set `idempotent = true`")
                    .at(span));
            }
            u32::try_from(retries).unwrap_or_default()
        }
    };
    if table.template.is_some() {
        uses.mark_all_used();
    }
    Ok(HttpRecipe {
        method,
        url: url(table.url, uses)?,
        query: query(table.query, uses)?,
        headers: headers(table.headers, uses)?,
        body: table.body.map(|body| whole_body(&body, uses)).transpose()?,
        auth: table.auth.map(|table| auth(table, folder)).transpose()?,
        retries,
        allow_private: table.allow_private.unwrap_or(false),
        response: response_options(table.pick, table.template, table.result)?,
    })
}

pub(crate) fn request_method(word: HttpMethod) -> RequestMethod {
    match word {
        HttpMethod::Get => RequestMethod::Get,
        HttpMethod::Post => RequestMethod::Post,
        HttpMethod::Put => RequestMethod::Put,
        HttpMethod::Patch => RequestMethod::Patch,
        HttpMethod::Delete => RequestMethod::Delete,
    }
}

/// A URL whose host is fixed by the configuration.
fn url(value: Spanned<String>, uses: &mut ArgumentUses<'_>) -> Result<Template, ConfigProblem> {
    let span = value.span.clone();
    let template = uses.template_at(&value, ValueContext::Scalar)?;
    endpoint_url(value)?;
    let host = template.literal_prefix().split_once("://").map_or("", |(_, rest)| rest);
    let is_whole = host.contains(['/', '?']) || template.literal().is_some();
    let error = if !is_whole {
        ConfigProblem::new("the host cannot contain a placeholder: callers would choose the server")
            .help(
                "write the host without placeholders; they are allowed after the first `/` of \
                the path",
            )
    } else if !uses.is_always_filled(&template) {
        ConfigProblem::new("a placeholder in a URL needs a value in every call")
            .help("make the argument required, add a `default`, or move it to `query`")
    } else {
        return Ok(template);
    };
    Err(error.at(span))
}

fn query(
    written: Option<Entries<Spanned<String>>>,
    uses: &mut ArgumentUses<'_>,
) -> Result<Vec<(String, Template)>, ConfigProblem> {
    let entries = written.map(|written| written.0).unwrap_or_default().into_iter();
    let entry = |(name, value): (Spanned<String>, Spanned<String>)| {
        Ok((name.value, uses.template_at(&value, ValueContext::ListAlone)?))
    };
    entries.map(entry).collect()
}

fn headers(
    written: Option<Entries<Spanned<String>>>,
    uses: &mut ArgumentUses<'_>,
) -> Result<Vec<(String, Template)>, ConfigProblem> {
    let entries = written.map(|written| written.0).unwrap_or_default().into_iter();
    let entry = |(name, value): (Spanned<String>, Spanned<String>)| {
        let template = uses.template_at(&value, ValueContext::Scalar)?;
        Ok((header((name, value), &OWN_HEADERS)?.0, template))
    };
    entries.map(entry).collect()
}

fn whole_body(
    value: &Spanned<Value>,
    uses: &mut ArgumentUses<'_>,
) -> Result<JsonTemplate, ConfigProblem> {
    body(&value.value, uses, MAX_DEPTH).map_err(|problem| problem.at(value.span.clone()))
}

fn body(
    value: &Value,
    uses: &mut ArgumentUses<'_>,
    deepest: usize,
) -> Result<JsonTemplate, ConfigProblem> {
    let Some(deeper) = deepest.checked_sub(1) else {
        return Err(ConfigProblem::new(format!("`body` is deeper than {MAX_DEPTH} levels")));
    };
    match value {
        Value::String(text) => uses.template(text, ValueContext::Any).map(JsonTemplate::Text),
        Value::Array(items) => {
            let items = items.iter().map(|item| body(item, uses, deeper));
            Ok(JsonTemplate::List(items.collect::<Result<_, _>>()?))
        }
        Value::Object(members) => {
            let member =
                |(key, value): (&String, &Value)| Ok((key.clone(), body(value, uses, deeper)?));
            Ok(JsonTemplate::Object(
                members.iter().map(member).collect::<Result<_, ConfigProblem>>()?,
            ))
        }
        other => Ok(JsonTemplate::Plain(other.clone())),
    }
}

pub(crate) fn auth(item: Spanned<HttpAuthTable>, folder: &Path) -> Result<Auth, ConfigProblem> {
    let Spanned { value: table, span } = item;
    let held = |here: Option<Spanned<String>>, file: Option<Spanned<String>>, key: &str| match (
        here, file,
    ) {
        (Some(here), None) => Ok(Some(SecretSource::Inline(Secret(secret(here)?)))),
        (None, Some(file)) => {
            resolve_file(folder, key, file).map(|path| Some(SecretSource::File(path)))
        }
        (None, None) => Ok(None),
        (Some(_), Some(file)) => Err(ConfigProblem::new(
            "a secret and its `_file` key exclude each other; remove one of them",
        )
        .at(file.span)),
    };
    let bearer = held(table.bearer, table.bearer_file, "bearer_file")?;
    let password = held(table.password, table.password_file, "password_file")?;
    let value = held(table.value, table.value_file, "value_file")?;
    match (bearer, table.user, password, table.header, value) {
        (Some(token), None, None, None, None) => Ok(Auth::Bearer(token)),
        (None, Some(user), Some(password), None, None) => basic_auth(user, password),
        (None, None, None, Some(name), Some(value)) => {
            let empty = Spanned { value: String::new(), span: name.span.clone() };
            Ok(Auth::Header { name: header((name, empty), &OWN_HEADERS)?.0, value })
        }
        _ => Err(ConfigProblem::new("the keys of `auth` do not form one kind of credentials")
            .help(
                "use `bearer`, or `user` and `password`, or `header` and `value`; a key that \
                ends in `_file` reads a secret from a file",
            )
            .at(span)),
    }
}

fn basic_auth(user: Spanned<String>, password: SecretSource) -> Result<Auth, ConfigProblem> {
    let Spanned { value: user, span } = user;
    if user.contains(':') || user.chars().any(char::is_control) {
        return Err(ConfigProblem::new("`user` contains a colon or a control character").at(span));
    }
    Ok(Auth::Basic { user, password })
}

/// A secret that is valid in a header.
fn secret(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let invalid = if value.is_empty() {
        "the secret is empty"
    } else if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        "the secret contains a character that is not allowed in a header"
    } else {
        return Ok(value);
    };
    Err(ConfigProblem::new(invalid).at(span).hide_value())
}

fn response_options(
    pick: Option<Spanned<String>>,
    template: Option<Spanned<String>>,
    form: Option<ResponseForm>,
) -> Result<ResponseOptions, ConfigProblem> {
    if let Some(Spanned { value, span }) = &pick
        && !value.starts_with('/')
    {
        return Err(ConfigProblem::new(format!("invalid JSON pointer `{value}`"))
            .help("begin it with `/`, such as `/items/0/name`")
            .at(span.clone()));
    }
    if let Some(Spanned { value, span }) = &template {
        check_template(value).map_err(|problem| {
            ConfigProblem::new(format!("invalid template: {problem}")).at(span.clone())
        })?;
    }
    let form = match form {
        None => ResponseFormat::Auto,
        Some(ResponseForm::Text) => ResponseFormat::Text,
        Some(ResponseForm::Json) => ResponseFormat::Json,
    };
    Ok(ResponseOptions {
        pick: pick.map(|pick| pick.value),
        template: template.map(|template| template.value),
        format: form,
    })
}
