//! What a server tells about itself: its version, its settings, some of which would lose data without an error, and its
//! time.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, cmd};

use super::failure::ConnectFailure;

/// What is wrong with a server that can be used nevertheless.
pub(super) type Warnings = Vec<String>;

/// Refuses a server that would lose data, and one that only reads.
pub(super) async fn check_server(
    connection: &mut MultiplexedConnection,
    wait_replicas: u32,
) -> Result<Warnings, ConnectFailure> {
    let info: Result<String, RedisError> = cmd("INFO").query_async(connection).await;
    let info = match info {
        Ok(info) => info,
        Err(error) if !is_forbidden(&error) => return Err(ConnectFailure::from_setup(&error)),
        Err(error) => {
            return Ok(vec![format!(
                "its settings were not checked, because INFO failed: {error}"
            )]);
        }
    };
    check_info(&info)?;
    let mut warnings = Vec::new();
    if field(&info, "aof_enabled") == Some("0") && !has_snapshots(connection).await {
        warnings
            .push("it has no persistence; set appendonly yes, or its restart loses all".to_owned());
    }
    let replicas = field(&info, "connected_slaves").and_then(|count| count.parse::<u32>().ok());
    if replicas.is_some_and(|count| count < wait_replicas) {
        let count = replicas.unwrap_or_default();
        warnings.push(format!(
            "it has {count} replicas and {wait_replicas} must acknowledge conditional writes, which \
             therefore fail"
        ));
    }
    Ok(warnings)
}

/// The time of the server since 1970, unless the user must not ask for it.
pub(super) async fn server_time(mut connection: MultiplexedConnection) -> Option<Duration> {
    let (seconds, microseconds): (u64, u64) =
        cmd("TIME").query_async(&mut connection).await.ok()?;
    Some(Duration::from_secs(seconds) + Duration::from_micros(microseconds))
}

/// Whether the server does not allow the command, or does not have it.
fn is_forbidden(error: &RedisError) -> bool {
    error.code() == Some("NOPERM") || error.to_string().contains("unknown command")
}

fn check_info(info: &str) -> Result<(), ConnectFailure> {
    if let Some(version) = field(info, "redis_version").filter(|version| !is_supported(version)) {
        return Err(ConnectFailure::Refused(format!(
            "its version is {version}; use Valkey, or Redis 6.2 or newer"
        )));
    }
    let policy = field(info, "maxmemory_policy").unwrap_or("noeviction");
    let is_limited = field(info, "maxmemory").is_some_and(|bytes| bytes != "0");
    if is_limited && policy != "noeviction" {
        return Err(ConnectFailure::Refused(format!(
            "its maxmemory-policy is {policy}, which deletes data that is in use; set \
             maxmemory-policy noeviction"
        )));
    }
    if field(info, "role") == Some("slave") {
        return Err(ConnectFailure::unreachable("it is a replica, which cannot be written"));
    }
    Ok(())
}

/// Whether the server saves snapshots; assumed where it does not tell.
async fn has_snapshots(connection: &mut MultiplexedConnection) -> bool {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg("save");
    let found: Result<Vec<String>, RedisError> = command.query_async(connection).await;
    found.map_or(true, |found| found.get(1).is_none_or(|rule| !rule.is_empty()))
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn is_supported(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= (6, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_refused() {
        for (version, is_fine) in [("6.0.16", false), ("6.2.0", true), ("7.0.15", true)] {
            assert_eq!(is_supported(version), is_fine, "{version}");
        }
        let refused = check_info("redis_version:5.0.14\r\nmaxmemory:0\r\n").unwrap_err();
        assert!(refused.problem().contains("5.0.14"), "{refused:?}");
    }
}
