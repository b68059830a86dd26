//! Converts the plan of an upstream to its settings.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;

use creole::client::{Address, HttpAddress, Program};
use creole::proto::client::ClientLimits;
use creole::proto::revision::Rules;

use crate::logins::{token_credentials, upstream_credentials};
use crate::plan::layer::{LayerEnvironment, LayerError, LayerPlan, build};
use crate::plan::upstream::{Secret, UpstreamAddress, UpstreamPlan};
use crate::tables::enums::{AffinityChoice, UpstreamEra};
use creole_gateway::layers::{Chain, NamePatterns};
use creole_gateway::upstream::{
    Affinity, Naming, RevisionChoice, SettingsOrigin, UpstreamSettings,
};

/// The settings of a planned upstream.
///
/// # Errors
/// When a file of its chain cannot be opened, or the certificates of this machine cannot be read.
pub fn upstream_settings(
    plan: &UpstreamPlan,
    environment: &LayerEnvironment,
) -> Result<UpstreamSettings, LayerError> {
    let defaults = UpstreamSettings::new(upstream_address(plan)?);
    Ok(UpstreamSettings {
        revisions: match (plan.revision, plan.era) {
            (Some(revision), _) => RevisionChoice::Revision(revision.rules()),
            (None, UpstreamEra::Auto) => RevisionChoice::Detect,
            (None, UpstreamEra::Handshake) => RevisionChoice::Revision(Rules::NEWEST_HANDSHAKE),
            (None, UpstreamEra::Stateless) => RevisionChoice::Revision(Rules::CANONICAL),
        },
        dialect: plan.dialect.clone(),
        naming: Naming { prefix: plan.prefix.clone() },
        affinity: match plan.affinity {
            AffinityChoice::Principal => Affinity::Principal,
            AffinityChoice::Shared => Affinity::Shared,
            AffinityChoice::Session => Affinity::Session,
            AffinityChoice::Request => Affinity::Request,
        },
        interactive: plan.interactive,
        startup_timeout: plan.startup_timeout,
        max_parked_calls: plan.max_parked_calls,
        max_sessions: plan.max_sessions,
        limits: ClientLimits {
            call_idle_timeout: plan.timeout,
            call_total_timeout: defaults.limits.call_total_timeout.max(plan.timeout),
            ..defaults.limits
        },
        propagation: plan.propagation.clone(),
        chain: Chain::new(build(&plan.chain, &plan.name, environment)?),
        retried_tools: retried_tools(&plan.chain),
        configuration: Some(SettingsOrigin::new(plan.clone())),
        ..defaults
    })
}

/// The tools that each retry layer covers. None if the chain renames tools, because a retry layer's names could then
/// match other tools of the upstream.
fn retried_tools(chain: &[LayerPlan]) -> Vec<NamePatterns> {
    if chain.iter().any(|layer| matches!(layer, LayerPlan::Rename(_))) {
        return Vec::new();
    }
    let names = |layer: &LayerPlan| match layer {
        LayerPlan::Retry(retry) => Some(retry.names.clone()),
        _ => None,
    };
    chain.iter().filter_map(names).collect()
}

/// The environment variables that presets read.
const PRESET_VARIABLES: [&str; 3] = ["CREOLE_DATA_DIR", "CREOLE_TASKS_URL", "CREOLE_WORDPRESS_URL"];

/// The address of this program as the server of a preset, with the environment variables that presets read.
///
/// # Errors
/// When the path of this program cannot be determined.
pub fn preset_address(name: &str, preset: &str) -> io::Result<Address> {
    let mut program = Program::new(name, std::env::current_exe()?);
    program.env = inherited_variables(&PRESET_VARIABLES).collect();
    Ok(Address::Child(program.args(["serve", "--stdio", "--preset", preset])))
}

/// The variables of this process's environment that have these names.
fn inherited_variables<T: AsRef<OsStr>>(names: &[T]) -> impl Iterator<Item = (OsString, OsString)> {
    names.iter().filter_map(|name| Some((name.as_ref().to_owned(), std::env::var_os(name)?)))
}

/// The address of a planned upstream.
///
/// # Errors
/// When the certificates of this machine cannot be read, or the path of this program cannot be determined.
pub fn upstream_address(plan: &UpstreamPlan) -> Result<Address, LayerError> {
    match &plan.address {
        UpstreamAddress::Command { command, env, env_pass, cwd } => {
            let (name, args) = command.split_first().unwrap_or((&plan.name, &[]));
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let given = env.iter().map(|(name, value)| (name.into(), value.0.clone().into()));
            let mut program = Program::new(&plan.name, name).args(args);
            program.env = inherited_variables(env_pass).chain(given).collect();
            program.folder = cwd.clone();
            Ok(Address::Child(program))
        }
        UpstreamAddress::Preset(preset) => {
            let unknown = |error| {
                LayerError::new(format!(
                    "cannot determine the path of the creole executable: {error}"
                ))
            };
            preset_address(&plan.name, preset).map_err(unknown)
        }
        UpstreamAddress::Url { url, headers, token, authorities, oauth } => {
            let refused = |fault: creole::proto::fault::Fault| LayerError::new(fault.detail);
            let trusted = authorities.as_ref().map(|authorities| authorities.pem());
            let target =
                HttpAddress::with_certificates(&plan.name, url, trusted).map_err(refused)?;
            let target = target.with_streams(plan.dialect.event_streams);
            let header = |target: HttpAddress, (name, value): &(String, _)| {
                let Secret(value) = value;
                target.header(name, value)
            };
            let target = headers.iter().try_fold(target, header).map_err(refused)?;
            let login = oauth
                .as_ref()
                .map(|oauth| upstream_credentials(&plan.name, url, oauth, trusted.map(Arc::from)));
            Ok(Address::Http(match (token, login) {
                (Some(token), _) => target.credentials(token_credentials(&plan.name, token)),
                // An address that no login can have is used without one.
                (None, Some(Ok(login))) => target.credentials(Arc::new(login)),
                (None, _) => target,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use creole_gateway::layers::{RenameSettings, RetrySettings};

    use super::*;

    #[test]
    fn the_tools_of_a_retry_layer_are_known_unless_a_layer_renames_tools() {
        let retry = LayerPlan::Retry(RetrySettings {
            attempts: 2,
            delay: Duration::ZERO,
            max_delay: Duration::ZERO,
            names: NamePatterns::default(),
        });
        let rename = LayerPlan::Rename(RenameSettings::default());
        assert_eq!(retried_tools(std::slice::from_ref(&retry)), [NamePatterns::default()]);
        assert_eq!(retried_tools(std::slice::from_ref(&rename)), []);
        assert_eq!(retried_tools(&[retry, rename]), []);
    }
}
