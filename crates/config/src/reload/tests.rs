//! Tests of reloads that fail or take long, and of file checks on a slow file system.

use std::fs;
use std::sync::mpsc;

use creole::internal::telemetry::Telemetry;
use creole_gateway::upstream::Affinity;
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::{ConfigSource, TelemetryExport, packs};

const LONG: Duration = Duration::from_secs(10);

/// A program that runs the configuration in a file.
struct FileHost(PathBuf);

impl ReloadHost for FileHost {
    fn file(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn load_plan(&self) -> Result<Plan, LoadFailure> {
        Ok(Plan::load(ConfigSource::File(&self.0), &packs())?)
    }

    fn set_log_level(&self, _: &Plan) {}

    fn write_message(&self, _: &str) {}
}

/// Writes a configuration with this many keys of callers.
fn write(folder: &TempDir, keys: usize) {
    let key = |number: usize| format!("{{ name = \"k{number}\", sha256 = \"{number:064}\" }}");
    let keys: Vec<String> = (0..keys).map(key).collect();
    let text = format!(
        "[server]\nname = \"t\"\npacks = [\"hello\"]\n[auth]\nkeys = [{}]\n[state]\nkeys_file = \"seal\"\n",
        keys.join(", ")
    );
    fs::write(folder.path().join("creole.toml"), text).unwrap();
}

/// A server with one key of callers.
async fn served(folder: &TempDir) -> (Arc<Reloader>, Authenticator) {
    write(folder, 1);
    fs::write(folder.path().join("seal"), "0".repeat(64)).unwrap();
    let host = FileHost(folder.path().join("creole.toml"));
    let telemetry = Telemetry::default();
    let options = InstanceOptions {
        debug: false,
        program: None,
        transparent: false,
        audit_exporter: None,
        start_reaper: || None,
        export: TelemetryExport::new(&telemetry, |_| {}),
        telemetry,
    };
    let plan = host.load_plan().unwrap();
    let served = ServerInstance::new(&plan, &options, Affinity::Principal).await.unwrap();
    let auth = plan.auth.as_ref().unwrap();
    let callers = Authenticator::new(auth_settings(&plan, auth).unwrap()).unwrap();
    let (host, callers_too) = (Arc::new(host), Some(callers.clone()));
    let reloader =
        Reloader::new(&plan, host, options, vec![served], callers_too, ClientScope::Many);
    (reloader, callers)
}

#[tokio::test]
async fn a_failed_reload_admits_no_further_callers() {
    let folder = tempfile::tempdir().unwrap();
    let (reloader, callers) = served(&folder).await;
    write(&folder, 2);
    fs::write(folder.path().join("seal"), "not a key").unwrap();
    assert!(reloader.reload().await.is_err());
    assert_eq!(callers.count(), (0, 1));
    fs::write(folder.path().join("seal"), "1".repeat(64)).unwrap();
    reloader.reload().await.unwrap();
    assert_eq!(callers.count(), (0, 2));
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let (reloader, callers) = served(&folder).await;
    let reload = reloader.running.lock().await;
    timeout(LONG, reloader.close()).await.expect("an end");
    drop(reload);
    write(&folder, 2);
    assert!(reloader.reload().await.is_err(), "no reload is applied after the end");
    assert_eq!(callers.count(), (0, 1));
}

#[tokio::test]
async fn a_hanging_file_system_blocks_no_caller() {
    let (answer, wait) = mpsc::channel::<()>();
    let slow = move |_: &Path| {
        wait.recv_timeout(LONG).expect("another task runs meanwhile");
        Some((None, 7, 7))
    };
    let files = HashMap::from([(PathBuf::from("f"), None)]);
    let (seen, ()) = tokio::join!(current_stamps(&files, slow), async { answer.send(()).unwrap() });
    assert_eq!(seen[Path::new("f")], Some((None, 7, 7)));
}

#[test]
fn lists_of_several_servers_are_named_once() {
    assert_eq!(deduplicated(vec!["tools", "prompts", "tools"]), ["tools", "prompts"]);
}
