//! Profile fields, and the components of a site.

pub(crate) mod profile_value;

use super::spec::{SiteArgumentType, ToolSpec, Verb, optional, required, tool};

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_xprofile_groups",
        "/buddyboss/v1/xprofile/groups",
        "Profile field group",
        "List the groups of profile fields.",
    )
    .with_arguments(&[
        optional("fetch_fields", SiteArgumentType::Flag, "Whether the fields are listed too"),
        optional("user_id", SiteArgumentType::Id, "Member whose data is meant"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_list_xprofile_fields",
        "/buddyboss/v1/xprofile/fields",
        "Profile field",
        "List profile fields.",
    )
    .with_arguments(&[
        optional("profile_group_id", SiteArgumentType::Id, "Only fields of this group"),
        optional("user_id", SiteArgumentType::Id, "Member whose data is meant"),
        optional("fetch_field_data", SiteArgumentType::Flag, "Whether the data is fetched too"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_xprofile_field",
        "/buddyboss/v1/xprofile/fields/{id}",
        "Profile field",
        "Get one profile field.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Field ID"),
        optional("user_id", SiteArgumentType::Id, "Member whose data is meant"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_xprofile_data",
        "/buddyboss/v1/xprofile/{field_id}/data/{user_id}",
        "Member",
        "Get the value of a member's profile field.",
    )
    .with_arguments(&[
        required("field_id", SiteArgumentType::Id, "Field ID"),
        required("user_id", SiteArgumentType::Id, "Member ID"),
    ]),
    tool(
        Verb::Put,
        "buddyboss_update_xprofile_data",
        "/buddyboss/v1/xprofile/{field_id}/data/{user_id}",
        "Member",
        "Change the value of a member's profile field.",
    )
    .with_arguments(&[
        required("field_id", SiteArgumentType::Id, "Field ID"),
        required("user_id", SiteArgumentType::Id, "Member ID"),
        required(
            "value",
            SiteArgumentType::TextOrTexts,
            "The new value, or several for fields that take several; a date as 1990-05-17",
        ),
    ])
    .with_custom_run(profile_value::update),
    tool(
        Verb::Get,
        "buddyboss_list_components",
        "/buddyboss/v1/components",
        "Component",
        "List the components of the platform and whether they are active.",
    )
    .with_arguments(&[optional(
        "status",
        SiteArgumentType::Choice(&["all", "active", "inactive"]),
        "Which (default: all)",
    )])
    .without_pages(),
];
