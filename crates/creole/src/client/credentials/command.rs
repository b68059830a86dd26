//! Tokens that a program prints.

use std::pin::pin;
use std::time::Duration;

use creole_proto::fault::Fault;
use tokio::time::timeout;

use super::token::MAX_TEXT_BYTES;
use super::{Authorization, Credentials, Refusal, token};
use crate::chain::BoxFuture;
use crate::process::{Child, ChildOutput, Exit, Program};

/// How long the program's last standard error output may take to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// A program that writes a token to its standard output; the token is sent as `Bearer`. It is started without a shell
/// and with the environment of a child, gets no input, and is ended with its descendants if it takes too long.
#[derive(Clone, Debug)]
pub struct TokenCommand {
    program: Program,
}

impl TokenCommand {
    /// The program that prints the token for the server of its name.
    pub fn new(program: Program) -> Self {
        // Its standard error may hold secrets, so it is not logged.
        Self { program: Program { log_stderr: false, ..program } }
    }
}

impl Credentials for TokenCommand {
    fn fetch(
        &self,
        refusal: Option<Refusal>,
    ) -> BoxFuture<'static, Result<Option<Authorization>, Fault>> {
        let program = self.program.clone();
        let refused = refusal.and_then(|refusal| refusal.authorization);
        Box::pin(async move { run(&program, refused.as_ref()).await.map(Some) })
    }
}

async fn run(program: &Program, refused: Option<&Authorization>) -> Result<Authorization, Fault> {
    let name = &program.name;
    let (child, stdin, stdout) = Child::start(program).await.map_err(|fault| {
        // The path of the program is not for callers.
        let reason =
            fault.detail.rsplit_once("` ").map_or("could not be started", |(_, reason)| reason);
        token::missing_token(name, &format!("the program {reason}"))
    })?;
    drop(stdin);
    let text = collect_output(&child, stdout).await;
    if text.len() > MAX_TEXT_BYTES {
        return Err(token::missing_token(name, "the program wrote more than 16 KiB"));
    }
    let how = match child.wait_for_exit().await {
        Exit::Code(0) => {
            let wrong = |invalid| {
                token::missing_token(name, &format!("the output of the program {invalid}"))
            };
            return token::parse_token(&text).map_err(wrong);
        }
        Exit::Code(code) => format!("the program exited with code {code}"),
        Exit::Signal(signal) => format!("the program was killed by signal {signal}"),
        Exit::Unknown => "the program exited".to_owned(),
    };
    child.tail().wait_complete(STDERR_TIMEOUT).await;
    let output = String::from_utf8_lossy(token::first_line(&text));
    let secrets = [refused.map_or("", Authorization::secret), &output];
    // Its output goes to the operator only, not to callers.
    let printed = token::redact(&child.tail().text(), &secrets);
    tracing::error!(upstream = %name, printed, "cannot get a token: {how}");
    Err(token::missing_token(name, &how))
}

/// Its output until it ends. Other processes may hold the pipe open longer.
async fn collect_output(child: &Child, stdout: ChildOutput) -> Vec<u8> {
    let mut text = Vec::new();
    {
        let mut reading = pin!(read(stdout, &mut text));
        tokio::select! {
            () = &mut reading => {}
            _ = child.wait_for_exit() => drop(timeout(STDERR_TIMEOUT, reading).await),
        }
    }
    text
}

/// Reads to the end, up to a little more than the limit.
async fn read(mut stdout: ChildOutput, text: &mut Vec<u8>) {
    while text.len() <= MAX_TEXT_BYTES {
        let available = MAX_TEXT_BYTES + 1 - text.len();
        if !matches!(stdout.read(text, available).await, Ok(1..)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> TokenCommand {
        TokenCommand::new(Program::new("site", "sh").args(["-c", script]))
    }

    async fn fetch_token(command: TokenCommand) -> Result<String, String> {
        let authorization = Authorization::bearer("old-canary");
        let fetched = command.fetch(Some(Refusal { authorization, ..Refusal::default() })).await;
        fetched.map(|it| it.unwrap().secret().to_owned()).map_err(|fault| fault.detail)
    }

    #[tokio::test]
    async fn a_program_prints_a_token_and_its_failures_contain_none() {
        assert_eq!(fetch_token(sh("echo token; echo more")).await.as_deref(), Ok("token"));
        assert_eq!(fetch_token(sh("echo token; sleep 60 &")).await.as_deref(), Ok("token"));
        assert_eq!(fetch_token(sh("cat; echo \"$CARGO_MANIFEST_DIR.\"")).await.as_deref(), Ok("."));
        let rows = [
            ("exit 3", "the program exited with code 3"),
            ("echo new-canary; echo new-canary >&2; exit 1", "the program exited with code 1"),
            ("kill -9 $$", "the program was killed by signal 9"),
            ("yes", "the program wrote more than 16 KiB"),
            ("true", "the output of the program begins with an empty line"),
        ];
        for (script, reason) in rows {
            let expected = format!("cannot get a token for `site`: {reason}");
            assert_eq!(fetch_token(sh(script)).await.unwrap_err(), expected, "{script}");
        }
        let nothing = TokenCommand::new(Program::new("site", "/no/such/canary"));
        let expected = "cannot get a token for `site`: the program does not exist";
        assert_eq!(fetch_token(nothing).await.unwrap_err(), expected);
    }
}
