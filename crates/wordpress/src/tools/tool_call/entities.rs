//! The entities that ids refer to: their nouns, and checks of their existence. The platform accepts many ids without a
//! check.

use std::collections::BTreeSet;

use creole::ToolError;
use serde_json::Value;

use crate::site::SiteRequest;
use crate::site::site_error::{SiteError, WordPressError};
use crate::tools::spec::SiteArgumentType;
use crate::tools::tool_call::{ToolCall, not_found};

/// A kind of entity.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EntityKind {
    pub(crate) noun: &'static str,
    /// The route of an entity, before its id.
    route: &'static str,
}

pub(crate) const GROUP: EntityKind = EntityKind { noun: "Group", route: "/buddyboss/v1/groups/" };
pub(crate) const MEMBER: EntityKind =
    EntityKind { noun: "Member", route: "/buddyboss/v1/members/" };
pub(crate) const THREAD: EntityKind =
    EntityKind { noun: "Thread", route: "/buddyboss/v1/messages/" };

/// The nouns for arguments whose entity is not the tool's own.
const NOUNS: &[(&str, &str)] = &[
    ("user_id", "Member"),
    ("friend_id", "Member"),
    ("initiator_id", "Member"),
    ("reassign", "Member"),
    ("group_id", "Group"),
    ("parent_id", "Group"),
    ("thread_id", "Thread"),
    ("forum_id", "Forum"),
    ("topic_id", "Topic"),
    ("destination_id", "Topic"),
    ("reply_id", "Reply"),
    ("activity_id", "Activity"),
    ("comment_id", "Comment"),
    ("field_id", "Profile field"),
    ("profile_group_id", "Profile field group"),
];

impl ToolCall<'_> {
    /// Checks that all entities of the call exist.
    pub(crate) async fn check_entities(&self) -> Result<(), ToolError> {
        for argument in self.spec.arguments {
            let (Some(thing), Some(value)) = (argument.entity, self.arguments.get(argument.name))
            else {
                continue;
            };
            match (argument.kind, value) {
                (SiteArgumentType::Ids, Value::Array(ids)) => {
                    let ids: Vec<u64> = ids.iter().filter_map(Value::as_u64).collect();
                    self.check_members_exist(&ids).await?;
                }
                (_, value) => self.check_exists(thing, value.as_u64().unwrap_or_default()).await?,
            }
        }
        Ok(())
    }

    /// Checks that an entity exists. A refusal for another reason is left to the call itself.
    async fn check_exists(&self, thing: &EntityKind, id: u64) -> Result<(), ToolError> {
        let request =
            SiteRequest::get(format!("{}{id}", thing.route)).with_query("_fields", "id,message_id");
        let is_missing = match self.try_request(&request).await {
            // The platform responds to an unknown thread with an empty one.
            Ok(response) => response.body["message_id"] == 0,
            Err(SiteError::Refused(refusal)) => {
                refusal.status == 404 && !refusal.is_missing_route()
            }
            Err(_) => false,
        };
        match is_missing {
            true => {
                Err(ToolError::failed(format!("{}; nothing was sent", not_found(thing.noun, id))))
            }
            false => Ok(()),
        }
    }

    /// The same for several members at once. Members that the list omits are checked individually.
    async fn check_members_exist(&self, ids: &[u64]) -> Result<(), ToolError> {
        let list: Vec<String> = ids.iter().map(u64::to_string).collect();
        let request =
            SiteRequest::get("/buddyboss/v1/members").with_query("include", list.join(","));
        let request = request
            .with_query("type", "alphabetical")
            .with_query("per_page", 100)
            .with_query("_fields", "id");
        let found: BTreeSet<u64> = match self.try_request(&request).await {
            Ok(response) => {
                let members = response.body.as_array().into_iter().flatten();
                members.filter_map(|member| member["id"].as_u64()).collect()
            }
            Err(_) => BTreeSet::new(),
        };
        for id in ids.iter().filter(|id| !found.contains(id)) {
            self.check_exists(&MEMBER, *id).await?;
        }
        Ok(())
    }

    /// The message for a missing entity. If the call names several, the site's code or message identifies it; otherwise
    /// only the site's own message is correct.
    pub(crate) fn not_found_message(&self, refusal: &WordPressError) -> Option<String> {
        if !refusal.is_unknown_id() {
            return None;
        }
        let mut named = Vec::new();
        for argument in self.spec.arguments {
            let (SiteArgumentType::Id, Some(id)) = (argument.kind, self.number(argument.name))
            else {
                continue;
            };
            let noun =
                NOUNS.iter().find_map(|(name, noun)| (*name == argument.name).then_some(*noun));
            named.push((noun.unwrap_or(self.spec.noun), id));
        }
        let text = format!("{} {}", refusal.code, refusal.message).to_lowercase();
        // Codes and messages contain the last word of the noun.
        let word =
            |noun: &str| noun.to_lowercase().split(' ').next_back().unwrap_or_default().to_owned();
        match &named[..] {
            [(noun, id)] => Some(not_found(noun, *id)),
            several => {
                let mut fitting = several.iter().filter(|(noun, _)| text.contains(&word(noun)));
                match (fitting.next(), fitting.next()) {
                    (Some((noun, id)), None) => Some(not_found(noun, *id)),
                    _ => None,
                }
            }
        }
    }
}
