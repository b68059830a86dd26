//! Resolves how a dialect writes faults.

use std::borrow::Cow;

use creole_proto::dialect::{Dialect, DialectText};
use creole_proto::fault;
use creole_proto::fault::{DataShape, ErrorRow, FaultKind, TEMPLATE_VARIABLES};

use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Entries, Spanned};
use crate::tables::dialect::{ErrorData, ErrorTable};
use crate::tables::enums::ChannelChoice;

/// Overrides rows of the dialect's table of faults with the configured ones.
pub(crate) fn apply_errors(
    entries: Option<&Entries<ErrorTable>>,
    dialect: &mut Dialect,
) -> Result<(), ConfigProblem> {
    let Some(Entries(written)) = entries else { return Ok(()) };
    let mut rows = dialect.errors.to_vec();
    for (name, table) in written {
        let kind = fault_kind(name)?;
        let row = row(dialect.error_row(kind, dialect.base_rules()), table)?;
        match rows.iter_mut().find(|row| row.kind == kind) {
            Some(existing) => *existing = row,
            None => rows.push(row),
        }
    }
    dialect.errors = Cow::Owned(rows);
    Ok(())
}

fn fault_kind(name: &Spanned<String>) -> Result<FaultKind, ConfigProblem> {
    FaultKind::from_name(&name.value).ok_or_else(|| {
        let help = suggestion(&name.value, "the known kinds", &suggestions::fault_kinds());
        let problem = ConfigProblem::new(format!("unknown kind of fault `{}`", name.value));
        problem.help(help).at(name.span.clone())
    })
}

fn row(default_row: &ErrorRow, table: &ErrorTable) -> Result<ErrorRow, ConfigProblem> {
    Ok(ErrorRow {
        kind: default_row.kind,
        channel: channel(default_row.channel, table),
        message: match &table.message {
            Some(value) => template(value)?,
            None => default_row.message.clone(),
        },
        data: match &table.data {
            Some(written) => data(written)?,
            None => default_row.data.clone(),
        },
    })
}

fn channel(usual: fault::ErrorChannel, table: &ErrorTable) -> fault::ErrorChannel {
    let usual_code = match usual {
        fault::ErrorChannel::ProtocolError(code) => code,
        fault::ErrorChannel::ToolResult { fallback_code: otherwise } => otherwise,
    };
    let written = table.code.and_then(|code| i32::try_from(code.get()).ok());
    let code = written.unwrap_or(usual_code);
    match (table.channel, written) {
        (Some(ChannelChoice::ToolResult), _) => {
            fault::ErrorChannel::ToolResult { fallback_code: code }
        }
        (Some(ChannelChoice::Protocol), _) | (None, Some(_)) => {
            fault::ErrorChannel::ProtocolError(code)
        }
        (None, None) => usual,
    }
}

fn data(written: &ErrorData) -> Result<DataShape, ConfigProblem> {
    Ok(match written {
        ErrorData::Nothing => DataShape::None,
        ErrorData::Facts => DataShape::FromFault,
        ErrorData::Text(text) => DataShape::Text(template(text)?),
        ErrorData::Members(Entries(members)) => {
            let member = |(name, text): &(Spanned<String>, Spanned<String>)| {
                Ok((Cow::Owned(name.value.clone()), template(text)?))
            };
            DataShape::Members(members.iter().map(member).collect::<Result<_, ConfigProblem>>()?)
        }
    })
}

/// A text template whose variables all exist.
fn template(value: &Spanned<String>) -> Result<DialectText, ConfigProblem> {
    let mut rest = value.value.as_str();
    while let Some((name, tail)) = rest.split_once('{').and_then(|(_, after)| after.split_once('}'))
    {
        if !TEMPLATE_VARIABLES.contains(&name) {
            return Err(unknown_variable(&format!("{{{name}}}")).at(value.span.clone()));
        }
        rest = tail;
    }
    Ok(Cow::Owned(value.value.clone()))
}

fn unknown_variable(variable: &str) -> ConfigProblem {
    let known = TEMPLATE_VARIABLES.map(|name| format!("{{{name}}}"));
    let help = suggestion(variable, "the known variables", &known.each_ref().map(String::as_str));
    ConfigProblem::new(format!("unknown variable `{variable}`")).help(help).about_part(variable)
}
