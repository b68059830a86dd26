//! The configurations for identity providers in docs/identity-providers.md.

use std::fs;

use creole::auth::oauth::KeySource;
use creole_config::ConfigSource;

use super::load;

const DOCUMENT: &str = include_str!("../../../../docs/identity-providers.md");

#[test]
fn the_configurations_of_identity_providers_load() {
    let folder = tempfile::tempdir().unwrap();
    let blocks = DOCUMENT.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut labels = Vec::new();
    for text in blocks {
        let file = folder.path().join("creole.toml");
        fs::write(&file, text).unwrap();
        let plan =
            load(ConfigSource::File(&file)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let auth = plan.auth.unwrap();
        let [issuer] = &auth.issuers[..] else { panic!("one issuer: {text}") };
        let settings = &issuer.settings;
        assert!(settings.rules.takes_plain_jwt && settings.rules.roles_claim.is_some(), "{text}");
        assert_eq!(settings.keys, KeySource::Discovery);
        let resource = "https://mcp.example.com/mcp".to_owned();
        assert!(settings.audiences.as_ref().unwrap().contains(&resource), "{text}");
        labels.push(settings.label.to_string());
        if &*settings.label == "auth0" {
            assert!(settings.rules.issuer.ends_with('/'), "the slash belongs to it");
        }
        let subject = settings.rules.subject_claim.as_ref().map(|path| path.as_str());
        assert_eq!(subject, (&*settings.label == "entra").then_some("oid"));
    }
    assert_eq!(labels, ["keycloak", "auth0", "entra", "okta"]);
}
