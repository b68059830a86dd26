//! The tables `[tools.NAME]`: tools that are defined in the configuration, and the script of a tool or a layer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{ArgumentKind, HttpMethod, ItemKind, ResponseForm, ResultKind};

/// A tool that is defined in the configuration: a program, an HTTP request, a database query or a script.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTable {
    /// The description of the tool, for the model.
    pub description: Spanned<String>,
    /// The display name, for clients that show one.
    pub title: Option<Spanned<String>>,
    /// Whether the tool is offered. Default: true.
    pub enabled: Option<bool>,
    /// The arguments of the tool. The key is the name of the argument. Other keys insert its value with the placeholder
    /// `{name}`.
    pub arguments: Option<Entries<Spanned<ArgumentTable>>>,
    /// The tool hint `readOnlyHint`: the tool changes nothing. Default: true with `query`, otherwise not set.
    pub read_only: Option<bool>,
    /// The tool hint `destructiveHint`: the tool may delete or overwrite data.
    pub destructive: Option<bool>,
    /// The tool hint `idempotentHint`: repeating a call has no further effect.
    pub idempotent: Option<bool>,
    /// The tool hint `openWorldHint`: the tool interacts with external systems.
    pub open_world: Option<bool>,
    /// The JSON Schema of the structured result. A call whose result does not match it fails.
    pub output_schema: Option<Spanned<Value>>,
    /// The maximum time of a call, in seconds. A call that takes longer fails. The value must not exceed the server's
    /// `call_timeout_seconds`. Default: 50.
    pub timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// The maximum size of a result, in bytes. A call with a larger result fails. The result of a `query` is cut to
    /// whole rows instead. Default: 1048576.
    pub output_limit_bytes: Option<Ranged<1, 16_777_216>>,
    /// The program to run and its arguments. No shell is used. Use one of `command`, `http`, `query` and `script`.
    pub command: Option<Spanned<Vec<Spanned<CommandWord>>>>,
    /// Allows placeholders in the script of a shell or an interpreter, such as `["sh", "-c", "{script}"]`. Callers can
    /// then run any program. Default: false. Only with `command`.
    pub dangerously_let_callers_write_scripts: Option<Spanned<bool>>,
    /// The text that the program reads from stdin. Only with `command`.
    pub stdin: Option<Spanned<String>>,
    /// Environment variables of the program. Only with `command`.
    pub env: Option<Spanned<Entries<Spanned<String>>>>,
    /// Environment variables whose values are in files. The key is the name of the variable, and the value is the file.
    /// The files are read at each call. Only with `command`.
    pub env_files: Option<Spanned<Entries<Spanned<String>>>>,
    /// Names of environment variables that the program inherits from this process. Only with `command`.
    pub env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    /// The working directory of the program. A relative path is resolved against the folder of this file. Only with
    /// `command`.
    pub cwd: Option<Spanned<String>>,
    /// The exit codes that mean success. Default: 0 only. Only with `command`.
    pub exit_codes: Option<Spanned<Vec<Ranged<0, 255>>>>,
    /// The format of the program's output. Default: `text`. Only with `command`.
    pub result: Option<Spanned<ResultKind>>,
    /// The media type of the image. Only with `result = "image"`.
    pub mime_type: Option<Spanned<String>>,
    /// Whether each line that the program writes to stderr is sent as a progress notification. Default: false. Only
    /// with `command`.
    pub progress: Option<Spanned<bool>>,
    /// The maximum number of concurrent runs of the program. Further calls wait. Default: 16. Only with `command`.
    pub concurrency: Option<Spanned<Ranged<1, 1000>>>,
    /// The HTTP request to send. Use one of `command`, `http`, `query` and `script`.
    pub http: Option<Spanned<HttpToolTable>>,
    /// The name of the database in `[databases]`. Only with `query`.
    pub database: Option<Spanned<String>>,
    /// One SQL statement that reads. `{name}` is a parameter. An argument that a call omits is `NULL`. Use one of
    /// `command`, `http`, `query` and `script`.
    pub query: Option<Spanned<String>>,
    /// The JavaScript file whose function `tool` is called with the arguments. Use one of `command`, `http`, `query`
    /// and `script`.
    pub script: Option<Spanned<ScriptTable>>,
}

/// One argument of the command line, or several that are omitted together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an argument of a command is a string, a list of strings, or a table with `when` \
        and `words`"
)]
pub enum CommandWord {
    /// One argument. It is omitted if it contains the placeholder of an argument that a call omits.
    Word(String),
    /// Arguments that are omitted together.
    Words(Vec<String>),
    /// Arguments that are passed if a boolean argument is true.
    When(WhenTable),
}

