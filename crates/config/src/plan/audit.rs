//! Resolves the table of an audit log, and builds the log.

use std::ops::Range;
use std::path::{Path, PathBuf};

use creole_gateway::audit::{Audit, AuditArguments, AuditFileSettings, AuditSettings, AuditTarget};

use crate::plan::layer_environment::{LayerEnvironment, LayerError};
use crate::plan::redaction::{REPLACEMENT, RedactPlan, patterns, pointers};
use crate::plan::{file, to_u32};
use crate::syntax::error::ConfigProblem;

use crate::tables::audit::{AuditArgumentsChoice, AuditTable, AuditTargetChoice};

/// An audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPlan {
    /// Where the lines go.
    pub to: AuditTargetPlan,
    /// How arguments are recorded.
    pub arguments: AuditArgumentsPlan,
    /// Whether each line contains the hash of the line before it.
    pub chain: bool,
    /// Whether calls are refused if their lines cannot be written.
    pub required: bool,
    /// Whether the addresses of clients are written.
    pub remote: bool,
}

/// Where the lines of an audit log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTargetPlan {
    /// To a file.
    File(AuditFileSettings),
    /// To stdout.
    Stdout,
    /// To the OpenTelemetry collector.
    Otlp,
}

/// How arguments are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditArgumentsPlan {
    /// Not at all.
    None,
    /// As a digest.
    Digest,
    /// In full, except for the redacted parts.
    Redacted(RedactPlan),
}

/// Resolves the table of an audit log.
pub(super) fn resolve(table: AuditTable) -> Result<AuditPlan, ConfigProblem> {
    let arguments = table.arguments.unwrap_or(AuditArgumentsChoice::Digest);
    let useless = table.patterns.as_ref().or(table.pointers.as_ref());
    if let Some(value) = useless.filter(|_| arguments != AuditArgumentsChoice::Redacted) {
        return Err(ConfigProblem::new("arguments are not logged, so this key has no effect")
            .help("set `arguments = \"redacted\"`, or remove this key")
            .at(value.span.clone()));
    }
    let to = target(&table)?;
    let lists = (table.patterns.map(|item| item.value), table.pointers.map(|item| item.value));
    let (patterns, pointers) = (patterns(lists.0)?, pointers(lists.1)?);
    Ok(AuditPlan {
        to,
        arguments: match arguments {
            AuditArgumentsChoice::None => AuditArgumentsPlan::None,
            AuditArgumentsChoice::Digest => AuditArgumentsPlan::Digest,
            AuditArgumentsChoice::Redacted => {
                let replacement = REPLACEMENT.to_owned();
                AuditArgumentsPlan::Redacted(RedactPlan { patterns, pointers, replacement })
            }
        },
        chain: table.chain.unwrap_or(false),
        required: table.required.unwrap_or(false),
        remote: table.remote.unwrap_or(true),
    })
}

fn target(table: &AuditTable) -> Result<AuditTargetPlan, ConfigProblem> {
    let choice = table.to.as_ref().map_or(AuditTargetChoice::File, |to| to.value);
    let (other, name) = match choice {
        AuditTargetChoice::File => return file_target(table).map(AuditTargetPlan::File),
        AuditTargetChoice::Stdout => (AuditTargetPlan::Stdout, "stdout"),
        AuditTargetChoice::Otlp => (AuditTargetPlan::Otlp, "otlp"),
    };
    match file_key(table) {
        None => Ok(other),
        Some(span) => {
            let message = format!("the lines go to `{name}`, so this key has no effect");
            let help = "remove this key, or write to a file: `to = \"file\"`";
            Err(ConfigProblem::new(message).help(help).at(span))
        }
    }
}

/// The first key that only a file has.
fn file_key(table: &AuditTable) -> Option<Range<usize>> {
    let file = table.file.as_ref().map(|item| item.span.clone());
    let max_bytes = table.max_bytes.as_ref().map(|item| item.span.clone());
    let keep = table.keep.as_ref().map(|item| item.span.clone());
    let sync = table.sync.as_ref().map(|item| item.span.clone());
    file.or(max_bytes).or(keep).or(sync)
}

fn file_target(table: &AuditTable) -> Result<AuditFileSettings, ConfigProblem> {
    let Some(path) = table.file.clone() else {
        return Err(ConfigProblem::new("`file` is missing")
            .help("name a file, or set `to = \"stdout\"` or `to = \"otlp\"`"));
    };
    let bytes = table.max_bytes.as_ref();
    Ok(AuditFileSettings {
        path: file("file", path)?,
        max_bytes: bytes.map_or(100 << 20, |bytes| bytes.value.get().unsigned_abs()),
        keep: table.keep.as_ref().map_or(5, |keep| to_u32(keep.value.get())),
        sync: table.sync.as_ref().is_some_and(|sync| sync.value),
    })
}

impl AuditPlan {
    /// The file, if the lines go to one.
    pub fn file(&self) -> Option<&Path> {
        match &self.to {
            AuditTargetPlan::File(file) => Some(&file.path),
            AuditTargetPlan::Stdout | AuditTargetPlan::Otlp => None,
        }
    }

    /// The files of the log that exist, the oldest first.
    pub fn existing_files(&self) -> Vec<PathBuf> {
        match &self.to {
            AuditTargetPlan::File(file) => {
                creole_gateway::audit::rotated_files(&file.path, file.keep)
            }
            AuditTargetPlan::Stdout | AuditTargetPlan::Otlp => Vec::new(),
        }
    }

    pub(super) fn resolve_paths(mut self, folder: &Path) -> Self {
        if let AuditTargetPlan::File(file) = &mut self.to {
            file.path = folder.join(&file.path);
        }
        self
    }

    pub(super) fn build(
        &self,
        server: &str,
        environment: &LayerEnvironment,
    ) -> Result<Audit, LayerError> {
        let Self { arguments, chain, required, remote, .. } = self.clone();
        let arguments = match arguments {
            AuditArgumentsPlan::None => AuditArguments::None,
            AuditArgumentsPlan::Digest => AuditArguments::Digest,
            AuditArgumentsPlan::Redacted(plan) => AuditArguments::Redacted(plan.redactor()?),
        };
        let (to, replica) = (self.target(environment)?, environment.replica.clone());
        let settings = AuditSettings { to, arguments, chain, required, remote, replica };
        let scope = environment.audit_scope.clone();
        Audit::new(server, settings, scope, &environment.telemetry).map_err(|error| {
            let file = self.file().unwrap_or(Path::new("-")).display();
            LayerError::new(format!("cannot write the audit log `{file}`: {error}"))
        })
    }

    fn target(&self, environment: &LayerEnvironment) -> Result<AuditTarget, LayerError> {
        match (&self.to, &environment.audit_exporter) {
            (AuditTargetPlan::File(file), _) => Ok(AuditTarget::File(file.clone())),
            (AuditTargetPlan::Stdout, _) if environment.is_stdout_free => Ok(AuditTarget::Stdout),
            (AuditTargetPlan::Stdout, _) => Err(LayerError::new(STDOUT_IS_USED)),
            (AuditTargetPlan::Otlp, Some(exporter)) => Ok(AuditTarget::Exporter(exporter.clone())),
            (AuditTargetPlan::Otlp, None) => Err(LayerError::new(
                "the audit log goes to `otlp`, but no collector is configured; add the table \
                    `[telemetry]` with an `endpoint`, or write to a file",
            )),
        }
    }
}

/// Why an audit log cannot go to stdout.
pub const STDOUT_IS_USED: &str = "the audit log cannot go to stdout, because the messages of the \
    protocol or the output of this command go there; serve over HTTP, or write to a file";
