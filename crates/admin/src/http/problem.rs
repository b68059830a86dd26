//! Problem documents (RFC 9457): why a request was refused.

use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::settings::Role;

/// Where the kinds of problems are described.
const TYPE_PREFIX: &str = "https://github.com/creole-mcp/creole/blob/main/docs/admin-api.md#";

/// The kind of a problem. The list is closed: clients decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProblemCode {
    Unauthenticated,
    LinkUsed,
    SessionEnded,
    WrongPassword,
    Throttled,
    Forbidden,
    ForeignOrigin,
    WrongHost,
    NotFound,
    MethodNotAllowed,
    InvalidQuery,
    InvalidBody,
    UnsupportedMediaType,
    TooLarge,
    TooManyRequests,
    TooManyStreams,
    Changed,
    PreconditionRequired,
    Conflict,
    Unavailable,
    Internal,
}

impl ProblemCode {
    fn name(self) -> String {
        let name = serde_json::to_value(self).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Unauthenticated | Self::LinkUsed | Self::SessionEnded | Self::WrongPassword => {
                StatusCode::UNAUTHORIZED
            }
            Self::Throttled | Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Forbidden | Self::ForeignOrigin => StatusCode::FORBIDDEN,
            Self::WrongHost => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::InvalidQuery | Self::InvalidBody => StatusCode::BAD_REQUEST,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyStreams | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::PreconditionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a request was refused. It is boxed, because most requests are not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Problem(Box<ProblemDocument>);

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemDocument {
    /// A URI that names the kind of the problem.
    r#type: String,
    /// What failed, in one sentence.
    title: String,
    /// The status of the response.
    status: u16,
    /// Which value is wrong, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The kind of the problem: the end of `type`.
    code: ProblemCode,
    /// The missing role.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// The digest of the present definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    /// How many seconds to wait before the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
    /// The methods of the path.
    #[serde(skip)]
    allow: Option<String>,
}

impl Problem {
    /// A problem of this kind.
    pub(crate) fn new(code: ProblemCode, title: impl Into<String>) -> Self {
        Self(Box::new(ProblemDocument {
            r#type: format!("{TYPE_PREFIX}{}", code.name()),
            title: title.into(),
            status: code.status().as_u16(),
            detail: None,
            code,
            role: None,
            sha256: None,
            retry_after: None,
            allow: None,
        }))
    }

    /// The same with a second sentence.
    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// The same with the current digest.
    pub(crate) fn sha256(mut self, digest: impl Into<String>) -> Self {
        self.0.sha256 = Some(digest.into());
        self
    }

    /// The same with a time to wait.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// The same with the allowed methods.
    pub(crate) fn allow(mut self, methods: String) -> Self {
        self.0.allow = Some(methods);
        self
    }

    /// The caller lacks a role.
    pub(crate) fn missing_role(role: Role, caller: &str, roles: &[Role]) -> Self {
        let owned: Vec<&str> = roles.iter().map(|role| role.name()).collect();
        let owned =
            if owned.is_empty() { "no role of the admin API".into() } else { owned.join(", ") };
        let mut problem = Self::new(
            ProblemCode::Forbidden,
            format!("This needs the role {}", role.name()),
        )
        .detail(format!(
            "{caller} has {owned}; an operator can add the role to the file of users or keys"
        ));
        problem.0.role = Some(role);
        problem
    }

    /// There is nothing of this kind and name.
    pub(crate) fn not_found(kind: &str, name: &str) -> Self {
        Self::new(ProblemCode::NotFound, format!("There is no {kind} `{name}`"))
    }

    /// A part of the query is invalid.
    pub(crate) fn query(key: &str, expected: &str) -> Self {
        Self::new(ProblemCode::InvalidQuery, format!("The query parameter `{key}` is invalid"))
            .detail(format!("expected {expected}"))
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.code.status()
    }

    /// The kind.
    #[cfg(test)]
    pub(crate) fn code(&self) -> ProblemCode {
        self.0.code
    }

    /// The seconds to wait and the allowed methods, for the headers.
    pub(crate) fn header_values(&self) -> (Option<u64>, Option<&str>) {
        (self.0.retry_after, self.0.allow.as_deref())
    }
}
