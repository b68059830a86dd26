//! What of a trace context an upstream gets.

use creole::internal::telemetry::trace::Propagation;

use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The maximum number of forwarded members of baggage: as many as baggage may have.
const MAX_MEMBERS: usize = 64;

pub(super) fn resolve(
    propagate: Option<bool>,
    baggage: Option<Spanned<Vec<Spanned<String>>>>,
) -> Result<Propagation, ConfigProblem> {
    let is_enabled = propagate.unwrap_or(true);
    let Some(Spanned { value: names, span }) = baggage else {
        return Ok(Propagation { is_enabled, ..Propagation::default() });
    };
    if !is_enabled {
        let message = "`baggage` has no effect with `propagate = false`";
        return Err(ConfigProblem::new(message).help("remove one of them").at(span));
    }
    if names.len() > MAX_MEMBERS {
        let message = format!("`baggage` has more than {MAX_MEMBERS} names");
        return Err(ConfigProblem::new(message).at(span));
    }
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = |Spanned { value, span }: Spanned<String>| match !value.is_empty()
        && value.bytes().all(is_token)
    {
        true => Ok(value.into_boxed_str()),
        false => {
            let message = format!("`{value}` is no name of a baggage member");
            Err(ConfigProblem::new(message).help("use letters, digits, `-`, `_` or `.`").at(span))
        }
    };
    let baggage = names.into_iter().map(name).collect::<Result<_, _>>()?;
    Ok(Propagation { is_enabled, baggage })
}
