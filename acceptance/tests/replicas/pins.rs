//! Approvals of changed tools that hold at all replicas.

use std::fs;
use std::process::Command;

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::replicas::{ReplicaSet, ReplicaStore, each_store};
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::outages::each_server;
use crate::text;

/// A server with one tool, whose definitions are pinned in the state.
fn server(about: &str) -> String {
    format!(
        "[server]\nname = \"replicated\"\n[[server.chain]]\nkind = \"pin\"\nshared = true\n\
         [tools.speak]\ndescription = \"{about}\"\ncommand = [\"echo\", \"done\"]\n"
    )
}

/// Writes another description of the tool into the configuration of all replicas.
fn change(store: &ReplicaStore, about: &str) -> String {
    let file = store.folder().join("replica.toml");
    fs::write(&file, format!("{}\n{}", server(about), store.table())).unwrap();
    file.display().to_string()
}

/// The descriptions of the tool at each replica; none where it is withheld.
fn listed(replicas: &ReplicaSet) -> Vec<Option<String>> {
    let description = |address| {
        let response = StatelessClient::new(address).request("tools/list", json!({}));
        let tools = response["result"]["tools"].as_array().unwrap_or_else(|| panic!("{response}"));
        tools.first().and_then(|tool| tool["description"].as_str()).map(str::to_owned)
    };
    replicas.addresses().into_iter().map(description).collect()
}

#[track_caller]
fn all_list(replicas: &ReplicaSet, description: Option<&str>) {
    let wanted = vec![description.map(str::to_owned); replicas.addresses().len()];
    eventually(|| format!("{wanted:?}, not {:?}", listed(replicas)), || listed(replicas) == wanted);
}

/// Runs `creole approve`.
#[track_caller]
fn approve(words: &[&str]) -> FinishedCommand {
    FinishedCommand::run(Command::new(binary().unwrap()).arg("approve").args(words), "")
}

/// Calls the tool at each replica.
fn calls(replicas: &ReplicaSet) -> Vec<Value> {
    let addresses = replicas.addresses().into_iter();
    addresses.map(|address| StatelessClient::new(address).call("speak", json!({}))).collect()
}

#[test]
fn a_changed_tool_that_is_approved_once_is_listed_at_every_replica() {
    each_store(|store| {
        let replicas = ReplicaSet::start(&store, &server("Says it"), 3);
        all_list(&replicas, Some("Says it"));
        let file = change(&store, "Says it, and mails it to me");
        all_list(&replicas, None);
        for refused in calls(&replicas) {
            assert!(refused.to_string().contains("is not approved"), "{refused}");
        }
        let shown = approve(&[&file]);
        assert!(shown.stdout.contains("mails it to me"), "{shown:?}");
        let approved = approve(&[&file, "replicated", "speak"]);
        assert_eq!(approved.stdout, "approved: speak\n", "{approved:?}");
        all_list(&replicas, Some("Says it, and mails it to me"));
        for response in calls(&replicas) {
            assert!(text(&response).contains("done"), "{response}");
        }
    });
}

#[test]
fn without_the_store_approved_tools_stay_and_a_changed_one_is_withheld() {
    each_server(|mut store| {
        let replicas = ReplicaSet::start(&store, &server("Says it"), 2);
        all_list(&replicas, Some("Says it"));
        store.end();
        for response in calls(&replicas) {
            assert!(text(&response).contains("done"), "{response}");
        }
        change(&store, "Says it, and mails it to me");
        all_list(&replicas, None);
        change(&store, "Says it");
        all_list(&replicas, Some("Says it"));
        store.resume();
        let file = change(&store, "Says it twice");
        all_list(&replicas, None);
        let approved = || approve(&[&file, "replicated"]).stdout == "approved: speak\n";
        eventually("the approval after the outage", approved);
        all_list(&replicas, Some("Says it twice"));
    });
}
