//! The settings of a WordPress site.

use std::path::Path;
use std::time::Duration;

use creole_tools::recipe::secret::{Secret, SecretSource};
use creole_wordpress::{AllowedRoutes, PHASES, SETS, SiteAddress, SiteSettings};

use super::{PACKS, ROUTES};
use crate::plan::seconds;
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::{Ranged, Spanned};
use crate::tables::wordpress::{RoutesTable, WordPressTable};

/// The default capability that callers need at the site, which administrators have.
const CAPABILITY: &str = "manage_options";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Resolves the table, if a pack needs it.
pub(crate) fn resolve(
    table: Option<Spanned<WordPressTable>>,
    packs: &[String],
    has_auth: bool,
    folder: &Path,
) -> Result<Option<SiteSettings>, ConfigProblem> {
    let needs = packs.iter().find(|pack| PACKS.contains(&pack.as_str()));
    let Some(Spanned { value: table, span }) = table else {
        return match needs {
            None => Ok(None),
            Some(pack) => Err(ConfigProblem::new(format!("the pack `{pack}` needs a site"))
                .help("add a table `[wordpress]` with the `url` of the site")),
        };
    };
    if needs.is_none() {
        let description = "`[wordpress]` has no effect: no pack for WordPress is enabled";
        let help = "add \"buddyboss-platform\" or \"wordpress\" to `packs`";
        return Err(ConfigProblem::new(description).help(help).at(span));
    }
    let routes = routes(table.routes.unwrap_or_default())?;
    let has_none = routes.read.is_empty() && routes.write.is_empty();
    if has_none && packs.iter().any(|pack| pack == ROUTES) {
        let description =
            "the pack `wordpress` makes tools from routes, and no routes are configured";
        let help =
            "add a table `[wordpress.routes]`, for example with `read = [\"wp/v2/posts/*\"]`";
        return Err(ConfigProblem::new(description).help(help).at(span));
    }
    let account = account(table.user, table.password, table.password_file, folder)?;
    if account.is_none() && has_auth {
        let description = "callers authenticate at the site of `[wordpress]`, so `[auth]` would authenticate \
                them twice";
        let help = "remove `[auth]`, or add `user` and `password_file` for one account that makes all \
                calls";
        return Err(ConfigProblem::new(description).help(help).at(span));
    }
    Ok(Some(SiteSettings {
        address: address(&table.url, table.allow_http.unwrap_or(false))?,
        capability: match table.capability {
            Some(value) => capability(value)?,
            None => CAPABILITY.to_owned(),
        },
        account,
        sets: sets(table.sets)?,
        routes,
        timeout: table
            .timeout_seconds
            .map_or(DEFAULT_TIMEOUT, |time: Ranged<1, 300>| seconds(time.get())),
    }))
}

fn address(value: &Spanned<String>, allows_http: bool) -> Result<SiteAddress, ConfigProblem> {
    let address = SiteAddress::parse(&value.value).map_err(|invalid| {
        ConfigProblem::new(format!("`url` {invalid}"))
            .help("write the URL of the site's front page, such as `https://example.org`")
            .at(value.span.clone())
    })?;
    if address.is_encrypted() || address.is_loopback() || allows_http {
        return Ok(address);
    }
    Err(ConfigProblem::new("passwords would be sent to this site unencrypted")
        .help("use `https://`, or set `allow_http = true` if you trust the network")
        .at(value.span.clone()))
}

fn capability(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match value.len() <= 64 && value.bytes().all(is_plain) {
        true => Ok(value),
        false => Err(ConfigProblem::new("`capability` is not a valid capability name").at(span)),
    }
}

fn account(
    user: Option<Spanned<String>>,
    password: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    folder: &Path,
) -> Result<Option<(String, SecretSource)>, ConfigProblem> {
    let held = match (password, file) {
        (None, None) => None,
        (Some(here), None) => Some((SecretSource::Inline(Secret(here.value)), here.span)),
        (None, Some(file)) => {
            let span = file.span.clone();
            Some((SecretSource::File(folder.join(crate::plan::file("password_file", file)?)), span))
        }
        (Some(_), Some(file)) => {
            return Err(ConfigProblem::new(
                "`password` and `password_file` exclude each other; remove one of them",
            )
            .at(file.span));
        }
    };
    match (user, held) {
        (None, None) => Ok(None),
        (Some(Spanned { value, span }), Some((secret, _))) => {
            if value.is_empty() || value.contains(':') || value.chars().any(char::is_control) {
                return Err(ConfigProblem::new("`user` is not a valid user name").at(span));
            }
            Ok(Some((value, secret)))
        }
        (Some(Spanned { span, .. }), None) | (None, Some((_, span))) => {
            Err(ConfigProblem::new("`user` needs a password, and a password needs `user`")
                .help("set both `user` and `password_file`, or neither")
                .at(span))
        }
    }
}

fn sets(values: Option<Vec<Spanned<String>>>) -> Result<Vec<String>, ConfigProblem> {
    let Some(values) = values else { return Ok(vec![PHASES[0].to_owned()]) };
    let known: Vec<&str> = PHASES.iter().copied().chain(SETS.iter().map(|(set, _)| *set)).collect();
    let mut sets = Vec::new();
    for Spanned { value, span } in values {
        if !known.contains(&value.as_str()) {
            let help = suggestion(&value, "the known tool sets", &known);
            return Err(ConfigProblem::new(format!("unknown tool set `{value}`"))
                .help(help)
                .at(span));
        }
        sets.push(value);
    }
    Ok(sets)
}

