//! Users with passwords, looked up in a time that does not reveal whether they exist.

use std::sync::Arc;

use argon2::password_hash::phc::PasswordHash;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::file::{CredentialEntry, StoredCredential};
use crate::auth::fingerprints::Fingerprints;
use crate::auth::{Digest, password};
use crate::principal::Principal;

/// The known users.
#[derive(Debug)]
pub(in crate::auth) struct Users {
    users: Vec<User>,
    /// The hash that is verified if there is no user at all.
    dummy_hash: Arc<PasswordHash>,
}

#[derive(Debug)]
struct User {
    name: Digest,
    hash: Arc<PasswordHash>,
    principal: Principal,
}

/// The hash to verify a password against, with its principal.
#[derive(Debug)]
pub(in crate::auth) struct UserLookup {
    pub(in crate::auth) hash: Arc<PasswordHash>,
    /// `None` for an unknown name, whatever the password is.
    pub(in crate::auth) principal: Option<Principal>,
}

impl Users {
    pub(in crate::auth) fn new(entries: Vec<CredentialEntry>, fingerprints: &Fingerprints) -> Self {
        let user = |entry: CredentialEntry| match entry.credential {
            StoredCredential::Password(hash) => Some(User {
                name: fingerprints.of(b"name", &[entry.name.as_bytes()]),
                principal: Principal::new(&format!("user:{}", entry.name), &entry.roles),
                hash,
            }),
            StoredCredential::Key { .. } => None,
        };
        let users = entries.into_iter().filter_map(user).collect();
        Self { users, dummy_hash: Arc::new(password::dummy_hash()) }
    }

    pub(in crate::auth) fn len(&self) -> usize {
        self.users.len()
    }

    /// The hash for a name. For an unknown name it is the hash of some user, always the same one for that name: the
    /// cost is then that of a real user, also if the file has hashes of different cost.
    pub(in crate::auth) fn find(&self, name: &Digest) -> UserLookup {
        let [first, second, third, fourth, ..] = *name;
        let number = u32::from_be_bytes([first, second, third, fourth]) as usize;
        let Some(stand_in) = number.checked_rem(self.users.len()) else {
            return UserLookup { hash: Arc::clone(&self.dummy_hash), principal: None };
        };
        let (mut index, mut known) = (stand_in as u64, Choice::from(0));
        for (each, user) in (0..).zip(&self.users) {
            let is_it = user.name.ct_eq(name);
            index.conditional_assign(&each, is_it);
            known |= is_it;
        }
        let user = &self.users[usize::try_from(index).unwrap_or(stand_in)];
        let principal = user.principal.clone();
        UserLookup {
            hash: Arc::clone(&user.hash),
            principal: bool::from(known).then_some(principal),
        }
    }
}
