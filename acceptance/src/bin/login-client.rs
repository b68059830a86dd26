//! A program that uses a stored login: `login-client FOLDER URL TOOL` calls a tool and prints the text of its result.

use std::process::ExitCode;
use std::sync::Arc;

use creole::client::oauth::{LoginMethod, LoginStore, OAuthCredentials, OAuthOptions};
use creole::client::{Address, Client, HttpAddress};
use serde_json::json;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its result")]
#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, url, tool] = &words[..] else {
        eprintln!("usage: login-client FOLDER URL TOOL");
        return ExitCode::from(2);
    };
    match call(folder, url, tool).await {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

async fn call(folder: &str, url: &str, tool: &str) -> Result<String, String> {
    let mut options = OAuthOptions::new(LoginMethod::Stored);
    options.store = Some(LoginStore::new(folder));
    let credentials = OAuthCredentials::new("protected", url, options);
    let credentials = credentials.map_err(|error| error.to_string())?;
    let address = HttpAddress::new("protected", url).map_err(|fault| fault.detail)?;
    let address = Address::Http(address.credentials(Arc::new(credentials)));
    let client = Client::connect(address).await.map_err(|fault| fault.detail)?;
    let result = client.call_tool(tool, &json!({})).await.map_err(|fault| fault.detail)?;
    Ok(result.text())
}
