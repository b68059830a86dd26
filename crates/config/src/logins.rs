//! The folder of the stored logins, which all commands share.

use std::env;
use std::path::PathBuf;

use creole::client::oauth::LoginStore;
use creole_tools::PackOptions;

/// Where logins are stored: in the folder that `CREOLE_LOGINS` names, or else in `logins` of the data directory. `None` if
/// the platform has no data directory.
pub fn login_store() -> Option<LoginStore> {
    let named = env::var_os("CREOLE_LOGINS").filter(|name| !name.is_empty()).map(PathBuf::from);
    let usual = || PackOptions::default().data_directory().map(|folder| folder.join("logins"));
    named.or_else(usual).map(LoginStore::new)
}
