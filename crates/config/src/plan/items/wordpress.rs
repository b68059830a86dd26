//! Resolves the WordPress site of the tools, if this program supports one.

#[cfg(feature = "wordpress")]
mod settings;

use crate::syntax::error::ConfigProblem;
use crate::wordpress::{MISSING_SUPPORT, MISSING_SUPPORT_HELP};

#[cfg(feature = "wordpress")]
pub(crate) use settings::resolve;

/// The packs that use the table.
const PACKS: [&str; 2] = ["buddyboss-platform", ROUTES];
/// The pack with one tool per route.
const ROUTES: &str = "wordpress";

/// The problem of a pack that only a program with support for WordPress has.
pub(crate) fn missing_pack(name: &str) -> Option<ConfigProblem> {
    (!cfg!(feature = "wordpress") && PACKS.contains(&name)).then(missing_support)
}

fn missing_support() -> ConfigProblem {
    ConfigProblem::new(MISSING_SUPPORT).help(MISSING_SUPPORT_HELP)
}

/// Refuses the table.
#[cfg(not(feature = "wordpress"))]
pub(crate) fn resolve(
    table: Option<crate::syntax::value::Spanned<crate::tables::wordpress::WordPressTable>>,
    _packs: &[String],
    _has_auth: bool,
    _folder: &std::path::Path,
) -> Result<Option<crate::wordpress::SiteSettings>, ConfigProblem> {
    match table {
        None => Ok(None),
        Some(table) => Err(missing_support().at(table.span)),
    }
}

#[cfg(not(feature = "wordpress"))]
#[cfg(test)]
mod tests {
    use std::env::VarError;
    use std::path::Path;

    use crate::{ConfigSource, Plan, packs};

    fn refusal(text: &str) -> String {
        let lookup = |_: &str| Err(VarError::NotPresent);
        let plan = Plan::load_text("creole.toml", text, Path::new(""), &packs(), &lookup);
        plan.unwrap_err().to_string()
    }

    #[test]
    fn a_program_without_support_refuses_a_site_and_says_how_to_get_it() {
        let table = refusal("[server]\n[wordpress]\nurl = \"https://example.org\"\n");
        assert!(table.contains("this program was built without WordPress support"), "{table}");
        assert!(table.contains("build it with the feature `wordpress`"), "{table}");
        assert!(table.contains("creole.toml:2:1"), "{table}");
    }

    #[test]
    fn a_program_without_support_refuses_the_packs_of_a_site() {
        let pack = refusal("[server]\npacks = [\"wordpress\"]\n");
        assert!(pack.contains("this program was built without WordPress support"), "{pack}");
        assert!(pack.contains("creole.toml:2:10"), "{pack}");
        let lookup = |_: &str| Ok("https://example.org".to_owned());
        let preset = ConfigSource::Preset("buddyboss");
        let preset = Plan::load_with_environment(preset, &packs(), &lookup).unwrap_err();
        assert_eq!(preset.message, "this program was built without WordPress support");
        let unknown = refusal("[server]\npacks = [\"word\"]\n");
        assert!(unknown.contains("unknown pack `word`"), "{unknown}");
    }
}
