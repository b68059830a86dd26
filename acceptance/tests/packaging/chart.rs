//! The chart: each file of values gives manifests that Kubernetes accepts and configurations that the program accepts.

use std::fs;
use std::path::{Path, PathBuf};

use creole_acceptance::peers::helm::Helm;
use creole_acceptance::peers::if_installed;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::process_under_test::shell;
use creole_acceptance::stage::stdio::repository;
use serde_json::{Value, json};

use crate::packaging;

/// The number of files of values that must be accepted.
const VALUES_FILES: usize = 12;

/// What operators define. `kubernetes-validate` has no schemas of it.
const DEFINED_BY_OPERATORS: [&str; 2] =
    ["gateway.networking.k8s.io/v1", "monitoring.coreos.com/v1"];

/// The chart, and the programs that judge it. `None` if they cannot be installed.
pub(crate) struct HelmChart {
    helm: Helm,
    folder: String,
}

impl HelmChart {
    #[track_caller]
    pub(crate) fn new() -> Option<Self> {
        let helm = if_installed("helm", Helm::installed())?;
        Some(Self { helm, folder: packaging("helm/creole").display().to_string() })
    }

    fn run(&self, verb: &[&str], values: &Path) -> FinishedCommand {
        let values = values.to_str().unwrap();
        self.helm.run(&[verb, &[&self.folder, "--values", values]].concat())
    }

    /// The manifests of a release `creole` in the namespace `creole`, as text.
    pub(crate) fn render(&self, values: &Path) -> FinishedCommand {
        self.run(&["template", "--namespace", "creole", "creole"], values)
    }

    /// The manifests as values.
    #[track_caller]
    fn manifests(&self, values: &Path) -> Vec<Value> {
        self.helm.documents(&self.render(values).succeeded().stdout)
    }
}

/// The files of values in a folder of `packaging/helm`.
fn values_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(packaging("helm").join(folder)).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

/// The only manifest of this kind.
#[track_caller]
fn of_kind<'a>(manifests: &'a [Value], kind: &str) -> &'a Value {
    let found: Vec<_> = manifests.iter().filter(|it| it["kind"] == kind).collect();
    let [only] = found.as_slice() else { panic!("{kind}: {found:?}") };
    only
}

#[test]
fn every_file_of_values_gives_valid_manifests() {
    let Some(chart) = HelmChart::new() else { return };
    let files = values_files("tests");
    assert_eq!(files.len(), VALUES_FILES);
    let (folder, mut rendered) = (tempfile::tempdir().unwrap(), Vec::new());
    for values in files {
        let name = values.file_stem().unwrap().to_str().unwrap().to_owned();
        chart.run(&["lint", "--strict"], &values).succeeded();
        let text = chart.render(&values).succeeded().stdout;
        assert!(text.lines().all(|line| !line.ends_with(' ')), "{name}: white space ends a line");
        let (foreign, known): (Vec<_>, Vec<_>) =
            chart.helm.documents(&text).into_iter().partition(|manifest| {
                DEFINED_BY_OPERATORS.iter().any(|version| manifest["apiVersion"] == *version)
            });
        let expected = match name.as_str() {
            "http-route" => 1,
            "metrics" => 2,
            _ => 0,
        };
        assert_eq!(foreign.len(), expected, "{name}: {foreign:?}");
        let file = folder.path().join(format!("{name}.yaml"));
        let documents = known.iter().map(Value::to_string).collect::<Vec<_>>();
        fs::write(&file, documents.join("\n---\n")).unwrap();
        rendered.push(file);
    }
    let validated = chart.helm.validate(&rendered);
    assert_eq!(validated.code, Some(0), "{}{}", validated.stdout, validated.stderr);
}

#[test]
fn values_that_would_break_clients_are_refused_with_the_reason() {
    let Some(chart) = HelmChart::new() else { return };
    let files = values_files("tests/refused");
    assert!(files.len() >= 5);
    for values in files {
        let text = fs::read_to_string(&values).unwrap();
        let reason = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap();
        let refused = chart.render(&values);
        assert_eq!(refused.code, Some(1), "{}", values.display());
        assert!(refused.stderr.contains(reason), "{}: {}", values.display(), refused.stderr);
    }
}

