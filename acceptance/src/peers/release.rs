//! Older releases of an SDK, each with a newest revision.

/// A release of the TypeScript SDK, named by the newest revision that it supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Release {
    /// 2025-06-18.
    June2025,
    /// 2025-03-26.
    March2025,
    /// 2024-11-05; it has no Streamable HTTP, which came later.
    November2024,
}

impl Release {
    /// All releases, newest first.
    pub const ALL: [Self; 3] = [Self::June2025, Self::March2025, Self::November2024];

    /// The name of the release and of its folder under `target/peers/`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::June2025 => "typescript-v1.22",
            Self::March2025 => "typescript-v1.12",
            Self::November2024 => "typescript-v1.9",
        }
    }

    /// The newest revision that it supports.
    #[must_use]
    pub fn revision(self) -> &'static str {
        match self {
            Self::June2025 => "2025-06-18",
            Self::March2025 => "2025-03-26",
            Self::November2024 => "2024-11-05",
        }
    }

    /// The folder of its manifest under `acceptance/peers/`.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::June2025 => "typescript/v1.22",
            Self::March2025 => "typescript/v1.12",
            Self::November2024 => "typescript/v1.9",
        }
    }
}
