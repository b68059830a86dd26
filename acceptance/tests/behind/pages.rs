//! Tests of paginated lists: the gateway fetches all pages of the upstream and serves all items to the client.

use serde_json::{Value, json};

use crate::{command, creole, initialized, write};

/// The lists, the member that names an item in each, and the minimum number of items that the fixtures have.
const LISTS: [(&str, &str, usize); 3] =
    [("tools", "name", 40), ("resources", "uri", 3), ("prompts", "name", 3)];

/// The names on each page of a list, from the first to the last.
#[track_caller]
fn pages(
    words: &[&str],
    folder: &std::path::Path,
    (kind, member, _): (&str, &str, usize),
) -> Vec<Vec<String>> {
    let (mut server, _) = initialized(command(folder, words));
    let (mut pages, mut params) = (Vec::new(), json!({}));
    loop {
        let listed = server.request(&format!("{kind}/list"), &params)["result"].take();
        let items = listed[kind].as_array().unwrap_or_else(|| panic!("{kind}: {listed}"));
        pages.push(items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect());
        match &listed["nextCursor"] {
            Value::Null => return pages,
            cursor => params = json!({"cursor": cursor}),
        }
        assert!(pages.len() < 1000, "the list has more pages than expected");
    }
}

#[test]
fn a_list_of_several_pages_is_complete_through_a_server_that_pages_again() {
    let (folder, creole) = (tempfile::tempdir().unwrap(), creole());
    let (folder, external) = (folder.path(), "[server]\npacks = [\"everything\"]\n");
    write(folder, "whole.toml", external);
    write(folder, "paged.toml", &format!("{external}page_size = 2\n"));
    let front = format!(
        "[server]\nname = \"front\"\ndialect = \"mcp-chain\"\npage_size = 5\n\
         [upstreams.external]\ncommand = [{creole:?}, \"serve\", \"paged.toml\"]\nprefix = \"\"\n"
    );
    write(folder, "front.toml", &front);
    for list in LISTS {
        let (kind, _, least) = list;
        let whole = pages(&["serve", "whole.toml"], folder, list).concat();
        assert!(whole.len() >= least, "{kind}: {whole:?}");
        let behind = pages(&["serve", "paged.toml"], folder, list);
        assert!(behind.len() > 1 && behind.iter().all(|page| page.len() <= 2), "{kind}");
        let front = pages(&["serve", "front.toml"], folder, list);
        assert_eq!(front.len(), whole.len().div_ceil(5), "{kind}: {front:?}");
        assert_eq!(front.concat(), whole, "{kind}");
    }
}

#[test]
fn the_chain_gives_all_that_an_external_server_of_several_pages_has() {
    let (folder, creole) = (tempfile::tempdir().unwrap(), creole());
    let paged = "[server]\npacks = [\"everything\"]\npage_size = 2\n";
    write(folder.path(), "paged.toml", paged);
    let chained = ["serve", "--preset", "mcp-chain", "--", &creole, "serve", "paged.toml"];
    for list in LISTS {
        let own = pages(&["serve", "paged.toml"], folder.path(), list).concat();
        assert_eq!(pages(&chained, folder.path(), list).concat(), own, "{}", list.0);
    }
}
