//! Every page, in both schemes, narrow and wide.

use creole_acceptance::gateway::{HandshakeClient, StatelessClient};
use creole_acceptance::peers::browser::Browser;
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{Console, pictures};

/// A server with something on each page: an upstream that works, one that does not, a policy, an audit log and pins.
fn full() -> Console {
    let creole = creole_acceptance::stage::stdio::binary().unwrap().display().to_string();
    let config = format!(
        "[server]\nname = \"house\"\npacks = [\"echo\", \"everything\"]\n\n\
         [[server.chain]]\nkind = \"audit\"\nfile = \"audit.log\"\n\n\
         [policy]\ndefault = \"allow\"\n\n\
         [[policy.rules]]\nname = \"short words\"\neffect = \"deny\"\ntools = [\"echo\"]\n\
         when = 'size(arguments.message) > 100'\n\n\
         [upstreams.behind]\ncommand = [{creole:?}, \"serve\", \"--preset\", \"everything\"]\n\
         chain = [{{ kind = \"pin\", file = \"pins.json\" }}]\n\n\
         [upstreams.broken]\ncommand = [\"/nonexistent/program\"]\n"
    );
    Console::start(&config)
}

/// Puts something on each page: calls with and without payloads, a refused call, a task and a session.
fn use_server(console: &Console, browser: &mut Browser) {
    let client = StatelessClient::new(console.server.address());
    for number in 0..5 {
        let _ = client.call("echo", json!({"message": format!("call {number}")}));
    }
    let _ = client.call("echo", json!({"message": "long ".repeat(50)}));
    let _ = client.call("no_such_tool", json!({}));
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let _ = client.that_can(tasks).call("slow_compute", json!({"seconds": 600}));
    let _ = HandshakeClient::open(console.server.address(), "2025-06-18", json!({}), None);
    browser.open("#/calls");
    browser.click("role=button[name=\"Capture…\"]");
    browser.fill("dialog >> role=textbox[name=\"Target\"]", "behind__test_simple_text");
    browser.click("role=button[name=\"Start\"]");
    browser.wait("text=target behind__test_simple_text");
    let _ = client.call("behind__test_simple_text", json!({}));
}

/// The pages that need nothing but their address.
const PAGES: &[(&str, &str)] = &[
    ("overview", "#/overview"),
    ("upstreams", "#/upstreams"),
    ("upstream", "#/upstreams/behind"),
    ("upstream-broken", "#/upstreams/broken"),
    ("tools", "#/tools"),
    ("prompts", "#/tools?kind=prompt"),
    ("calls", "#/calls"),
    ("sessions", "#/sessions"),
    ("tasks", "#/sessions?list=tasks"),
    ("parked", "#/sessions?list=parked"),
    ("approvals", "#/approvals"),
    ("approvals-all", "#/approvals?all=1"),
    ("audit", "#/audit"),
    ("denials", "#/denials"),
    ("log", "#/log"),
    ("config", "#/config"),
    ("unknown", "#/nowhere"),
];

/// The pages, and those of one tool, one approval and one call.
fn all_pages(browser: &mut Browser) -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> =
        PAGES.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect();
    let mut follow = |name: &str, from: &str| {
        let list = from.split('?').next().unwrap_or_default();
        let link = format!("td a[href^='{list}/']");
        // The links of the page before are not those of this one.
        browser.open("#/nowhere");
        browser.wait_gone(&link);
        browser.open(from);
        let href = format!("document.querySelector({})?.getAttribute('href')", json!(link));
        let place = eventually("the list has a link", || {
            browser.evaluate(&href).as_str().map(str::to_owned)
        });
        pages.push((name.to_owned(), place));
    };
    follow("tool", "#/tools?q=echo");
    follow("approval", "#/approvals?all=1");
    follow("call", "#/calls?target=echo");
    follow("call-with-payloads", "#/calls?target=behind__test_simple_text");
    let tool = pages.iter().find(|(name, _)| name == "tool").unwrap().1.clone();
    pages.push(("try".to_owned(), tool.replace("#/tools/", "#/try/")));
    pages
}

