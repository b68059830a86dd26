//! One run of a program: writes its input, reads its output within limits, reports progress, and ends it with all its
//! child processes.

use std::ffi::OsString;
use std::pin::pin;
use std::time::Duration;

use creole::client::Program;
use creole::internal::process::{Child, ChildInput, ChildOutput, Exit, StderrTail};
use creole::{Context, Schema, ToolError, ToolResult};
use tokio::time::timeout;

use super::{CommandRunner, argv};
use crate::recipe::argument::ArgumentValues;
use crate::recipe::secret::{Secret, redact};
use crate::recipe::tool_result::{head_of, tail_of, to_tool_result};

/// The size of one read.
const CHUNK_BYTES: usize = 64 * 1024;
/// Maximum time for the output to arrive after the program has ended: other processes may hold it open.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the last lines of stderr to arrive.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum length of a line that is reported as progress, in bytes.
const MAX_LINE_BYTES: usize = 1024;

impl CommandRunner {
    /// Runs the program. Dropping the future ends it.
    pub(crate) async fn run(
        &self,
        values: &ArgumentValues<'_>,
        max_length: usize,
        output: Option<&Schema>,
        context: &Context,
    ) -> Result<ToolResult, ToolError> {
        let (program, secrets) = self.prepare(values)?;
        let input = match &self.recipe.stdin {
            Some(template) => template.fill(|name| values.to_text(name)).unwrap_or_default(),
            None => String::new(),
        };
        let _permit = self.permits.acquire().await?;
        let started = Child::start(&program).await;
        let (child, stdin, stdout) = started.map_err(|fault| ToolError::failed(fault.detail))?;
        let tail = child.tail().clone();
        let work = communicate(&child, stdin, stdout, input.as_bytes(), max_length);
        let (bytes, exit) = tokio::select! {
            done = work => done?,
            never = report_progress(&tail, context, &secrets), if self.recipe.progress => match never {},
        };
        tail.wait_complete(STDERR_TIMEOUT).await;
        // No child process outlives the call.
        child.stop().await;
        match exit {
            Exit::Code(code) if self.recipe.success_codes.contains(&code) => {
                to_tool_result(&self.recipe.result, bytes, output)
            }
            exit => Err(failure(exit, &tail, &bytes, &secrets)),
        }
    }

    /// The program with its arguments and environment, and the secrets to redact.
    fn prepare(&self, values: &ArgumentValues<'_>) -> Result<(Program, Vec<Secret>), ToolError> {
        let argv = argv::build_argv(&self.recipe.words, values)?;
        let mut program = self.program.clone().args(argv);
        for name in &self.recipe.env_pass {
            program.env.extend(std::env::var_os(name).map(|value| (OsString::from(name), value)));
        }
        let mut secrets = Vec::new();
        for (name, held) in &self.recipe.env {
            let secret = held.get()?;
            program = program.env(name, &secret.0);
            secrets.push(secret);
        }
        Ok((program, secrets))
    }
}

/// Writes the input and reads the output until the program has ended.
async fn communicate(
    child: &Child,
    stdin: ChildInput,
    stdout: ChildOutput,
    input: &[u8],
    max_length: usize,
) -> Result<(Vec<u8>, Exit), ToolError> {
    let mut bytes = Vec::new();
    let is_whole = {
        let talk =
            async { tokio::join!(feed(stdin, input), read(stdout, &mut bytes, max_length)).1 };
        let mut talk = pin!(talk);
        tokio::select! {
            is_whole = &mut talk => is_whole,
            _ = child.wait_for_exit() => timeout(OUTPUT_TIMEOUT, talk).await.unwrap_or(true),
        }
    };
    if !is_whole {
        let text = head_of(&String::from_utf8_lossy(&bytes));
        let message = format!(
            "the program wrote more than {max_length} bytes and was stopped; the \
            output begins with:\n{text}"
        );
        return Err(ToolError::failed(message));
    }
    Ok((bytes, child.wait_for_exit().await))
}

/// Writes the program's input. A program that does not read it is no error.
async fn feed(stdin: ChildInput, mut input: &[u8]) {
    while !input.is_empty() {
        match stdin.write(input).await {
            Ok(written) => input = &input[written..],
            Err(_) => return,
        }
    }
}

/// Reads to the end; false if the output exceeds the limit.
async fn read(mut stdout: ChildOutput, bytes: &mut Vec<u8>, max_length: usize) -> bool {
    loop {
        let available = (max_length + 1).saturating_sub(bytes.len());
        match stdout.read(bytes, available.min(CHUNK_BYTES)).await {
            Ok(0) | Err(_) => return true,
            Ok(_) if bytes.len() > max_length => {
                bytes.truncate(max_length);
                return false;
            }
            Ok(_) => {}
        }
    }
}

/// Reports the lines on stderr as progress. Of several that arrive at once, the last is reported.
async fn report_progress(
    tail: &StderrTail,
    context: &Context,
    secrets: &[Secret],
) -> std::convert::Infallible {
    let mut seen = 0;
    while let Some(lines) = tail.wait_lines_after(seen).await {
        seen = lines;
        let line = redact(&tail.last_line().unwrap_or_default(), secrets);
        let line = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
        context.progress(lines as f64, None, Some(line)).await;
    }
    std::future::pending().await
}

/// The error for the model about a failed program.
fn failure(exit: Exit, tail: &StderrTail, bytes: &[u8], secrets: &[Secret]) -> ToolError {
    let how = match exit {
        Exit::Code(code) => format!("the program exited with code {code}"),
        Exit::Signal(signal) => format!("the program was killed by signal {signal}"),
        Exit::Unknown => "the program exited".to_owned(),
    };
    let text = match tail.text() {
        text if text.is_empty() => String::from_utf8_lossy(bytes).into_owned(),
        text => text,
    };
    let text = tail_of(&redact(&text, secrets));
    ToolError::failed(if text.is_empty() { how } else { format!("{how}:\n{text}") })
}
