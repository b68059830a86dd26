//! Resolves a configured dialect, which overrides parts of the dialect that it extends.

use std::borrow::Cow;

use creole_proto::dialect::{
    BUILTIN_NAMES, CapabilityShape, Dialect, DialectText, VersionPolicy, builtin,
};
use creole_proto::method::{Method, MethodSet};
use creole_proto::revision::Revision;

use crate::plan::{count, errors, label};
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::dialect::{DialectChoice, DialectTable};
use crate::tables::enums::CapabilitiesChoice;

/// The default dialect.
const DEFAULT_DIALECT: &str = "spec";
/// The value that lets `initialize` accept the proposed version.
const NEGOTIATE: &str = "negotiate";
/// The value for a handshake that ends without a notification.
const NO_NOTIFICATION: &str = "none";

/// The dialect of the server of this name.
pub(crate) fn resolve(
    choice: Option<&DialectChoice>,
    server: &str,
) -> Result<Dialect, ConfigProblem> {
    match choice {
        None => builtin_dialect(DEFAULT_DIALECT).ok_or_else(|| unknown_dialect(DEFAULT_DIALECT)),
        Some(DialectChoice::Named(name)) => existing_dialect(name),
        Some(DialectChoice::Own(table)) => custom_dialect(table, server),
    }
}

fn builtin_dialect(name: &str) -> Option<Dialect> {
    builtin(name)
}

fn existing_dialect(name: &Spanned<String>) -> Result<Dialect, ConfigProblem> {
    builtin_dialect(&name.value).ok_or_else(|| unknown_dialect(&name.value).at(name.span.clone()))
}

fn unknown_dialect(name: &str) -> ConfigProblem {
    ConfigProblem::new(format!("unknown dialect `{name}`")).help(suggestion(
        name,
        "the known dialects",
        BUILTIN_NAMES,
    ))
}

fn custom_dialect(spanned: &Spanned<DialectTable>, server: &str) -> Result<Dialect, ConfigProblem> {
    let table = &spanned.value;
    let mut dialect = match &table.extends {
        Some(name) => existing_dialect(name)?,
        None => builtin_dialect(DEFAULT_DIALECT).ok_or_else(|| unknown_dialect(DEFAULT_DIALECT))?,
    };
    let extended = dialect.name.clone();
    let name = label("name", table.name.clone())?.unwrap_or_else(|| server.to_owned());
    dialect.name = name.into();
    dialect.about = match &table.about {
        Some(about) => about.clone().into(),
        None => format!("Based on `{extended}`, with changes.").into(),
    };
    apply_handshake(table, &mut dialect)?;
    apply_definitions(table, &mut dialect)?;
    apply_envelope(table, &mut dialect);
    errors::apply_errors(table.errors.as_ref(), &mut dialect)?;
    dialect.validate().map_err(|error| contradiction(error.problem, spanned))?;
    Ok(dialect)
}

/// Applies the keys of the handshake.
fn apply_handshake(table: &DialectTable, dialect: &mut Dialect) -> Result<(), ConfigProblem> {
    if let Some(value) = &table.revision {
        dialect.base = base_revision(value)?;
    }
    set(&mut dialect.stateless, table.stateless);
    set(&mut dialect.handshake, table.handshake);
    if let Some(version) = label("version", table.version.clone())? {
        dialect.version = match version.as_str() {
            NEGOTIATE => VersionPolicy::Negotiate,
            _ => VersionPolicy::Fixed(version.into()),
        };
    }
    if let Some(values) = &table.initialize_requires {
        dialect.initialize_requires = checked_names(values, required_member)?;
    }
    set(&mut dialect.lifecycle, table.lifecycle.as_ref().map(|spanned| spanned.value));
    if let Some(values) = &table.initialized_aliases {
        dialect.initialized_aliases = checked_names(values, alias)?;
    }
    if let Some(method) = label("initialized_notification", table.initialized_notification.clone())?
    {
        dialect.initialized_notification = (method != NO_NOTIFICATION).then(|| method.into());
    }
    set(&mut dialect.repeated_initialize, table.repeated_initialize);
    Ok(())
}

/// Applies the keys of offered items and their definitions.
fn apply_definitions(table: &DialectTable, dialect: &mut Dialect) -> Result<(), ConfigProblem> {
    if let Some(value) = &table.methods {
        let methods: Result<Vec<Method>, ConfigProblem> = value.value.iter().map(method).collect();
        dialect.methods = Some(MethodSet::of(&methods?));
    }
    capabilities(table, dialect)?;
    if let Some(values) = &table.advertise {
        dialect.advertise = Some(checked_names(values, capability)?);
    }
    if let Some(value) = &table.hidden_capabilities {
        if dialect.advertise.is_some() {
            let problem =
                ConfigProblem::new("`hidden_capabilities` has no effect together with `advertise`");
            return Err(problem.help("remove `hidden_capabilities`").at(value.span.clone()));
        }
        dialect.hidden_capabilities = checked_names(&value.value, capability)?;
    }
    set(&mut dialect.definitions, table.definitions);
    set(&mut dialect.arguments_required, table.arguments_required);
    set(&mut dialect.is_error, table.is_error);
    set(&mut dialect.paging, table.paging);
    set(&mut dialect.schemas, table.schemas);
    Ok(())
}

