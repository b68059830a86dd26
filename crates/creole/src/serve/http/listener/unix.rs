//! A listener on a Unix socket that only the user of the process can connect to.

use std::fs::Permissions;
use std::io;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::UnixListener;
use tokio::time::sleep;

use crate::serve::http::conn::connection;
use crate::serve::http::conn::connection::ConnectionParts;
use crate::serve::http::conn::hyper_connections::HyperBuilders;
use crate::serve::http::conn::socket::TimedSocket;
use crate::serve::http::conn::timeouts::ConnectionTimeouts;
use crate::serve::http::web::connection_slots::ConnectionSlots;
use crate::serve::http::web::drain::DrainStage;
use crate::serve::http::web::handler::{HttpHandler, PeerAddress};
use crate::serve::http::web::limits::{ACCEPT_PAUSE, HttpLimits};
use crate::serve::http::web::router::Router;

/// Only the user of the process may connect.
const PRIVATE: u32 = 0o600;

/// A listener on a Unix socket that is bound and not yet serving. Dropping it removes the socket.
#[derive(Debug)]
pub struct UnixSocketListener {
    socket: UnixListener,
    path: PathBuf,
    limits: HttpLimits,
}

impl UnixSocketListener {
    /// Binds a path. A socket that a dead process left there is replaced.
    ///
    /// # Errors
    /// When the path cannot be bound, or a living process listens on it.
    pub fn bind(path: &Path, limits: HttpLimits) -> io::Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(io::Error::new(ErrorKind::AlreadyExists, "the file is no socket"));
            }
            Ok(_) if std::os::unix::net::UnixStream::connect(path).is_ok() => {
                return Err(ErrorKind::AddrInUse.into());
            }
            Ok(_) => std::fs::remove_file(path)?,
        }
        // Nobody knows the first name, so nobody connects before the permissions are set.
        let name = crate::task::random_id().map_err(|fault| io::Error::other(fault.detail))?;
        let hidden = path.with_file_name(format!(".{}", &name[..8]));
        let socket = UnixListener::bind(&hidden)?;
        let placed = std::fs::set_permissions(&hidden, Permissions::from_mode(PRIVATE))
            .and_then(|()| std::fs::rename(&hidden, path));
        if let Err(error) = placed {
            let _ = std::fs::remove_file(&hidden);
            return Err(error);
        }
        Ok(Self { socket, path: path.to_owned(), limits })
    }

    /// Serves until the router's [`Drain`](super::super::Drain) starts.
    pub async fn serve<A: HttpHandler>(self, router: Router<A>) {
        let drain = router.drain().clone();
        let (protocol, router) = (Arc::new(HyperBuilders::new(&self.limits)), Arc::new(router));
        let slots = ConnectionSlots::new(&self.limits);
        // Whoever can connect runs on this machine.
        let peer = PeerAddress(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0));
        let accept_all = async {
            loop {
                let Some(slot) = slots.wait().await else { return };
                let stream = match self.socket.accept().await {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::warn!(target: "creole::http", %error, "cannot accept a connection");
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                let timeouts = ConnectionTimeouts::new(self.limits);
                let socket = TimedSocket::new(stream, Arc::clone(&timeouts));
                let served = ConnectionParts {
                    router: Arc::clone(&router),
                    protocol: Arc::clone(&protocol),
                    peer: peer.into(),
                    timeouts,
                    drain: drain.watch(),
                    slot,
                };
                tokio::spawn(connection::serve(socket, served));
            }
        };
        tokio::select! {
            () = accept_all => {}
            () = drain.wait_for(DrainStage::Draining) => {}
        }
    }
}

impl Drop for UnixSocketListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_is_private_and_a_living_one_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.sock");
        let limits = HttpLimits::default();
        let first = UnixSocketListener::bind(&path, limits).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, PRIVATE);
        let error = UnixSocketListener::bind(&path, limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(first);
        assert!(!path.exists());
        // What a killed process leaves behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(UnixSocketListener::bind(&path, limits).unwrap());
        std::fs::write(&path, "notes").unwrap();
        assert!(UnixSocketListener::bind(&path, limits).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes");
    }
}
