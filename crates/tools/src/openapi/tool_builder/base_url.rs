//! The base URL of a service: from the configuration, or from the document if it is trusted.

use std::net::IpAddr;

use crate::openapi::document_set::Node;
use crate::openapi::settings::ApiSettings;
use crate::openapi::{ApiError, SettingsPart};

/// The base URL of the service, without a trailing slash.
pub(crate) fn resolve_base(settings: &ApiSettings, document: Node<'_>) -> Result<String, ApiError> {
    if let Some(base) = &settings.base {
        return Ok(base.trim_end_matches('/').to_owned());
    }
    let text = first_server_url(document);
    if !settings.trust_servers {
        let help = match &text {
            Some(text) if check_base_url(text, settings.allow_private).is_ok() => format!(
                "write `base_url = \"{text}\"`, or `trust_servers = true` to use the URL in the \
                    document"
            ),
            _ => "write `base_url = \"https://…\"`".to_owned(),
        };
        return Err(ApiError::new(
            SettingsPart::Document,
            "the URL of the service is not configured",
        )
        .help(help));
    }
    let text = text.ok_or_else(|| {
        ApiError::new(SettingsPart::Document, "the document has no URL of the service")
            .help("write `base_url = \"https://…\"`")
    })?;
    check_base_url(&text, settings.allow_private).map_err(|reason| {
        ApiError::new(
            SettingsPart::Document,
            format!("the document has the service URL `{text}`, {reason}"),
        )
        .help("write `base_url = \"https://…\"` if this URL is correct")
    })?;
    Ok(text.trim_end_matches('/').to_owned())
}

/// The host of an operation, if it differs from the document's.
pub(crate) fn other_host(
    operation: Node<'_>,
    item: Node<'_>,
    document: Node<'_>,
) -> Option<String> {
    let own = first_server_url(operation).or_else(|| first_server_url(item))?;
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
    let (own, default_value) =
        (host(&own), first_server_url(document).map(|url| host(&url)).unwrap_or_default());
    (!own.is_empty() && own != default_value).then_some(own)
}

/// The first server, with the default values of its variables.
fn first_server_url(node: Node<'_>) -> Option<String> {
    let server = node.get("servers")?.items().next()?;
    let mut url = server.text("url")?.to_owned();
    for (name, variable) in server.get("variables").into_iter().flat_map(Node::members) {
        url = url.replace(&format!("{{{name}}}"), variable.text("default").unwrap_or_default());
    }
    Some(url)
}

/// Checks whether a document may direct requests to this URL.
fn check_base_url(url: &str, allow_private: bool) -> Result<(), &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.ok_or("which is not an absolute URL")?.split('/').next().unwrap_or_default();
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}?#@\\".contains(&byte));
    if host.is_empty() || !is_plain {
        return Err("which is not an absolute URL");
    }
    let name = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_digits = name
        .split('.')
        .next_back()
        .is_some_and(|last| last.starts_with(|first: char| first.is_ascii_digit()));
    let is_here = name.trim_end_matches('.').eq_ignore_ascii_case("localhost");
    match is_here || is_digits || name.parse::<IpAddr>().is_ok() {
        true if !allow_private => {
            Err("and an IP address or `localhost` is not accepted from documents")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::openapi::settings::DocumentSource;

    fn resolve(url: &str, trust: bool, allow_private: bool) -> Result<String, String> {
        let document =
            json!({ "servers": [{ "url": url, "variables": { "v": { "default": "eu" } } }] });
        let settings = ApiSettings {
            trust_servers: trust,
            allow_private,
            ..ApiSettings::new("x", DocumentSource::Url("x".into()))
        };
        resolve_base(&settings, Node { value: &document, file: 0 }).map_err(|error| error.message)
    }

    #[test]
    fn a_document_is_believed_only_where_it_is_trusted_and_never_on_addresses() {
        assert_eq!(resolve("https://{v}.x.org/v1/", true, false).unwrap(), "https://eu.x.org/v1");
        assert!(resolve("https://x.org", false, false).is_err());
        for url in [
            "http://127.0.0.1:80",
            "http://localhost/x",
            "http://LOCALHOST.",
            "http://[::1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://169.254.169.254/latest",
            "/v1",
            "ftp://x",
            "https://u@x.org",
            "https://{x}.org",
        ] {
            assert!(resolve(url, true, false).is_err(), "{url}");
        }
        assert!(resolve("http://127.0.0.1:80", true, true).is_ok());
    }

    #[test]
    fn an_operation_may_be_served_elsewhere() {
        let document = json!({ "servers": [{ "url": "https://api.x.org" }] });
        let (none, own) = (json!({}), json!({ "servers": [{ "url": "https://up.x.org" }] }));
        let node = |value| Node { value, file: 0 };
        assert_eq!(other_host(node(&own), node(&none), node(&document)).unwrap(), "up.x.org");
        assert_eq!(other_host(node(&none), node(&document), node(&document)), None);
        assert_eq!(other_host(node(&none), node(&none), node(&document)), None);
    }
}
