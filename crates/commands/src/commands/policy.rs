//! `creole policy`: tests and explains the policy of a configuration. Nothing is started.

mod catalogue;
mod test;

use std::path::Path;
use std::sync::Arc;

use creole_config::{ConfigSource, Plan};
use creole_policy::cel::Moment;
use creole_policy::{
    Decision, Effect, Explanation, Policy, Request, RuleOutcome, Subject, TargetKind, Verdict,
    parse_arguments,
};
use serde_json::{Map, Value, json};

use crate::args::{PolicyCallerArgs, PolicyCommand, PolicyExplainArgs, PolicyListArgs};
use crate::failure::Failure;
use crate::output;
use catalogue::Catalogue;

/// Runs the verb.
pub(crate) fn run(command: &PolicyCommand) -> Result<(), Failure> {
    match command {
        PolicyCommand::Test(args) => test::run(args),
        PolicyCommand::Explain(args) => explain(args),
        PolicyCommand::List(args) => list(args),
    }
}

/// A policy, and the names of the servers that it applies to.
struct LoadedPolicy {
    policy: Policy,
    servers: Vec<String>,
}

impl LoadedPolicy {
    fn load(file: &Path) -> Result<Self, Failure> {
        let plan = Plan::load(ConfigSource::File(file), &creole_config::packs())?;
        let Some(settings) = &plan.policy else {
            let message = format!("`{}` has no policy; add a table `[policy]`", file.display());
            return Err(Failure::Refused(message));
        };
        let policy = Policy::compile(settings);
        let policy = policy.map_err(|error| Failure::Refused(error.to_string()))?;
        let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
        Ok(Self { policy, servers: servers.map(|server| server.name.clone()).collect() })
    }

    /// The server of this name, or the first one.
    fn server(&self, name: Option<&str>) -> Result<&str, Failure> {
        let found = match name {
            Some(name) => self.servers.iter().find(|server| *server == name),
            None => self.servers.first(),
        };
        found.map(String::as_str).ok_or_else(|| {
            let known = self.servers.join(", ");
            let name = name.unwrap_or_default();
            Failure::Usage(format!("unknown server `{name}`; the configuration has {known}"))
        })
    }
}

fn explain(args: &PolicyExplainArgs) -> Result<(), Failure> {
    let loaded = LoadedPolicy::load(&args.file)?;
    let subject = subject(&args.caller)?;
    let (kind, name) = match (&args.call, &args.read, &args.prompt) {
        (Some(tool), ..) => (TargetKind::Tool, tool),
        (_, Some(uri), _) => (TargetKind::Resource, uri),
        (_, _, Some(name)) => (TargetKind::Prompt, name),
        _ => return Err(Failure::Usage("write --call, --read or --prompt".to_owned())),
    };
    let arguments = parse_arguments(args.object.as_deref().unwrap_or("{}"));
    let arguments = arguments.map_err(|error| Failure::Usage(format!("--args: {error}")))?;
    let now = match &args.now {
        None => Moment::now(),
        Some(text) => Moment::parse(text).ok_or_else(|| {
            Failure::Usage(format!("--now: `{text}` is not a time like 2026-11-18T12:00:00Z"))
        })?,
    };
    let catalogue = Catalogue::load(args.caller.catalogue.as_deref())?;
    let server = loaded.server(args.caller.server.as_deref())?;
    let request = Request {
        server,
        method: method_of(kind),
        item: Some((kind, name)),
        annotations: catalogue.annotations(name),
        arguments: Some(&arguments),
        now,
    };
    let explanation = loaded.policy.explain(&subject, &request);
    if args.caller.json {
        let value = explanation_json(&explanation);
        return output::write_data(&format!("{value:#}\n"));
    }
    let mut lines = vec![format!("{}: {}", name, decision_text(&explanation))];
    let width = explanation.rules.iter().map(|(rule, ..)| rule.len()).max().unwrap_or(0);
    for (rule, effect, outcome) in &explanation.rules {
        lines.push(format!(
            "  {:5}  {rule:width$}  {}",
            effect.name(),
            outcome_text(*effect, outcome)
        ));
    }
    output::write_data(&output::printable(&format!("{}\n", lines.join("\n"))))
}

