//! The admin listener of a server: its API, its metrics and its console.
