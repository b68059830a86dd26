//! Tests of when the user of a client is asked to log in.

use std::sync::atomic::Ordering;

use super::{ClientLogin, LoginState};

#[test]
fn a_person_is_asked_once_for_each_request_of_the_client() {
    let login = ClientLogin::new("h", "https://h/mcp", None, true, None);
    let refused = login.check_wanted().unwrap_err().to_string();
    assert_eq!(refused, "no person can be asked here; run: creole login https://h/mcp");
    login.is_wanted.store(true, Ordering::Relaxed);
    assert!(login.check_wanted().is_ok());
    assert!(login.check_wanted().is_err());
}

#[test]
fn without_a_browser_the_client_must_be_able_to_show_the_address() {
    let login = ClientLogin::new("h", "https://h/mcp", None, false, None);
    login.is_wanted.store(true, Ordering::Relaxed);
    assert!(login.check_wanted().is_err());
    login.can_show_urls.store(true, Ordering::Relaxed);
    login.is_wanted.store(true, Ordering::Relaxed);
    assert!(login.check_wanted().is_ok());
}

#[test]
fn the_address_of_a_login_can_be_shown_until_it_ends() {
    let login = ClientLogin::new("h", "https://h/mcp", None, false, None);
    assert!(login.asked().is_none());
    let asked = login.begin("https://id.example.com/a".to_owned(), "https://id.example.com");
    assert_eq!(login.asked().map(|it| it.url.clone()), Some(asked.url.clone()));
    login.state.send_replace(LoginState::Idle);
    assert!(login.asked().is_none());
}