#[test]
fn a_pod_is_restricted_and_has_time_to_drain() {
    let Some(chart) = HelmChart::new() else { return };
    for values in values_files("tests") {
        let manifests = chart.manifests(&values);
        let pod = &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        for container in [&pod["initContainers"][0], &pod["containers"][0]] {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["readOnlyRootFilesystem"], true);
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
        }
        let text = configuration(&manifests);
        let number = |key: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.unwrap().parse().unwrap()
        };
        let drain = number("drain_delay_seconds") + number("drain_timeout_seconds");
        assert_eq!(pod["terminationGracePeriodSeconds"], drain + 10, "{}", values.display());
    }
}

#[test]
fn only_a_change_of_the_tables_of_the_chart_replaces_the_replicas() {
    let Some(chart) = HelmChart::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let checksum = |text: &str| {
        let values = folder.path().join("values.yaml");
        fs::write(&values, text).unwrap();
        let manifests = chart.manifests(&values);
        let template = &of_kind(&manifests, "Deployment")["spec"]["template"];
        template["metadata"]["annotations"]["checksum/restart"].as_str().unwrap().to_owned()
    };
    let usual = checksum("{}");
    assert_eq!(checksum("config: |\n  [server]\n  name = \"other\"\n"), usual);
    assert_ne!(checksum("http:\n  path: /other\n"), usual);
}

#[test]
fn the_values_of_the_guide_are_accepted() {
    let Some(chart) = HelmChart::new() else { return };
    let guide = fs::read_to_string(repository().join("docs/guides/replicas.md")).unwrap();
    let (_, block) = guide.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    fs::write(&values, block).unwrap();
    chart.run(&["lint", "--strict"], &values).succeeded();
    assert_eq!(of_kind(&chart.manifests(&values), "Deployment")["spec"]["replicas"], 2);
}

/// The configuration in the manifests.
#[track_caller]
fn configuration(manifests: &[Value]) -> String {
    of_kind(manifests, "ConfigMap")["data"]["creole.toml"].as_str().unwrap().to_owned()
}

#[test]
fn the_configuration_of_every_file_of_values_is_accepted() {
    let Some(chart) = HelmChart::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("secrets");
    fs::create_dir(&secrets).unwrap();
    write_secrets(&secrets);
    let mut refused = Vec::new();
    for values in values_files("tests") {
        let name = values.file_stem().unwrap().to_str().unwrap().to_owned();
        let manifests = chart.manifests(&values);
        let check =
            &of_kind(&manifests, "Deployment")["spec"]["template"]["spec"]["initContainers"][0];
        let text = configuration(&manifests);
        let local = secrets.display().to_string();
        let text = text.replace("/run/secrets/creole-tls", &local);
        fs::write(folder.path().join("creole.toml"), text.replace("/run/secrets/creole", &local))
            .unwrap();
        let flags = check["args"].as_array().unwrap().iter().skip(3);
        let flags: Vec<_> = flags.map(|flag| flag.as_str().unwrap()).collect();
        let script = format!("creole config check creole.toml {}", flags.join(" "));
        let mut command = shell(folder.path(), &script);
        let checked = FinishedCommand::run(command.env("POD_IP", "10.1.2.3"), "");
        if checked.code != Some(0) {
            refused.push((name, checked.stderr));
        }
    }
    // The address is reachable, and these values say nothing about callers.
    let [(name, reason)] = refused.as_slice() else { panic!("{refused:#?}") };
    assert!(name == "defaults" && reason.contains("[auth]"), "{name}: {reason}");
}

/// The files that the configurations name.
fn write_secrets(folder: &Path) {
    fs::write(folder.join("seal"), "0123456789abcdef".repeat(4)).unwrap();
    fs::write(folder.join("state-password"), "secret").unwrap();
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("tls.crt"), certificate.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), certificate.signing_key.serialize_pem()).unwrap();
    let mut passwd = shell(folder, "creole passwd users ada");
    FinishedCommand::run(&mut passwd, "correct horse battery staple").succeeded();
}
