//! Members. Those who are made, changed and deleted are WordPress's users: the platform's own routes lose the address of
//! a new member and who inherits what a deleted one wrote.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::errand::Errand;
use super::spec::{Given, Kind, PAGE, Spec, Verb, may, must, tool};
use crate::wordpress::guard::OWN_ACCOUNT;
use crate::wordpress::site::{Answered, Asked};
use crate::wordpress::trouble::Trouble;

const TYPES: Kind =
    Kind::Choice(&["active", "newest", "alphabetical", "random", "online", "popular"]);
const ID: Kind = Kind::Id;
/// How many pages of a hundred users are looked through for a role.
const MOST_PAGES: u64 = 10;

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_members",
        "/buddyboss/v1/members",
        "Member",
        "List all members with optional filtering by role, status, or search query.",
    )
    .takes(&[
        PAGE,
        may("per_page", Kind::PerPage, "Members per page (default: 20, max: 100)")
            .or(Given::Number(20)),
        may("search", Kind::Text, "Search members by name or username"),
        may("type", TYPES, "Which members, and in which order (default: alphabetical)")
            .or(Given::Text("alphabetical")),
        may("role", Kind::Text, "Only members with this WordPress role").kept(),
        may("member_type", Kind::Texts, "Only members of these member types"),
        may("include", Kind::Ids, "Only members with these IDs").kept(),
        may("exclude", Kind::Ids, "No members with these IDs"),
        may("scope", Kind::Text, "Limit to a scope, such as following or followers"),
    ])
    .by(list),
    tool(
        Verb::Get,
        "buddyboss_get_member",
        "/buddyboss/v1/members/{id}",
        "Member",
        "Get one member with profile data and e-mail address.",
    )
    .takes(&[must("id", ID, "Member ID")])
    .sends(&[("context", Given::Text("edit"))])
    .by(get),
    tool(
        Verb::Post,
        "buddyboss_create_member",
        "/wp/v2/users",
        "Member",
        "Create a member. The password is sent to the site and not shown again.",
    )
    .takes(&[
        must("username", Kind::Text, "Name to log in with"),
        must("email", Kind::Text, "E-mail address"),
        must("password", Kind::Text, "Password to log in with"),
        may("name", Kind::Text, "Name that others see"),
        may("roles", Kind::Texts, "WordPress roles"),
    ])
    .sends(&[("context", Given::Text("edit"))]),
    tool(
        Verb::Put,
        "buddyboss_update_member",
        "/wp/v2/users/{id}",
        "Member",
        "Change the name, e-mail address or member type of a member.",
    )
    .takes(&[
        must("id", ID, "Member ID"),
        may("name", Kind::Text, "Name that others see"),
        may("email", Kind::Text, "E-mail address"),
        may("member_type", Kind::Text, "Member type").kept(),
    ])
    .by(update),
    tool(
        Verb::Delete,
        "buddyboss_delete_member",
        "/wp/v2/users/{id}",
        "Member",
        "Delete a member for good. Posts go to the member named by reassign, or are deleted too.",
    )
    .takes(&[
        must("id", ID, "Member ID"),
        may("reassign", ID, "ID of the member who gets the posts").or(Given::Flag(false)),
    ])
    .sends(&[("force", Given::Flag(true))])
    .by(delete),
];

/// The members of a role are found by WordPress, which the platform then is asked for.
fn list<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let named: Option<Vec<u64>> = errand
            .arguments
            .get("include")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_u64).collect());
        let include = match errand.text("role") {
            None => named,
            Some(role) => {
                let is_named = |id: &u64| named.as_ref().is_none_or(|named| named.contains(id));
                Some(with_role(errand, role).await?.into_iter().filter(is_named).collect())
            }
        };
        match include {
            None => errand.plain().await,
            // Nobody: an empty list would be no condition at all.
            Some(ids) if ids.is_empty() => Ok(Answered::made(json!([]).into())),
            Some(ids) => {
                let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
                errand.ask(&errand.request().with("include", ids.join(","))).await
            }
        }
    })
}

/// The ids of all users with a role.
async fn with_role(errand: &Errand<'_>, role: &str) -> Result<Vec<u64>, ToolError> {
    let mut ids = Vec::new();
    for page in 1..=MOST_PAGES {
        let users = Asked::get("/wp/v2/users").with("roles", role).with("per_page", 100);
        let users = users.with("page", page).with("context", "edit").with("_fields", "id");
        let answered = errand.ask(&users).await?;
        let found = answered.body.as_array().into_iter().flatten();
        ids.extend(found.filter_map(|user| user["id"].as_u64()));
        if answered.extent.is_none_or(|(_, pages)| page >= pages) {
            return Ok(ids);
        }
    }
    let most = MOST_PAGES * 100;
    Err(ToolError::failed(format!(
        "more than {most} members have the role `{role}`: search instead"
    )))
}

/// The platform does not tell the address; WordPress does. Who may not edit the member is shown what everybody sees.
fn get<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let mut member = match errand.try_ask(&errand.request()).await {
            Err(Trouble::Refused(refusal)) if refusal.status == 403 => {
                errand.ask(&Asked::get(errand.path(errand.spec.route))).await?
            }
            Err(trouble) => return Err(errand.told(trouble, false).await),
            Ok(member) => member,
        };
        let user = Asked::get(errand.path("/wp/v2/users/{id}")).with("context", "edit");
        if let Ok(user) = errand.try_ask(&user.with("_fields", "email")).await {
            member.shown.insert("email", user.body["email"].clone().into());
        }
        Ok(member)
    })
}

/// Callers never delete themselves: the site could lose its only administrator.
fn delete<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let (id, heir) = (errand.number("id"), errand.number("reassign"));
        if id == Some(errand.visitor.id) {
            return Err(ToolError::failed(OWN_ACCOUNT));
        }
        if heir.is_some() && heir == id {
            return Err(ToolError::failed(
                "`reassign` names the member who is deleted; name another one",
            ));
        }
        errand.plain().await
    })
}

/// The platform ignores a member type that it does not know, so what it made of it is looked at.
fn update<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let user = errand.request();
        let is_empty = user.body.as_ref().and_then(Value::as_object).is_none_or(Map::is_empty);
        let Some(wanted) = errand.text("member_type") else {
            if is_empty {
                return Err(ToolError::failed(
                    "nothing to change: give name, email or member_type",
                ));
            }
            return errand.ask(&user).await;
        };
        if !is_empty {
            errand.ask(&user).await?;
        }
        let member = Asked::new(Method::PUT, errand.path("/buddyboss/v1/members/{id}"));
        let member =
            errand.ask(&member.body(json!({"types": wanted, "member_type": wanted}))).await;
        let member = member.map_err(|error| half(errand, error))?;
        let types = &member.body["member_types"];
        let is_there = types.get(wanted).is_some()
            || types.as_array().is_some_and(|types| types.iter().any(|it| *it == wanted));
        match is_there {
            true => Ok(member),
            false => {
                let why = format!("the site has no member type `{wanted}`");
                Err(half(errand, ToolError::failed(why)))
            }
        }
    })
}

/// Why the member type was not changed, and what was.
fn half(errand: &Errand<'_>, error: ToolError) -> ToolError {
    let names = ["name", "email"].iter().filter(|name| errand.arguments.contains_key(**name));
    let changed: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match error {
        ToolError::Failed(why) if !changed.is_empty() => {
            let changed = changed.join(" and ");
            ToolError::failed(format!(
                "{changed} changed as asked, but `member_type` did not: {why}"
            ))
        }
        other => other,
    }
}
