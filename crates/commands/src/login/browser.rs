//! Opens an address in the browser of the user.

use std::env;
use std::io;
use std::process::{Command, Stdio};

use creole::client::oauth::WebUrl;

/// Whether the user has a browser on this machine: a desktop, or a program in `BROWSER`.
pub(crate) fn has_browser() -> bool {
    is_set("BROWSER") || has_desktop(is_set, cfg!(any(target_os = "macos", windows)))
}

/// Whether the environment names a browser.
pub(crate) fn is_browser_named() -> bool {
    is_set("BROWSER")
}

/// Whether there is a desktop. In a session over SSH there is one only if the environment names its display.
fn has_desktop(is_set: impl Fn(&str) -> bool, is_desktop_system: bool) -> bool {
    let has_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    let is_remote = is_set("SSH_CONNECTION") || is_set("SSH_TTY");
    has_display || (is_desktop_system && !is_remote)
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Whether an address may be given to a program. A program could take another one for an option or for a command.
pub(crate) fn is_openable(url: &str) -> bool {
    const REFUSED: [char; 8] = ['"', '\'', '`', '\\', '<', '>', '|', '^'];
    let parsed = WebUrl::parse(url.split('?').next().unwrap_or(url));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic()) && !url.contains(REFUSED);
    is_plain && parsed.is_ok_and(|url| url.is_https() || url.is_loopback())
}

/// Opens an address, and does not wait for the browser. Nothing of this process is passed on but its environment.
pub(crate) fn open(url: &str) -> io::Result<()> {
    if !is_openable(url) {
        let why = "the address is not one that a browser may be given";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    match env::var("BROWSER").ok().filter(|named| !named.is_empty()) {
        Some(named) => open_with(&named, url),
        None => open::that_detached(url),
    }
}

/// Starts the first program of the list in `BROWSER` that can be started.
fn open_with(named: &str, url: &str) -> io::Result<()> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "BROWSER names no program");
    for entry in named.split(if cfg!(windows) { ';' } else { ':' }) {
        let Some(mut command) = browser_command(entry, url) else { continue };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(mut child) => {
                // The browser may run for days, and nothing else collects its exit code.
                std::thread::spawn(move || child.wait());
                return Ok(());
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A program with its arguments. `%s` stands for the address, which otherwise comes last.
fn browser_command(entry: &str, url: &str) -> Option<Command> {
    let mut words = entry.split_whitespace();
    let mut command = Command::new(words.next()?);
    let mut is_placed = false;
    for word in words {
        is_placed |= word.contains("%s");
        command.arg(word.replace("%s", url));
    }
    if !is_placed {
        command.arg(url);
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::{browser_command, has_desktop, is_openable};

    #[test]
    fn a_desktop_is_told_by_its_display() {
        let with = |names: &'static [&str]| move |name: &str| names.contains(&name);
        assert!(!has_desktop(with(&[]), false));
        assert!(has_desktop(with(&["WAYLAND_DISPLAY"]), false));
        assert!(has_desktop(with(&[]), true));
        assert!(!has_desktop(with(&["SSH_CONNECTION"]), true));
        assert!(has_desktop(with(&["SSH_TTY", "DISPLAY"]), true));
    }

    #[test]
    fn only_plain_web_addresses_are_opened() {
        for good in
            ["https://id.example.com/a?b=c&d=%20", "http://127.0.0.1:1/a", "http://localhost/a"]
        {
            assert!(is_openable(good), "{good}");
        }
        let bad = [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://id.example.com/a",
            "https://x\" --y",
            "https://x/?a='b'",
            "https://x/?$(a)`b`",
            "-x",
            "https://x/\n",
            "https://u:p@x/",
        ];
        for bad in bad {
            assert!(!is_openable(bad), "{bad}");
        }
    }

    #[test]
    fn the_address_is_one_argument_of_the_named_browser() {
        let arguments = |entry: &str| {
            let command = browser_command(entry, "https://x/?a&b").unwrap();
            let arguments: Vec<String> =
                command.get_args().map(|it| it.to_string_lossy().into_owned()).collect();
            arguments.join(" ")
        };
        assert_eq!(arguments("firefox"), "https://x/?a&b");
        assert_eq!(arguments("firefox -new-tab"), "-new-tab https://x/?a&b");
        assert_eq!(arguments("w3m --url=%s -x"), "--url=https://x/?a&b -x");
        assert!(browser_command(" ", "x").is_none());
    }
}