fn routes(table: RoutesTable) -> Result<AllowedRoutes, ConfigProblem> {
    let patterns = |values: Option<Vec<Spanned<String>>>| {
        values.unwrap_or_default().into_iter().map(pattern).collect::<Result<Vec<_>, _>>()
    };
    Ok(AllowedRoutes { read: patterns(table.read)?, write: patterns(table.write)? })
}

fn pattern(item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let pattern = value.trim_matches('/');
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/*".contains(&byte);
    match pattern.contains('/') && pattern.bytes().all(is_allowed) {
        true => Ok(pattern.to_owned()),
        false => Err(ConfigProblem::new(format!("invalid route pattern `{value}`"))
            .help("write a namespace and a route, such as `wp/v2/posts/*`")
            .at(span)),
    }
}

#[cfg(test)]
mod tests {
    use std::env::VarError;

    use super::*;
    use crate::Plan;
    use crate::plan::ClientScope;

    fn no_variables(_name: &str) -> Result<String, VarError> {
        Err(VarError::NotPresent)
    }

    fn read(table: &str) -> Result<SiteSettings, String> {
        let text = format!("[server]\npacks = [\"buddyboss-platform\"]\n{table}");
        let plan = Plan::read(&text, Path::new("/etc/creole"), &PACKS, &no_variables);
        let plan = plan.map_err(|problem| {
            let error = problem.into_error("creole.toml", &text);
            let location = error
                .location
                .as_ref()
                .map(|location| format!("{}:{} ", location.line, location.column));
            format!("{}{}", location.unwrap_or_default(), error.message)
        });
        plan.map(|plan| plan.wordpress.unwrap())
    }

    #[test]
    fn a_site_needs_a_url_and_has_defaults() {
        let site = read("[wordpress]\nurl = \"https://example.org/\"").unwrap();
        assert_eq!(site.address.as_str(), "https://example.org");
        assert_eq!((site.capability.as_str(), site.account), ("manage_options", None));
        assert_eq!((site.sets, site.timeout), (vec!["phase-1".to_owned()], DEFAULT_TIMEOUT));
        let site = "[wordpress]\nurl = \"http://[::1]\"\nuser = \"sam\"\npassword_file = \"key\"\n\
                    sets = [\"members\"]\ncapability = \"\"\n[wordpress.routes]\nread = [\"wp/v2/posts/*\"]";
        let site = read(&format!("{site}\n[auth]\nusers = \"users\"")).unwrap();
        let secret = SecretSource::File("/etc/creole/key".into());
        assert_eq!(site.account, Some(("sam".to_owned(), secret)));
        assert_eq!(site.routes.read, ["wp/v2/posts/*"]);
    }

    #[test]
    fn each_error_names_its_position_and_problem() {
        let here = "[wordpress]\nurl = \"http://127.0.0.1\"\n";
        let rows = [
            (String::new(), "the pack `buddyboss-platform` needs a site"),
            (
                "[wordpress]\nurl = \"example.org\"".into(),
                "4:7 `url` begins with neither https:// nor http://",
            ),
            (
                "[wordpress]\nurl = \"http://example.org\"".into(),
                "4:7 passwords would be sent to this site unencrypted",
            ),
            (
                format!("{here}user = \"sam\""),
                "5:8 `user` needs a password, and a password needs `user`",
            ),
            (format!("{here}sets = [\"member\"]"), "5:9 unknown tool set `member`"),
            (format!("{here}routes.read = [\"posts\"]"), "5:16 invalid route pattern `posts`"),
            (
                format!("{here}[auth]\nusers = \"u\""),
                "3:1 callers authenticate at the site of `[wordpress]`, so `[auth]` would authenticate them twice",
            ),
        ];
        for (table, expected) in rows {
            assert_eq!(read(&table).unwrap_err(), expected, "{table}");
        }
    }

    #[test]
    fn a_pack_that_would_have_no_tool_is_refused() {
        let text =
            "[server]\npacks = [\"wordpress\"]\n[wordpress]\nurl = \"https://example.org\"\n";
        let refused = Plan::read(text, Path::new(""), &["wordpress"], &no_variables).unwrap_err();
        assert!(format!("{refused:?}").contains("[wordpress.routes]"), "{refused:?}");
    }

    #[test]
    fn a_site_may_be_asked_otherwise_but_stays_the_same() {
        let with = |lines: &str| {
            let text = format!(
                "[server]\npacks = [\"wordpress\"]\n[wordpress]\n{lines}\n[wordpress.routes]\nread = [\"wp/v2/posts\"]\n"
            );
            Plan::read(&text, Path::new(""), &["wordpress"], &no_variables).unwrap()
        };
        let old = with("url = \"https://example.org\"");
        for (new, what) in [
            ("url = \"https://example.org\"\nsets = [\"groups\"]\ntimeout_seconds = 3", None),
            ("url = \"https://example.org\"\ncapability = \"edit_posts\"", None),
            ("url = \"https://example.com\"", Some("`url` in `[wordpress]`")),
            (
                "url = \"https://example.org\"\nuser = \"a\"\npassword = \"b\"",
                Some("the use of authentication at the site of `[wordpress]`"),
            ),
        ] {
            assert_eq!(with(new).needs_restart(&old, ClientScope::Many), what, "{new}");
        }
    }
}