/// How a page is shown: the scheme, whether colours are forced, and the width.
type Look = (&'static str, bool, u32);

/// Looks at the page in these ways. Returns what is wrong with it.
fn inspect(browser: &mut Browser, name: &str, looks: &[Look]) -> Vec<String> {
    let mut problems = Vec::new();
    for &(scheme, is_forced, width) in looks {
        browser.show_as(scheme, is_forced, width);
        let kind = if is_forced { "forced" } else { scheme };
        browser.screenshot(&pictures().join(format!("{name}-{kind}-{width}.png")));
        let found = browser.accessibility();
        problems.extend(found.into_iter().map(|it| format!("{name}, {kind}, {width}: {it}")));
        let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        let excess = browser.evaluate(wide);
        if excess != 0 {
            problems.push(format!("{name}, {kind}, {width}: the page is {excess} px too wide"));
        }
    }
    problems
}

/// Opens every page, and expects nothing wrong with it in these ways.
fn check_every_page(looks: &[Look]) {
    let console = full();
    let Some(mut browser) = console.browser_outside() else { return };
    browser.open("#/overview");
    browser.wait("main h1");
    let mut problems = inspect(&mut browser, "sign-in", looks);
    browser.open(&console.link());
    // Calls are recorded from the first visit on.
    browser.wait(".places");
    use_server(&console, &mut browser);
    for (name, place) in all_pages(&mut browser) {
        browser.open(&place);
        // Until then the page before is shown.
        browser.wait(&format!("main[data-address={}] h1", json!(place)));
        browser.wait_gone(".loading");
        problems.extend(inspect(&mut browser, &name, looks));
    }
    assert_eq!(problems, Vec::<String>::new());
    browser.assert_harmless();
}

#[test]
fn every_page_is_accessible_in_a_wide_window_in_both_schemes() {
    check_every_page(&[("light", false, 1440), ("dark", false, 1440)]);
}

#[test]
fn every_page_is_accessible_in_a_narrow_window_in_both_schemes_and_with_forced_colours() {
    check_every_page(&[("light", false, 320), ("dark", false, 320), ("light", true, 320)]);
}

#[test]
fn pages_show_the_facts_that_the_process_has() {
    let console = full();
    let Some(mut browser) = console.browser() else { return };
    use_server(&console, &mut browser);
    browser.open("#/upstreams/behind");
    browser.wait("role=table[name=\"What clients of each revision get\"]");
    let shown = browser.text("main");
    for text in ["1 worked, 0 failed", "History", "Capabilities", "this process", "translated"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let strip = browser.evaluate("document.querySelector('.strip').getAttribute('aria-label')");
    assert!(strip.as_str().unwrap().contains("ready at"), "{strip}");

    // A refusal leads to its rule in the configuration.
    browser.open("#/denials");
    browser.click("role=link[name=\"policy: short words\"]");
    browser.wait(".source li.target >> text=short words");

    // The task is listed, and can be cancelled.
    browser.open("#/sessions?list=tasks");
    browser.wait("tr:has-text(\"slow_compute\"):has-text(\"working\")");
    browser.click("role=button[name=/^End task/]");
    browser.click("dialog >> role=button[name=\"End it\"]");
    browser.wait("tr:has-text(\"slow_compute\"):has-text(\"cancelled\")");
    assert_eq!(browser.count("role=button[name=/^End task/]"), 0, "a task that ended has no end");
    browser.open("#/config");
    browser.wait("tr:has-text(\"server.page_size\"):has-text(\"default\")");
    browser.assert_harmless();
}

#[test]
fn a_call_is_run_again_with_its_arguments_if_they_are_known() {
    let console = Console::start("[server]\nname = \"house\"\npacks = [\"echo\"]\n");
    let Some(mut browser) = console.browser() else { return };
    let client = StatelessClient::new(console.server.address());
    let open_last = |browser: &mut Browser| {
        // A list that was open is held while the pointer is over it.
        browser.open("#/overview");
        browser.wait("role=heading[name=\"Overview\"]");
        browser.open("#/calls");
        browser.click("td >> role=link >> nth=0");
        browser.wait("text=Timeline");
    };
    // Nobody kept the arguments.
    let _ = client.call("echo", json!({"message": "unknown to the console"}));
    open_last(&mut browser);
    browser.wait("text=which are not known");
    browser.click("role=link[name=\"Run again in Try\"]");
    browser.wait("text=The arguments of the earlier call are not known");

    // This tab sent them.
    browser.fill("#json", &json!({"message": "from this tab"}).to_string());
    browser.click("role=button[name=\"Run\"]");
    browser.click("role=link[name=\"Timeline\"]");
    browser.wait("text=with the arguments that this tab sent");
    browser.click("role=link[name=\"Run again in Try\"]");
    browser.wait("#json");
    let given: Value = serde_json::from_str(&browser.value("#json")).unwrap();
    assert_eq!(given, json!({"message": "from this tab"}));

    // A capture kept them.
    browser.open("#/calls");
    browser.click("role=button[name=\"Capture…\"]");
    browser.click("role=button[name=\"Start\"]");
    browser.wait("text=all calls");
    let _ = client.call("echo", json!({"message": "captured"}));
    open_last(&mut browser);
    browser.wait("text=with the arguments of the captured request");
    browser.click("role=link[name=\"Run again in Try\"]");
    browser.wait("#json");
    let given: Value = serde_json::from_str(&browser.value("#json")).unwrap();
    assert_eq!(given, json!({"message": "captured"}));
    browser.click("role=button[name=\"Run\"]");
    browser.wait(".out >> text=captured");
    browser.assert_harmless();
}

#[test]
fn pages_stay_as_they_are_when_new_data_arrives() {
    let console = full();
    let Some(mut browser) = console.browser() else { return };
    for (place, path, parts) in [
        ("#/overview", "/api/v1/overview", &[".tile >> nth=6", ".chart", "td >> text=behind"][..]),
        (
            "#/upstreams/behind",
            "/api/v1/upstreams/behind",
            &["dl.facts", "text=Standard error"][..],
        ),
        ("#/sessions", "/api/v1/sessions", &[".empty, td"][..]),
    ] {
        browser.open(place);
        let asked = |browser: &mut Browser| {
            let seen = browser.seen();
            seen["requests"].as_array().unwrap().iter().filter(|it| it["path"] == path).count()
        };
        let before = asked(&mut browser);
        eventually("the page asked several times", || asked(&mut browser) >= before + 3);
        for part in parts {
            browser.wait(part);
        }
    }
    browser.assert_harmless();
}