fn list(args: &PolicyListArgs) -> Result<(), Failure> {
    let loaded = LoadedPolicy::load(&args.file)?;
    let subject = subject(&args.caller)?;
    let server = loaded.server(args.caller.server.as_deref())?;
    let catalogue = Catalogue::load(args.caller.catalogue.as_deref())?;
    let items = catalogue.items(&loaded.policy);
    let none = Value::Object(Map::new());
    let mut rows = Vec::new();
    for (kind, name) in &items {
        let request = Request {
            server,
            method: method_of(*kind),
            item: Some((*kind, name)),
            annotations: catalogue.annotations(name),
            arguments: Some(&none),
            now: Moment::now(),
        };
        rows.push((*kind, name, loaded.policy.verdict(&subject, &request)));
    }
    if args.caller.json {
        let row = |(kind, name, verdict): &(TargetKind, &String, Verdict)| {
            let (word, rule) = verdict_words(verdict);
            json!({ "kind": kind_name(*kind), "name": name, "use": word, "rule": rule })
        };
        let rows: Vec<Value> = rows.iter().map(row).collect();
        return output::write_data(&format!("{:#}\n", Value::Array(rows)));
    }
    let line = |(kind, name, verdict): &(TargetKind, &String, Verdict)| {
        let (word, rule) = verdict_words(verdict);
        let reason = rule.map(|rule| format!("  ({rule})")).unwrap_or_default();
        format!("{word:7}  {:8}  {name}{reason}", kind_name(*kind))
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("The rules name no items; `--catalogue` names those of the server.".to_owned());
    }
    output::write_data(&output::printable(&format!("{}\n", lines.join("\n"))))
}

fn subject(args: &PolicyCallerArgs) -> Result<Subject, Failure> {
    let texts = |all: &[String]| all.iter().map(|text| Arc::from(&**text)).collect::<Vec<_>>();
    let own = Subject::new(&args.id);
    let claims = match &args.claims {
        None => Map::new(),
        Some(file) => match catalogue::read_json(file)? {
            Value::Object(claims) => claims,
            _ => {
                let message = format!("`{}` is not a JSON object of claims", file.display());
                return Err(Failure::Usage(message));
            }
        },
    };
    let has_token = own.issuer.is_some() || !args.scopes.is_empty();
    Ok(Subject {
        roles: texts(&args.roles),
        scopes: has_token.then(|| texts(&args.scopes)),
        client: args.client.as_deref().map(Arc::from),
        claims,
        ..own
    })
}

fn method_of(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Tool => "tools/call",
        TargetKind::Resource => "resources/read",
        TargetKind::Prompt => "prompts/get",
        TargetKind::Task => "tasks/get",
    }
}

fn kind_name(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Tool => "tool",
        TargetKind::Resource => "resource",
        TargetKind::Prompt => "prompt",
        TargetKind::Task => "task",
    }
}

fn verdict_words(verdict: &Verdict) -> (&'static str, Option<&str>) {
    match verdict {
        Verdict::Yes => ("yes", None),
        Verdict::Depends => ("depends", None),
        Verdict::No(rule) => ("no", Some(rule)),
    }
}

/// The decision in one word, with the rule that made it and the scopes that are missing.
fn decision_words(explanation: &Explanation) -> (&'static str, &str, &[Arc<str>]) {
    match &explanation.decision {
        Decision::Allowed(rule) => ("allow", rule, &[]),
        Decision::Denied(denial) if explanation.is_hidden => ("hidden", &denial.rule, &[]),
        Decision::Denied(denial) => ("deny", &denial.rule, &[]),
        Decision::Challenge { rule, required } => ("challenge", rule, required),
    }
}

fn decision_text(explanation: &Explanation) -> String {
    let (word, rule, scopes) = decision_words(explanation);
    match word {
        "allow" => format!("allowed by `{rule}`"),
        "hidden" => format!("hidden by `{rule}`; the caller is told that it does not exist"),
        "challenge" => format!("`{rule}` demands the scopes {}", scopes.join(" ")),
        _ => match &explanation.decision {
            Decision::Denied(denial) => format!("denied by `{rule}`: {}", denial.message),
            _ => format!("denied by `{rule}`"),
        },
    }
}

fn outcome_text(effect: Effect, outcome: &RuleOutcome) -> String {
    match outcome {
        RuleOutcome::OtherCaller(member) => format!("does not match: `{member}`"),
        RuleOutcome::OtherItem => "is about other requests".to_owned(),
        RuleOutcome::NotWhen => "does not match: `when` is false".to_owned(),
        RuleOutcome::Failed(reason) if effect == Effect::Deny => {
            format!("matches: `when` cannot be evaluated ({reason})")
        }
        RuleOutcome::Failed(reason) => {
            format!("does not match: `when` cannot be evaluated ({reason})")
        }
        RuleOutcome::MissingScopes(scopes) => {
            format!("would match with the scopes {}", scopes.join(" "))
        }
        RuleOutcome::Matches => "matches".to_owned(),
    }
}

fn explanation_json(explanation: &Explanation) -> Value {
    let (decision, rule, scopes) = decision_words(explanation);
    let scopes: Vec<&str> = scopes.iter().map(|scope| &**scope).collect();
    let rules = explanation.rules.iter().map(|(name, effect, outcome)| {
        let text = outcome_text(*effect, outcome);
        json!({ "name": &**name, "effect": effect.name(), "outcome": text })
    });
    let rules: Vec<Value> = rules.collect();
    json!({ "decision": decision, "rule": rule, "scopes": scopes, "rules": rules })
}
