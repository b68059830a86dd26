//! Everything works without a pointer.

use creole_acceptance::peers::browser::Browser;

use crate::approvals::ChangingUpstream;

/// Presses Tab until the focused element says this.
#[track_caller]
fn tab_to(browser: &mut Browser, wanted: &str) {
    let mut seen = Vec::new();
    for _ in 0..60 {
        let focused = browser.focused();
        if focused.trim() == wanted {
            return;
        }
        seen.push(focused);
        browser.press("Tab");
    }
    panic!("{wanted:?} was not reached: {seen:?}");
}

#[test]
fn tools_are_found_run_and_approved_by_keyboard_alone() {
    let (upstream, console) = ChangingUpstream::start();
    let Some(mut browser) = console.browser() else { return };
    browser.press("?");
    browser.wait("role=heading[name=\"Keyboard\"]");
    browser.press("Escape");
    browser.wait_gone("dialog[open]");
    browser.press("g");
    browser.press("t");
    browser.wait("text=publish");
    browser.press("/");
    browser.type_text("publ");
    browser.wait("text=1 item");
    tab_to(&mut browser, "publish");
    browser.press("Enter");
    browser.wait("text=Description");
    tab_to(&mut browser, "Try");
    browser.press("Enter");
    browser.wait("role=button[name=\"Run\"]");
    tab_to(&mut browser, "Run");
    browser.press("Enter");
    upstream.finish_call();
    browser.wait("text=published");

    upstream.change("Publishes a page and a half.");
    browser.press("g");
    browser.press("a");
    browser.wait("td >> text=publish");
    tab_to(&mut browser, "publish");
    browser.press("Enter");
    browser.wait("text=What changed");
    tab_to(&mut browser, "Approve…");
    browser.press("Enter");
    browser.wait("dialog");
    browser.type_text("publish");
    browser.press("Enter");
    browser.wait("text=Approved: the tool is served again");
    browser.assert_harmless();
}