/// Applies the keys of the message envelope.
fn apply_envelope(table: &DialectTable, dialect: &mut Dialect) {
    set(&mut dialect.ids, table.ids);
    set(&mut dialect.missing_id, table.missing_id.as_ref().map(|spanned| spanned.value));
    set(&mut dialect.null_id, table.null_id);
    set(&mut dialect.refused_id, table.refused_id);
    set(&mut dialect.unreadable_id, table.unreadable_id);
    set(&mut dialect.batch, table.batch);
    let longest = table.max_message.as_ref().map(|spanned| count(spanned.value.get()));
    set(&mut dialect.max_message, longest);
    set(&mut dialect.event_streams, table.event_streams);
    set(&mut dialect.error_statuses, table.error_statuses);
    set(&mut dialect.telemetry, table.telemetry);
}

fn set<T>(slot: &mut T, written: Option<impl Into<T>>) {
    if let Some(value) = written {
        *slot = value.into();
    }
}

fn base_revision(value: &Spanned<String>) -> Result<Revision, ConfigProblem> {
    let name = value.value.as_str();
    let at = |problem: ConfigProblem| problem.at(value.span.clone());
    let Some(revision) = Revision::from_name(name) else {
        let help =
            suggestion(name, "the revisions with a handshake", &suggestions::base_revisions());
        return Err(at(ConfigProblem::new(format!("unknown revision `{name}`")).help(help)));
    };
    if !revision.rules().has_handshake() {
        let problem = ConfigProblem::new(format!(
            "`{name}` has no handshake, so it cannot be the base of a dialect"
        ));
        let help = format!("choose an older revision; `stateless = true` also serves {name}");
        return Err(at(problem.help(help)));
    }
    Ok(revision)
}

fn method(value: &Spanned<String>) -> Result<Method, ConfigProblem> {
    Method::from_name(&value.value).ok_or_else(|| {
        let help = suggestion(&value.value, "the methods", &suggestions::methods());
        let problem = ConfigProblem::new(format!("unknown method `{}`", value.value));
        problem.help(help).at(value.span.clone())
    })
}

/// A list of names, each checked.
fn checked_names(
    values: &[Spanned<String>],
    check: impl Fn(&str) -> Result<(), ConfigProblem>,
) -> Result<Cow<'static, [DialectText]>, ConfigProblem> {
    for word in values {
        check(&word.value).map_err(|problem| problem.at(word.span.clone()))?;
    }
    Ok(values.iter().map(|word| Cow::Owned(word.value.clone())).collect())
}

fn required_member(path: &str) -> Result<(), ConfigProblem> {
    if path.split('.').any(str::is_empty) {
        let problem = ConfigProblem::new(format!("invalid member path `{path}`"));
        return Err(problem.help("write names separated by dots, such as `clientInfo.name`"));
    }
    Ok(())
}

fn alias(name: &str) -> Result<(), ConfigProblem> {
    if name.is_empty() {
        return Err(ConfigProblem::new("an alias is empty"));
    }
    match Method::from_name(name) {
        Some(_) => Err(ConfigProblem::new(format!(
            "`{name}` is a method of the protocol and cannot be an alias"
        ))),
        None => Ok(()),
    }
}

fn capability(name: &str) -> Result<(), ConfigProblem> {
    if suggestions::CAPABILITIES.contains(&name) {
        return Ok(());
    }
    let help = suggestion(name, "the capabilities", &suggestions::CAPABILITIES);
    Err(ConfigProblem::new(format!("unknown capability `{name}`")).help(help))
}

fn capabilities(table: &DialectTable, dialect: &mut Dialect) -> Result<(), ConfigProblem> {
    let inherited = matches!(dialect.capabilities, CapabilityShape::Flags(_));
    match table.capabilities {
        Some(CapabilitiesChoice::Detailed) => dialect.capabilities = CapabilityShape::Detailed,
        Some(CapabilitiesChoice::Plain) => dialect.capabilities = CapabilityShape::Plain,
        Some(CapabilitiesChoice::Flags) if !inherited => {
            dialect.capabilities = CapabilityShape::Flags(Cow::Borrowed(&[]));
        }
        Some(CapabilitiesChoice::Flags) | None => {}
    }
    match (&table.capability_flags, &mut dialect.capabilities) {
        (Some(value), CapabilityShape::Flags(flags)) => {
            *flags = flag_list(&value.value);
            Ok(())
        }
        (Some(value), _) => Err(ConfigProblem::new(
            "`capability_flags` has no effect while `capabilities` are objects",
        )
        .help("set `capabilities = \"flags\"`, or remove `capability_flags`")
        .at(value.span.clone())),
        (None, _) => Ok(()),
    }
}

fn flag_list(entries: &Entries<bool>) -> Cow<'static, [(DialectText, bool)]> {
    entries.0.iter().map(|(name, flag)| (Cow::Owned(name.value.clone()), *flag)).collect()
}

/// A contradiction, reported at the first of the keys that it names.
fn contradiction(problem: &str, spanned: &Spanned<DialectTable>) -> ConfigProblem {
    let mut named = problem.split('`').skip(1).step_by(2);
    let written = named.find_map(|key| spanned.value.span_of(key));
    ConfigProblem::new(problem)
        .help("keys that this table does not set are inherited from the dialect that it extends")
        .at(written.unwrap_or_else(|| spanned.span.clone()))
}
