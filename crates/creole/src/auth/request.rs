//! What the authenticator reads of a request.

use std::fmt;
use std::net::IpAddr;

use http::{HeaderValue, Method};

/// The parts of a request that its caller is authenticated by.
#[derive(Clone, Copy)]
pub struct AuthRequest<'a> {
    /// The header `Authorization`.
    pub authorization: Option<&'a HeaderValue>,
    /// The address of the caller.
    pub peer: Option<IpAddr>,
    /// The number of the path among the resources of the settings.
    pub resource: usize,
    details: &'a dyn RequestDetails,
}

/// What only some callers are authenticated by. It is read when it is needed.
pub trait RequestDetails: Sync {
    /// The header `DPoP`, if it was sent once.
    fn dpop(&self) -> Option<HeaderValue>;
    /// The method.
    fn method(&self) -> &Method;
    /// The host that the request names, after its check.
    fn host(&self) -> Option<&str>;
    /// The SHA-256 of the certificate that the caller presented with TLS.
    fn certificate(&self) -> Option<[u8; 32]>;
}

/// A request without such details.
struct NoDetails;

impl RequestDetails for NoDetails {
    fn dpop(&self) -> Option<HeaderValue> {
        None
    }

    fn method(&self) -> &Method {
        &Method::POST
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn certificate(&self) -> Option<[u8; 32]> {
        None
    }
}

impl<'a> AuthRequest<'a> {
    /// A request to the first path with this header, from this address.
    #[must_use]
    pub fn new(authorization: Option<&'a HeaderValue>, peer: Option<IpAddr>) -> Self {
        Self { authorization, peer, resource: 0, details: &NoDetails }
    }

    /// The same request to the path with this number, with these details.
    #[must_use]
    pub fn with_details(self, resource: usize, details: &'a dyn RequestDetails) -> Self {
        Self { resource, details, ..self }
    }

    /// The header `DPoP`, if it was sent once.
    pub fn dpop(&self) -> Option<HeaderValue> {
        self.details.dpop()
    }

    /// The method.
    pub fn method(&self) -> &'a Method {
        self.details.method()
    }

    /// The host that the request names, after its check.
    pub fn host(&self) -> Option<&'a str> {
        self.details.host()
    }

    /// The SHA-256 of the certificate that the caller presented with TLS.
    pub fn certificate(&self) -> Option<[u8; 32]> {
        self.details.certificate()
    }
}

/// Shows no header: they are secrets.
impl fmt::Debug for AuthRequest<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AuthRequest")
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}
