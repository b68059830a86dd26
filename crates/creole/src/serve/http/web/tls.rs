//! TLS: a certificate and its key from files, reloaded when they change.

use crate::secrets::digest;
use crate::sync::Mutex;
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, fs, io};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Minimum interval between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The ALPN protocols, in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A certificate and its key, as currently in their files.
pub struct Certificates {
    files: CertificateFiles,
    current: Mutex<LoadedCertificates>,
}

/// The files of a TLS listener.
#[derive(Clone, Debug)]
struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
    /// The authorities of the certificates that clients may present.
    client_roots: Option<PathBuf>,
}

struct LoadedCertificates {
    config: Arc<ServerConfig>,
    /// The stamps of the files when they were last read.
    stamp: FileStamps,
    /// When the files were last checked.
    last_check: Instant,
}

/// Why a certificate cannot be used; the text names the file.
#[derive(Debug)]
pub struct CertificateError(String);

impl Certificates {
    /// Reads both files, in PEM form: the certificate followed by its chain, and the key.
    ///
    /// # Errors
    /// When a file cannot be read or is malformed, or the key does not match the certificate.
    pub fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, CertificateError> {
        Self::load_with_clients(certificate, key, None)
    }

    /// The same, and requests certificates of clients. A client may present none. One that it presents must be issued by
    /// an authority in the file, in PEM form.
    ///
    /// # Errors
    /// When a file cannot be read or is malformed, or the key does not match the certificate.
    pub fn load_with_clients(
        certificate: &Path,
        key: &Path,
        client_roots: Option<&Path>,
    ) -> Result<Arc<Self>, CertificateError> {
        let files = CertificateFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            client_roots: client_roots.map(Path::to_owned),
        };
        let stamp = FileStamps::of(&files);
        let config = load_config(&files)?;
        let current = LoadedCertificates { config, stamp, last_check: Instant::now() };
        Ok(Arc::new(Self { files, current: Mutex::new(current) }))
    }

    /// Reloads the files if they changed; returns whether they did.
    ///
    /// # Errors
    /// When they cannot be used. The previous certificate then stays in use.
    pub fn reload(&self) -> Result<bool, CertificateError> {
        let stamp = FileStamps::of(&self.files);
        {
            let mut current = self.current();
            current.last_check = Instant::now();
            if current.stamp == stamp {
                return Ok(false);
            }
            // Also if the files are invalid: they are read again when they change again.
            current.stamp = stamp;
        }
        let config = load_config(&self.files)?;
        self.current().config = config;
        tracing::info!(target: "creole::http", "the certificate was reloaded");
        Ok(true)
    }

    /// Performs the handshake with the current certificate.
    pub(crate) async fn accept<T>(self: &Arc<Self>, stream: T) -> io::Result<TlsStream<T>>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        if self.is_check_due() {
            let certificates = Arc::clone(self);
            let reloaded = tokio::task::spawn_blocking(move || certificates.reload()).await;
            if let Ok(Err(error)) = reloaded {
                tracing::error!(target: "creole::http", %error, "the old certificate stays in use");
            }
        }
        let config = Arc::clone(&self.current().config);
        TlsAcceptor::from(config).accept(stream).await
    }

    /// Whether a check is due; records it if so.
    fn is_check_due(&self) -> bool {
        let mut current = self.current();
        let due = current.last_check.elapsed() >= CHECK_INTERVAL;
        if due {
            current.last_check = Instant::now();
        }
        due
    }

    fn current(&self) -> MutexGuard<'_, LoadedCertificates> {
        // Every change is one assignment, so a panic leaves no partial change.
        self.current.lock()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificates")
            .field("certificate", &self.files.certificate)
            .finish()
    }
}

/// The metadata of the files; a changed file has a different stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamps([Option<(SystemTime, u64, u64)>; 3]);

impl FileStamps {
    fn of(files: &CertificateFiles) -> Self {
        let paths = [Some(&files.certificate), Some(&files.key), files.client_roots.as_ref()];
        Self(paths.map(|path| {
            let seen = fs::metadata(path?).ok()?;
            Some((seen.modified().ok()?, seen.len(), identity(&seen)))
        }))
    }
}

/// The inode: a file that replaces another has a different one, even within one tick of the clock.
#[cfg(unix)]
fn identity(seen: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(seen)
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}

fn load_config(files: &CertificateFiles) -> Result<Arc<ServerConfig>, CertificateError> {
    let CertificateFiles { certificate, key, client_roots } = files;
    let failure = |path: &Path, description: &str| {
        CertificateError(format!("{}: {description}", path.display()))
    };
    let text = read_limited(certificate)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| failure(certificate, &format!("not a PEM certificate: {error}")))?;
    if chain.is_empty() {
        return Err(failure(
            certificate,
            "the file has no certificate; a certificate begins with `-----BEGIN CERTIFICATE-----`",
        ));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read_limited(key)?).map_err(|_| {
        failure(key, "the file has no private key; a key begins with `-----BEGIN PRIVATE KEY-----`")
    })?;
    let builder = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| CertificateError(format!("cannot use TLS: {error}")))?;
    let builder = match client_roots {
        Some(file) => builder.with_client_cert_verifier(client_verifier(file)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| {
        failure(certificate, &format!("cannot be used with the key {}: {error}", key.display()))
    })?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Arc::new(config))
}

/// Accepts clients without a certificate, and certificates of the authorities in a file.
fn client_verifier(file: &Path) -> Result<Arc<dyn ClientCertVerifier>, CertificateError> {
    let failure =
        |description: String| CertificateError(format!("{}: {description}", file.display()));
    let text = read_limited(file)?;
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(&text) {
        let root = root.map_err(|error| failure(format!("not a PEM certificate: {error}")))?;
        roots.add(root).map_err(|error| failure(format!("not an authority: {error}")))?;
    }
    let provider = aws_lc_rs::default_provider().into();
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| failure(format!("it has no authority: {error}")))
}

/// The SHA-256 of the certificate that the client of a connection has presented.
pub(crate) fn client_certificate<T>(stream: &TlsStream<T>) -> Option<Arc<[u8; 32]>> {
    let presented = stream.get_ref().1.peer_certificates()?;
    Some(Arc::new(digest(presented.first()?)))
}

fn read_limited(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |error: io::Error| CertificateError(format!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    Ok(bytes)
}

impl std::error::Error for CertificateError {}

impl fmt::Display for CertificateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
