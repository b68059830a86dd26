//! Every page, in both schemes, narrow and wide.

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::peers::browser::Browser;
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::{Console, pictures};

/// A server with something on each page: an upstream that works, one that does not, an audit log, pins and refusals.
fn full() -> Console {
    let creole = creole_acceptance::stage::stdio::binary().unwrap().display().to_string();
    let config = format!(
        "[server]\nname = \"house\"\npacks = [\"echo\"]\n\n\
         [[server.chain]]\nkind = \"audit\"\nfile = \"audit.log\"\n\n\
         [[server.chain]]\nkind = \"filter\"\ndeny = [\"behind_test_error_handling\"]\n\n\
         [upstreams.behind]\ncommand = [{creole:?}, \"serve\", \"--preset\", \"everything\"]\n\n\
         [upstreams.broken]\ncommand = [\"/nonexistent/program\"]\n"
    );
    Console::start(&config)
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
    ("audit", "#/audit"),
    ("denials", "#/denials"),
    ("config", "#/config"),
];

/// The pages, and those of one tool and of one call.
fn all_pages(browser: &mut Browser) -> Vec<(String, String)> {
    let mut pages: Vec<(String, String)> =
        PAGES.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect();
    let mut follow = |name: &str, from: &str| {
        browser.open(from);
        let list = from.split('?').next().unwrap_or_default();
        let link = format!("td a[href^='{list}/']");
        browser.wait(&link);
        let href = format!("document.querySelector({}).getAttribute('href')", json!(link));
        let place = browser.evaluate(&href);
        pages.push((name.to_owned(), place.as_str().unwrap().to_owned()));
    };
    follow("tool", "#/tools?q=echo");
    follow("call", "#/calls");
    let tool = pages.iter().find(|(name, _)| name == "tool").unwrap().1.clone();
    pages.push(("try".to_owned(), tool.replace("#/tools/", "#/try/")));
    pages
}

#[test]
fn every_page_is_accessible_in_both_schemes_narrow_and_wide() {
    let console = full();
    // Calls are recorded from the first visit on.
    let Some(mut browser) = console.browser() else { return };
    let client = StatelessClient::new(console.server.address());
    for number in 0..5 {
        let _ = client.call("echo", json!({"message": format!("call {number}")}));
    }
    let _ = client.call("behind_test_error_handling", json!({}));
    let _ = client.call("no_such_tool", json!({}));
    let mut problems = Vec::new();
    for (name, place) in all_pages(&mut browser) {
        browser.open(&place);
        browser.wait("main h1");
        browser.wait_gone(".loading");
        for (scheme, is_forced, width) in [
            ("light", false, 1440),
            ("dark", false, 1440),
            ("dark", false, 320),
            ("light", true, 320),
        ] {
            browser.show_as(scheme, is_forced, width);
            let kind = if is_forced { "forced" } else { scheme };
            browser.screenshot(&pictures().join(format!("{name}-{kind}-{width}.png")));
            let found = browser.accessibility();
            problems.extend(found.into_iter().map(|it| format!("{name}, {kind}, {width}: {it}")));
            let wide =
                "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            let excess = browser.evaluate(wide);
            if excess != 0 {
                problems.push(format!("{name}, {kind}, {width}: the page is {excess} px too wide"));
            }
        }
    }
    assert_eq!(problems, Vec::<String>::new());
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
