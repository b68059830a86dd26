//! The files that the full configuration names.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// The OpenAPI document that it names.
pub(crate) const DOCUMENT: &str = "\
openapi: 3.0.3
servers: [{url: 'https://example.com'}]
paths:
  /pets: {get: {operationId: listPets}}
  /pets/{id}: {get: {operationId: getPet}}
components:
  securitySchemes:
    key: &key {type: apiKey, in: header, name: X-Key}
    token: &token {type: http, scheme: bearer}
    basic: &basic {type: http, scheme: basic}
    oauth: &oauth {type: oauth2, flows: {}}
    other_oauth: *oauth
    other_key: *key
    other_token: *token
    other_basic: *basic
";

/// A self-signed certificate; only its form matters.
const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBjzCCATWgAwIBAgIUEO/tObp71bKpZ5W4n0agjL96/P8wCgYIKoZIzj0EAwIw
HDEaMBgGA1UEAwwRYXV0aG9yaXR5LmV4YW1wbGUwIBcNMjYxMTE3MTkzMDM1WhgP
MjEyNjEwMjQxOTMwMzVaMBwxGjAYBgNVBAMMEWF1dGhvcml0eS5leGFtcGxlMFkw
EwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEuwDJsa0fjO9CWQtG2yQV2fZSldmeVBYW
28kPY8EOeDj5ICh+veimBa/9w7zWORgi8B9z6KVRPUiQqZigDc9246NTMFEwHQYD
VR0OBBYEFIq+xrTBUo4914hqwB8fHs4SGw+BMB8GA1UdIwQYMBaAFIq+xrTBUo49
14hqwB8fHs4SGw+BMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIh
AMlbMFyv5oT8wbJ0LX97CMZ4wfwlk9gVWSgI8zVW0wplAiA5Ku+ooYOtAO2HYoaY
HUT1JeEcvq0GE9jgVBeAzYf5YA==
-----END CERTIFICATE-----
";

/// The private key of a client, made for these tests.
const CLIENT_KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgyeCfkhRa/qchX+lo
5VmDP23IS2uavK+yq+obzN8aSjWhRANCAAT61sshxG68R9YWIeTO9NWo2txtb5Zi
+pjmgBQji39akPT3b2XFvHv9fvRVUievK9lJl0VvinYkbVi4cR/UwwtV
-----END PRIVATE KEY-----
";

/// The keys of an issuer (RFC 7515, appendix A.3).
const KEYS: &str = r#"{ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "a",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" }] }"#;

/// A folder with the files that it names.
pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), DOCUMENT).unwrap();
    fs::write(folder.path().join("key.txt"), "x").unwrap();
    fs::write(folder.path().join("authority.pem"), AUTHORITY).unwrap();
    fs::write(folder.path().join("keys.json"), KEYS).unwrap();
    let key = folder.path().join("client.pem");
    fs::write(&key, CLIENT_KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(folder.path().join("front.js"), "function request(call, next) { return next(call) }")
        .unwrap();
    fs::write(folder.path().join("slug.js"), "function tool() { return 'x' }").unwrap();
    folder
}
