//! Resolves the tables of OpenAPI services. Their documents are read here, so that errors are reported at startup.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use creole_tools::openapi;
use creole_tools::openapi::security::client_credentials::ClientCredentials;
use creole_tools::openapi::{
    ApiError, ApiSettings, DocumentSource, OperationOverride, SchemeSecret, Selector, SettingsPart,
};
use creole_tools::recipe::Recipe;
use creole_tools::recipe::http::{Auth, RequestMethod};
use creole_tools::recipe::secret::Secret;
use creole_tools::recipe::tool::ToolHints;

use crate::plan::items::tools::http::{OWN_HEADERS, auth, request_method};
use crate::plan::items::tools::{
    DEFAULT_OUTPUT_LIMIT, DEFAULT_TIMEOUT, description, own_name, resolve_file,
};
use crate::plan::upstream::{endpoint_url, header};
use crate::plan::{Plan, count, label, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::openapi::{OpenApiTable, OperationTable, SecurityTable};
use crate::tables::tools::HttpAuthTable;

/// The maximum length of a prefix, in bytes.
const MAX_PREFIX: usize = 32;

/// The positions of services and of their timeouts, by name.
#[derive(Default)]
pub(crate) struct ServiceSpans(Vec<(String, Range<usize>, Option<Range<usize>>)>);

/// The services, in the order of the file. Disabled ones are omitted, and their documents are not read.
pub(crate) fn resolve(
    tables: Option<Entries<OpenApiTable>>,
    folder: &Path,
) -> Result<(Vec<Recipe>, ServiceSpans), ConfigProblem> {
    let (mut recipes, mut described) = (Vec::new(), ServiceSpans::default());
    for (name, table) in tables.map(|tables| tables.0).unwrap_or_default() {
        let span = name.span.clone();
        let enabled = table.enabled.unwrap_or(true);
        let time = table.timeout_seconds.as_ref().map(|time| time.span.clone());
        described.0.push((name.value.clone(), span.clone(), time));
        let recipe =
            service(name, table, enabled, folder).map_err(|problem| problem.or_at(span))?;
        recipes.extend(recipe);
    }
    Ok((recipes, described))
}

impl ServiceSpans {
    /// Checks that no service has a longer timeout than its server, and that no two tools of a server have the same
    /// name.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), ConfigProblem> {
        for each in plan.split() {
            let mut owners: HashMap<&str, &str> = HashMap::new();
            for tool in each.offered_recipes().filter_map(Recipe::tool) {
                owners.insert(&tool.name, "tools");
            }
            for api in each.offered_recipes().filter_map(Recipe::api) {
                let written = self.0.iter().find(|(name, ..)| *name == api.name);
                let Some((_, span, time)) = written else { continue };
                let max = each.server.limits.call_timeout;
                if let Some(time) = time
                    && api.options.timeout > max
                {
                    let (name, max) = (&each.server.name, max.as_secs());
                    let help = "raise `call_timeout_seconds` in `limits` of the server, or lower \
                        the timeout here";
                    let message = format!(
                        "the timeout of `{name}` exceeds `call_timeout_seconds`, \
                        which is {max} s"
                    );
                    return Err(ConfigProblem::new(message).help(help).at(time.clone()));
                }
                for tool in api.tools.iter() {
                    if let Some(other) = owners.insert(&tool.name, &api.name) {
                        let message = format!("the tool `{}` also exists in `{other}`", tool.name);
                        let help = "add a `prefix`, or set another `name` for the operation";
                        return Err(ConfigProblem::new(message).help(help).at(span.clone()));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Plan {
    /// The names of the services whose documents could not be fetched, with the reasons.
    pub fn unfetched_documents(&self) -> impl Iterator<Item = (&str, &str)> {
        let apis = self.recipes.iter().filter_map(Recipe::api);
        apis.filter_map(|api| Some((api.name.as_str(), api.failure.as_deref()?)))
    }

    /// Takes over the previous tools of services whose documents could not be fetched now.
    pub fn reuse_documents(&mut self, before: &Self) {
        for recipe in &mut self.recipes {
            let Recipe::Api(api) = recipe else { continue };
            let Some(failure) = &api.failure else { continue };
            let known = before.recipes.iter().filter_map(Recipe::api);
            let same = |known: &&openapi::Api| {
                known.name == api.name && known.document == api.document && !known.tools.is_empty()
            };
            if let Some(known) = known.into_iter().find(same) {
                **api = openapi::Api { failure: Some(failure.clone()), ..known.clone() };
            }
        }
    }
}

/// The positions of the parts of a table.
struct TableSpans {
    document: Option<Range<usize>>,
    include: Vec<Range<usize>>,
    exclude: Vec<Range<usize>>,
    overrides: Vec<Range<usize>>,
    security: Vec<Range<usize>>,
}

impl TableSpans {
    fn new(table: &OpenApiTable) -> Self {
        let all = |list: &Option<Vec<Spanned<String>>>| {
            list.iter().flatten().map(|value| value.span.clone()).collect()
        };
        Self {
            document: table.file.as_ref().or(table.url.as_ref()).map(|value| value.span.clone()),
            include: all(&table.include),
            exclude: all(&table.exclude),
            overrides: keys(table.operations.as_ref()),
            security: keys(table.security.as_ref()),
        }
    }

    /// A problem of a document, at the position of the table that names it.
    fn locate(&self, error: ApiError) -> ConfigProblem {
        let span = match error.part {
            SettingsPart::Document => self.document.as_ref(),
            SettingsPart::Include(index) => self.include.get(index),
            SettingsPart::Exclude(index) => self.exclude.get(index),
            SettingsPart::Override(index) => self.overrides.get(index),
            SettingsPart::Security(index) => self.security.get(index),
        };
        let problem = match span {
            Some(span) => ConfigProblem::new(error.message).at(span.clone()),
            None => ConfigProblem::new(error.message),
        };
        match error.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}

fn keys<V>(entries: Option<&Entries<V>>) -> Vec<Range<usize>> {
    entries.iter().flat_map(|entries| &entries.0).map(|(key, _)| key.span.clone()).collect()
}

fn service(
    name: Spanned<String>,
    table: OpenApiTable,
    enabled: bool,
    folder: &Path,
) -> Result<Option<Recipe>, ConfigProblem> {
    let spans = TableSpans::new(&table);
    let document = document(table.file, table.url, folder)?;
    let defaults = ApiSettings::new(&own_name(name)?, document);
    if let (Some(_), Some(trust)) = (&table.base_url, &table.trust_servers)
        && trust.value
    {
        return Err(ConfigProblem::new("both `base_url` and `trust_servers` are set")
            .help("`base_url` takes precedence; remove `trust_servers`")
            .at(trust.span.clone()));
    }
    let settings = ApiSettings {
        base: table.base_url.map(base).transpose()?,
        trust_servers: table.trust_servers.is_some_and(|trust| trust.value),
        prefix: table.prefix.map(prefix).transpose()?.unwrap_or_default(),
        methods: table.methods.map_or(defaults.methods, |words| {
            words.into_iter().map(request_method).collect::<Vec<RequestMethod>>()
        }),
        include: selectors(table.include)?,
        exclude: selectors(table.exclude)?,
        deprecated: table.deprecated.unwrap_or(false),
        overrides: map_entries(table.operations, operation)?,
        security: map_entries(table.security, |table| security(table, folder))?,
        auth: table.auth.map(|table| auth(table, folder)).transpose()?,
        headers: headers(table.headers)?,
        retries: table
            .retries
            .map_or(defaults.retries, |times| u32::try_from(times.get()).unwrap_or_default()),
        allow_private: table.allow_private.unwrap_or(false),
        timeout: seconds(table.timeout_seconds.map_or(DEFAULT_TIMEOUT, |time| time.value.get())),
        max_result_bytes: count(table.output_limit_bytes.map_or(DEFAULT_OUTPUT_LIMIT, Ranged::get)),
        ..defaults
    };
    if !enabled {
        return Ok(None);
    }
    let api = openapi::read(&settings).map_err(|error| spans.locate(error))?;
    Ok(Some(Recipe::Api(Box::new(api))))
}

/// The location of the document.
fn document(
    file: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    folder: &Path,
) -> Result<DocumentSource, ConfigProblem> {
    let one = "add `file` with a file name, or `url` with a URL";
    match (file, url) {
        (Some(file), None) => resolve_file(folder, "file", file).map(DocumentSource::File),
        (None, Some(url)) => endpoint_url(url).map(DocumentSource::Url),
        (None, None) => {
            Err(ConfigProblem::new("the service has neither `file` nor `url`").help(one))
        }
        (Some(_), Some(url)) => {
            Err(ConfigProblem::new("the service has both `file` and `url`").help(one).at(url.span))
        }
    }
}

/// A base URL that paths can be appended to.
fn base(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let span = value.span.clone();
    let base = endpoint_url(value)?;
    match base.contains(['?', '{', '}', '\\']) {
        true => Err(ConfigProblem::new(format!("invalid base URL `{base}`"))
            .help("write it as `https://host` or `https://host/path`")
            .at(span)),
        false => Ok(base),
    }
}

fn prefix(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    match value.len() <= MAX_PREFIX && value.bytes().all(is_allowed) {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid prefix `{value}`"))
            .help(format!("use at most {MAX_PREFIX} letters, digits, `_`, `-` or `.`"))
            .at(span)),
    }
}

fn selectors(values: Option<Vec<Spanned<String>>>) -> Result<Vec<Selector>, ConfigProblem> {
    let selector = |Spanned { value, span }: Spanned<String>| match value.trim().is_empty() {
        true => Err(ConfigProblem::new("an empty pattern matches no operation").at(span)),
        false => Ok(Selector::new(&value)),
    };
    values.unwrap_or_default().into_iter().map(selector).collect()
}

/// Resolves each entry of a table.
fn map_entries<V, M>(
    entries: Option<Entries<V>>,
    meaning: impl Fn(V) -> Result<M, ConfigProblem>,
) -> Result<Vec<(String, M)>, ConfigProblem> {
    let entries = entries.map(|entries| entries.0).unwrap_or_default();
    let entry = |(name, value): (Spanned<String>, V)| {
        let meaning = meaning(value).map_err(|problem| problem.or_at(name.span))?;
        Ok((name.value, meaning))
    };
    entries.into_iter().map(entry).collect()
}

fn operation(table: OperationTable) -> Result<OperationOverride, ConfigProblem> {
    Ok(OperationOverride {
        name: table.name.map(own_name).transpose()?,
        title: label("title", table.title)?,
        about: table.description.as_ref().map(description).transpose()?,
        hints: ToolHints {
            read_only: table.read_only,
            destructive: table.destructive,
            idempotent: table.idempotent,
            open_world: table.open_world,
        },
    })
}

/// The secret of a scheme, with the same syntax as that of any service.
fn security(item: Spanned<SecurityTable>, folder: &Path) -> Result<SchemeSecret, ConfigProblem> {
    let Spanned { value: table, span } = item;
    let is_value = table.value.is_some() || table.value_file.is_some();
    let is_token = table.bearer.is_some() || table.bearer_file.is_some();
    let is_client =
        [&table.client_id, &table.client_secret, &table.client_secret_file, &table.token_url];
    let is_client = is_client.iter().any(|key| key.is_some()) || table.scopes.is_some();
    let kinds = [is_token, table.user.is_some(), is_value, is_client];
    if kinds.iter().filter(|kind| **kind).count() != 1 {
        return Err(ConfigProblem::new("these keys do not form one kind of credentials")
            .help(
                "use `bearer`, or `user` and `password`, or `value`, or `client_id`, \
                `client_secret` and `token_url`; a key that ends in `_file` reads a secret from \
                a file",
            )
            .at(span));
    }
    // All kinds share this: the secret is inline or in a file. The document defines the header.
    let name = Spanned { value: "x".to_owned(), span: span.clone() };
    let both = HttpAuthTable {
        bearer: table.bearer,
        bearer_file: table.bearer_file,
        user: table.user.or_else(|| is_client.then(|| name.clone())),
        password: table.password.or(table.client_secret),
        password_file: table.password_file.or(table.client_secret_file),
        header: is_value.then_some(name),
        value: table.value,
        value_file: table.value_file,
    };
    let missing = |key: &str| ConfigProblem::new(format!("`{key}` is missing")).at(span.clone());
    if is_client && both.password.is_none() && both.password_file.is_none() {
        return Err(missing("client_secret"));
    }
    match auth(Spanned { value: both, span: span.clone() }, folder)? {
        Auth::Bearer(token) => Ok(SchemeSecret::Bearer(token)),
        Auth::Basic { password: secret, .. } if is_client => {
            Ok(SchemeSecret::Client(ClientCredentials {
                id: table.client_id.ok_or_else(|| missing("client_id"))?.value,
                secret,
                url: endpoint_url(table.token_url.ok_or_else(|| missing("token_url"))?)?,
                scopes: table.scopes.unwrap_or_default(),
            }))
        }
        Auth::Basic { user, password } => Ok(SchemeSecret::Basic { user, password }),
        Auth::Header { value, .. } => Ok(SchemeSecret::Value(value)),
    }
}

fn headers(
    written: Option<Entries<Spanned<String>>>,
) -> Result<Vec<(String, Secret)>, ConfigProblem> {
    let entries = written.map(|written| written.0).unwrap_or_default().into_iter();
    let entry = |entry| header(entry, &OWN_HEADERS).map(|(name, value)| (name, Secret(value.0)));
    entries.map(entry).collect()
}