/// Arguments of the command line that are passed if a boolean argument of the tool is true.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhenTable {
    /// The name of the boolean argument.
    pub when: String,
    /// The arguments of the command line.
    pub words: Vec<String>,
}

/// One argument of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentTable {
    /// The type of the argument.
    #[serde(rename = "type")]
    pub kind: Spanned<ArgumentKind>,
    /// The description of the argument, for the model.
    pub description: Option<String>,
    /// Whether a call must have the argument. Default: true, unless `default` is set.
    pub required: Option<Spanned<bool>>,
    /// The value if a call omits the argument.
    pub default: Option<Spanned<Value>>,
    /// The allowed values.
    #[serde(rename = "enum")]
    pub choices: Option<Spanned<Vec<Value>>>,
    /// The minimum of a number.
    pub minimum: Option<Spanned<f64>>,
    /// The maximum of a number.
    pub maximum: Option<Spanned<f64>>,
    /// The minimum length of a string, in characters.
    pub min_length: Option<Spanned<Ranged<0, 1_048_576>>>,
    /// The maximum length of a string, in characters.
    pub max_length: Option<Spanned<Ranged<0, 1_048_576>>>,
    /// The regular expression that a string must contain a match of.
    pub pattern: Option<Spanned<String>>,
    /// The type of the items of an array. Default: `string`.
    pub items: Option<Spanned<ItemKind>>,
    /// The minimum number of items of an array.
    pub min_items: Option<Spanned<Ranged<0, 10_000>>>,
    /// The maximum number of items of an array.
    pub max_items: Option<Spanned<Ranged<0, 10_000>>>,
    /// Whether a value that begins with `-` may be passed to a program. The program could interpret it as an option.
    /// Default: false.
    pub leading_dash: Option<bool>,
}

/// The HTTP request of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpToolTable {
    /// The HTTP method. Default: `GET`.
    pub method: Option<HttpMethod>,
    /// The URL. Placeholders are allowed in the path and the query, not in the host.
    pub url: Spanned<String>,
    /// The query parameters. A parameter is omitted if a call omits its argument. An array becomes one parameter per
    /// item.
    pub query: Option<Entries<Spanned<String>>>,
    /// The headers.
    pub headers: Option<Entries<Spanned<String>>>,
    /// The body, which is sent as JSON. A string that consists of one placeholder is replaced by the value itself, with
    /// its type.
    pub body: Option<Spanned<Value>>,
    /// The credentials.
    pub auth: Option<Spanned<HttpAuthTable>>,
    /// The maximum number of retries of a request that is safe to repeat. Default: 2 for `GET`, otherwise 0.
    pub retries: Option<Spanned<Ranged<0, 5>>>,
    /// Whether the host name may resolve to addresses of this machine or of private networks. An IP address in `url`
    /// and `localhost` are always allowed. Default: false.
    pub allow_private: Option<bool>,
    /// The part of a JSON response that becomes the result, as a JSON pointer such as `/items/0`.
    pub pick: Option<Spanned<String>>,
    /// The template of the result text. It can use `body`, `status` and `arguments`.
    pub template: Option<Spanned<String>>,
    /// The format of the result. Default: the format that the service reports.
    pub result: Option<ResponseForm>,
}

/// Credentials for an HTTP service: a token, a user name and password, or a header.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpAuthTable {
    /// The token. It is sent as `Authorization: Bearer`.
    pub bearer: Option<Spanned<String>>,
    /// The file that contains the token.
    pub bearer_file: Option<Spanned<String>>,
    /// The user name. It is sent with the password as `Authorization: Basic`.
    pub user: Option<Spanned<String>>,
    /// The password.
    pub password: Option<Spanned<String>>,
    /// The file that contains the password.
    pub password_file: Option<Spanned<String>>,
    /// The name of a header that carries the credential.
    pub header: Option<Spanned<String>>,
    /// The value of that header.
    pub value: Option<Spanned<String>>,
    /// The file that contains the value of that header.
    pub value_file: Option<Spanned<String>>,
}

/// A JavaScript file whose functions are called. Each call has its own context, with the language and no other API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptTable {
    /// The JavaScript file. A relative path is resolved against the folder of this file. The configuration is reloaded
    /// when the file changes.
    pub file: Spanned<String>,
    /// The maximum processor time of one call, in milliseconds. Time spent waiting does not count. The call then fails.
    /// Default: 500.
    pub compute_ms: Option<Ranged<1, 60_000>>,
    /// The maximum memory of one call, in megabytes. The call then fails. Default: 32.
    pub memory_mb: Option<Ranged<1, 1024>>,
    /// The maximum number of concurrent calls. Further calls wait. Default: 100.
    pub concurrency: Option<Ranged<1, 10_000>>,
}
