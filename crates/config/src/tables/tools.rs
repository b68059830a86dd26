//! The tables `[tools.NAME]`: tools without code.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{ArgumentKind, HttpMethod, ItemKind, ResponseForm, ResultKind};
use crate::tables::script::ScriptTable;

/// A tool without code: a program that is run, a service that is asked over HTTP, or a script.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolTable {
    /// What the tool does, for the model that chooses it.
    pub description: Spanned<String>,
    /// A name for people, where clients show one.
    pub title: Option<Spanned<String>>,
    /// Whether it is offered at all. Default: true.
    pub enabled: Option<bool>,
    /// What it takes, by names of your own. `{name}` stands for the value.
    pub arguments: Option<Entries<Spanned<ArgumentTable>>>,
    /// It changes nothing. Told to clients.
    pub read_only: Option<bool>,
    /// It may destroy something. Told to clients.
    pub destructive: Option<bool>,
    /// Calling it twice is the same as once. Told to clients.
    pub idempotent: Option<bool>,
    /// It reaches the outside world. Told to clients.
    pub open_world: Option<bool>,
    /// The JSON Schema of the data that it returns. What does not fit is a failure.
    pub output_schema: Option<Spanned<Value>>,
    /// How long a call may take, in seconds; at most `call_timeout_seconds` of the server. Default: 50.
    pub timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// How many bytes a result may have. Default: 1048576.
    pub output_limit_bytes: Option<Ranged<1, 16_777_216>>,
    /// The program to run and its arguments; no shell is involved. This, `http` or `script`.
    pub command: Option<Spanned<Vec<Spanned<CommandWord>>>>,
    /// Lets placeholders stand in the script of a shell or an interpreter, such as `["sh", "-c", "{script}"]`: callers
    /// then run any program. Default: false. Only with `command`.
    pub dangerously_let_callers_write_scripts: Option<Spanned<bool>>,
    /// What the program reads. Only with `command`.
    pub stdin: Option<Spanned<String>>,
    /// Variables that the program is given. Only with `command`.
    pub env: Option<Spanned<Entries<Spanned<String>>>>,
    /// Variables whose values are in files, which are read at each call. Only with `command`.
    pub env_files: Option<Spanned<Entries<Spanned<String>>>>,
    /// Variables of this process that the program is given too, by their names. Only with `command`.
    pub env_pass: Option<Spanned<Vec<Spanned<String>>>>,
    /// The folder that the program runs in, as seen from the folder of this file. Only with `command`.
    pub cwd: Option<Spanned<String>>,
    /// The exit codes that mean success. Default: 0 alone. Only with `command`.
    pub exit_codes: Option<Spanned<Vec<Ranged<0, 255>>>>,
    /// What the program writes. Default: `text`. Only with `command`.
    pub result: Option<Spanned<ResultKind>>,
    /// The media type of a picture. Only with `result = "image"`.
    pub mime_type: Option<Spanned<String>>,
    /// Whether the lines that the program writes to stderr are told as progress. Default: false. Only with `command`.
    pub progress: Option<Spanned<bool>>,
    /// How many of the program may run at the same time; others wait. Default: 16. Only with `command`.
    pub concurrency: Option<Spanned<Ranged<1, 1000>>>,
    /// The service to ask. This, `command` or `script`.
    pub http: Option<Spanned<HttpToolTable>>,
    /// The database to ask, by its name in `[databases]`. Only with `query`.
    pub database: Option<Spanned<String>>,
    /// One statement that reads. `{name}` is a parameter; an argument that a call does not have is `NULL`.
    pub query: Option<Spanned<String>>,
    /// The JavaScript file whose function `tool` is called with the arguments. This, `command` or `http`.
    pub script: Option<Spanned<ScriptTable>>,
}

