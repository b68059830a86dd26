//! Tests of the export: protocols, a collector that fails, the environment, the end of the process.

use std::fs;
use std::time::{Duration, Instant};

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::otlp::{Receiver, receiver};
use creole_acceptance::process_under_test::{Server, serve};
use creole_test_wait::blocking::{eventually, never_within};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{attribute, command, exporting, listen};

const SERVER: &str = "[server]\nname = \"main\"\npacks = [\"echo\"]\n";
const ALWAYS: &str = "[telemetry.traces]\nsample = 1\n";
const NAME: &str = "tools/call echo";

fn call(server: &ListeningServer) {
    let client = StatelessClient::new(server.address());
    let response = client.call("echo", json!({"message": "hi"}));
    assert!(response["result"].is_object(), "{response}");
}

/// The last value of a counter of the export.
fn counted(receiver: &Receiver, name: &str, outcome: Option<&str>) -> Option<u64> {
    let is_it = |point: &Value| {
        let attributes = &point["attributes"];
        point["name"] == name
            && attributes.to_string().contains("\"traces\"")
            && outcome
                .is_none_or(|outcome| attributes.to_string().contains(&format!("\"{outcome}\"")))
    };
    let points: Vec<Value> = receiver.items("metric").into_iter().filter(is_it).collect();
    points.last().and_then(|point| point["value"].as_u64())
}

/// An authority, and a certificate for `localhost` with its key, as files of a folder.
fn certificates(folder: &TempDir) -> [String; 3] {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    [
        file("ca.pem", &authority),
        file("cert.pem", &certificate),
        file("key.pem", &key.serialize_pem()),
    ]
}

#[test]
fn all_signals_go_over_grpc_with_tls_and_only_a_missing_collector_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let [authority, certificate, key] = certificates(&folder);
    let Some(receiver) = receiver(&["--grpc", "--certificate", &certificate, "--key", &key]) else {
        return;
    };
    let more = format!(
        "protocol = \"grpc\"\nca_file = \"{authority}\"\nheaders = {{ x-token = \"of-the-collector\" }}\n\
         {ALWAYS}[telemetry.metrics]\ninterval_seconds = 1\n[telemetry.logs]\notlp = true\n"
    );
    let config = format!("{SERVER}{}[log]\nlevel = \"info\"\n", exporting(&receiver, &more));
    let (server, _folder) = listen(&config);
    call(&server);
    let span = receiver.span(NAME);
    assert_eq!(
        (attribute(&span, "gen_ai.tool.name"), &span["status"]),
        (&json!("echo"), &json!(0))
    );
    eventually("a log record", || !receiver.items("log").is_empty());
    let is_counter = |point: &Value| point["name"] == "creole.otlp.exports";
    eventually("the metrics", || receiver.items("metric").iter().any(is_counter));
    let requests = receiver.items("request");
    assert!(
        requests.iter().all(|it| it["headers"]["x-token"] == "of-the-collector"),
        "{requests:#?}"
    );

    receiver.set_response(&json!({"grpc": 14}));
    call(&server);
    let asked = || receiver.items("request").iter().filter(|it| it["path"] == "/v1/traces").count();
    eventually("a second request", || asked() >= 3);
    receiver.set_response(&json!({}));
    eventually("the span of the second call", || receiver.spans(NAME).len() == 2);

    receiver.set_response(&json!({"grpc": 3}));
    let before = asked();
    call(&server);
    eventually("a refused request", || asked() == before + 1);
    receiver.set_response(&json!({}));
    call(&server);
    eventually("the span of the fourth call", || receiver.spans(NAME).len() == 3);
    assert_eq!(asked(), before + 2, "a refused request is not repeated");
}

