//! The certificates of the authorities that an upstream's certificate is checked against.
//!
//! The plan holds the contents of the file, so that a changed file is a changed plan.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use creole::internal::tls::TlsClient;

use crate::plan::file;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The maximum size of a file of certificates. The certificates of a whole system take a quarter of it.
const MAX_FILE: u64 = 1024 * 1024;

/// The certificates of authorities, and their file.
#[derive(Clone, PartialEq, Eq)]
pub struct CaCertificates {
    file: PathBuf,
    pem: Arc<[u8]>,
}

impl CaCertificates {
    /// Reads a file.
    ///
    /// # Errors
    /// With the reason, as the rest of a sentence that begins with the file's name.
    pub fn read(file: PathBuf) -> Result<Self, String> {
        let pem = bytes(&file).map_err(|error| format!("cannot be read: {error}"))?;
        if pem.len() as u64 > MAX_FILE {
            return Err("is larger than 1 MB, the limit for certificate files".to_owned());
        }
        TlsClient::with_roots(&pem).map_err(|_| "contains no valid PEM certificate".to_owned())?;
        Ok(Self { file, pem: pem.into() })
    }

    /// The certificates in PEM.
    pub fn pem(&self) -> &[u8] {
        &self.pem
    }

    /// The file of the certificates.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl fmt::Debug for CaCertificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Authorities").field(&self.file).finish()
    }
}

/// Reads the file of `ca_file`, for an upstream at this address.
pub(crate) fn resolve(
    value: Spanned<String>,
    url: &str,
    folder: &Path,
) -> Result<CaCertificates, ConfigProblem> {
    let span = value.span.clone();
    if !url.starts_with("https://") {
        let description = "`ca_file` is only valid for `https://` URLs";
        return Err(ConfigProblem::new(description).help("remove it, or use `https://`").at(span));
    }
    let path = folder.join(file("ca_file", value)?);
    let shown = path.display().to_string();
    CaCertificates::read(path).map_err(|reason| {
        let help = "use a file that contains `-----BEGIN CERTIFICATE-----`";
        ConfigProblem::new(format!("`{shown}` {reason}")).help(help).at(span)
    })
}