/// A word of a command, or several that belong together.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a word of a command is a text, a list of texts that belong together, or a table with `when` and `words`"
)]
pub enum CommandWord {
    /// One word. It is left out where it names an argument that a call does not have.
    Word(String),
    /// Words that are left out together.
    Words(Vec<String>),
    /// Words that are there where a yes-or-no argument is true.
    When(WhenTable),
}

/// Words that are there where a yes-or-no argument is true.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhenTable {
    /// The argument.
    pub when: String,
    /// The words.
    pub words: Vec<String>,
}

/// One argument of a tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentTable {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: Spanned<ArgumentKind>,
    /// What it means, for the model.
    pub description: Option<String>,
    /// Whether a call must have it. Default: true, unless there is a `default`.
    pub required: Option<Spanned<bool>>,
    /// What holds where a call does not have it.
    pub default: Option<Spanned<Value>>,
    /// The values that there are.
    #[serde(rename = "enum")]
    pub choices: Option<Spanned<Vec<Value>>>,
    /// The least number.
    pub minimum: Option<Spanned<f64>>,
    /// The greatest number.
    pub maximum: Option<Spanned<f64>>,
    /// The least number of characters.
    pub min_length: Option<Spanned<Ranged<0, 1_048_576>>>,
    /// The greatest number of characters.
    pub max_length: Option<Spanned<Ranged<0, 1_048_576>>>,
    /// The regular expression that a text must have a match of.
    pub pattern: Option<Spanned<String>>,
    /// What the items of a list are. Default: `string`.
    pub items: Option<Spanned<ItemKind>>,
    /// The least number of items.
    pub min_items: Option<Spanned<Ranged<0, 10_000>>>,
    /// The greatest number of items.
    pub max_items: Option<Spanned<Ranged<0, 10_000>>>,
    /// Whether a program may be given a value that begins with `-`, which it could take for an option. Default: false.
    pub leading_dash: Option<bool>,
}

/// A service that is asked over HTTP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpToolTable {
    /// The method. Default: `GET`.
    pub method: Option<HttpMethod>,
    /// The address. Placeholders may stand in its path and behind it, not in its host.
    pub url: Spanned<String>,
    /// Parameters behind the address. One whose argument a call does not have is left out; a list is repeated.
    pub query: Option<Entries<Spanned<String>>>,
    /// Headers.
    pub headers: Option<Entries<Spanned<String>>>,
    /// The body, sent as JSON. A string that is nothing but a placeholder stands for the value itself.
    pub body: Option<Spanned<Value>>,
    /// What is shown at the door.
    pub auth: Option<Spanned<HttpAuthTable>>,
    /// How often a request that may be repeated is tried again. Default: 2 for `GET`, otherwise 0.
    pub retries: Option<Spanned<Ranged<0, 5>>>,
    /// Whether the name of the host may lead to addresses of this machine or of private networks. An address that is
    /// written out, and `localhost`, need no permission. Default: false.
    pub allow_private: Option<bool>,
    /// The part of a JSON answer that counts, as a JSON pointer such as `/items/0`.
    pub pick: Option<Spanned<String>>,
    /// A template of the text that is made of the answer: `body`, `status` and `arguments` are known in it.
    pub template: Option<Spanned<String>>,
    /// What the result is. Default: what the service says of its answer.
    pub result: Option<ResponseForm>,
}

/// What is shown at the door of a service: a token, a name and a password, or a header.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpAuthTable {
    /// A token, sent as `Authorization: Bearer`.
    pub bearer: Option<Spanned<String>>,
    /// The file that holds the token.
    pub bearer_file: Option<Spanned<String>>,
    /// The name, sent with the password as `Authorization: Basic`.
    pub user: Option<Spanned<String>>,
    /// The password.
    pub password: Option<Spanned<String>>,
    /// The file that holds the password.
    pub password_file: Option<Spanned<String>>,
    /// The name of a header of the service's own.
    pub header: Option<Spanned<String>>,
    /// The value of that header.
    pub value: Option<Spanned<String>>,
    /// The file that holds the value.
    pub value_file: Option<Spanned<String>>,
}