#[test]
fn a_dead_collector_costs_calls_nothing_and_what_it_misses_is_counted() {
    let Some(receiver) = receiver(&[]) else { return };
    // Without a certificate the receiver would be another one after its return, so it only refuses.
    receiver.set_response(&json!({"http": 503, "retry_after": "3"}));
    let more = format!("{ALWAYS}[telemetry.metrics]\ninterval_seconds = 1\n");
    let (mut command, _folder) =
        command(&format!("{SERVER}{}", exporting(&receiver, &more)), &["--stdio"]);
    command.env("OTEL_BSP_MAX_QUEUE_SIZE", "100").env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "50");
    // A ping has one span, and never one of a layer.
    let mut server = Server::start_command(command).greeted();
    server.ping();
    let before = server.weight();
    for _ in 0..400 {
        server.ping();
    }
    let after = server.weight();
    assert!(after.memory < before.memory + 8 * 1024 * 1024, "{before:?} {after:?}");
    receiver.set_response(&json!({}));
    eventually("the spans that waited", || receiver.spans("ping").len() >= 90);
    server.ping();
    let counts = || {
        (
            receiver.spans("ping").len(),
            receiver.items("span").len(),
            counted(&receiver, "creole.otlp.dropped", None),
        )
    };
    let sent = eventually(
        || format!("the span after them: {:?}", counts()),
        || {
            let sent = receiver.spans("ping").len() as u64;
            let dropped = counted(&receiver, "creole.otlp.dropped", None)?;
            (sent + dropped == 402).then_some(sent)
        },
    );
    assert!((90..=300).contains(&sent), "{sent}");
    assert!(counted(&receiver, "creole.otlp.exports", Some("retry")).is_some());
    let traces = |it: &&Value| it["path"] == "/v1/traces";
    let times: Vec<f64> = receiver
        .items("request")
        .iter()
        .filter(traces)
        .filter_map(|it| it["at"].as_f64())
        .collect();
    // The first delay would be one second.
    assert!(times[1] - times[0] >= 3.0, "the collector demanded three seconds: {times:?}");
    let log = server.finish().log;
    let failed = |signal: &str| {
        let text = format!("cannot export telemetry; trying again signal=\"{signal}\"");
        log.matches(&text).count()
    };
    assert_eq!(failed("traces"), 1, "{log}");
    // Metrics are exported at other times, and maybe not while the collector was dead.
    assert!(failed("metrics") <= 1, "{log}");
}

#[test]
fn the_end_of_the_process_sends_what_waits() {
    let Some(receiver) = receiver(&[]) else { return };
    let config = format!("{SERVER}{}", exporting(&receiver, ALWAYS));
    let (mut command, _folder) = command(&config, &["--http", "127.0.0.1:0"]);
    command.env("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    let mut server = ListeningServer::other(command).unwrap();
    for _ in 0..3 {
        call(&server);
    }
    assert!(receiver.items("request").is_empty());
    let started = Instant::now();
    server.stop().unwrap();
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    eventually("the spans", || receiver.spans(NAME).len() == 3);
    eventually("the metrics", || !receiver.items("metric").is_empty());
}

/// A server without a configuration file, in this environment.
fn in_environment(variables: &[(&str, &str)]) -> (ListeningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = serve(folder.path(), &["--http", "127.0.0.1:0", "--preset", "everything"]);
    command.envs(variables.iter().copied()).env("OTEL_BSP_SCHEDULE_DELAY", "20");
    (ListeningServer::other(command).unwrap(), folder)
}

#[test]
fn the_environment_alone_exports_unless_it_disables_the_sdk() {
    let Some(receiver) = receiver(&[]) else { return };
    let endpoint = receiver.endpoint();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%20b"),
        ("OTEL_SERVICE_NAME", "by-environment"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
    ];
    let disabled = [&variables[..], &[("OTEL_SDK_DISABLED", "true")]].concat();
    let (server, _folder) = in_environment(&disabled);
    let _ = StatelessClient::new(server.address()).call("test_simple_text", json!({}));
    never_within(Duration::from_millis(300), "nothing is exported", || {
        !receiver.items("request").is_empty()
    });
    let (server, _folder) = in_environment(&variables);
    let _ = StatelessClient::new(server.address()).call("test_simple_text", json!({}));
    let _ = receiver.span("tools/call test_simple_text");
    let line = receiver.lines().into_iter().find(|line| line.get("span").is_some()).unwrap();
    assert_eq!(line["resource"]["service.name"], "by-environment");
    assert_eq!(receiver.items("request")[0]["headers"]["x-token"], "a b");
}
