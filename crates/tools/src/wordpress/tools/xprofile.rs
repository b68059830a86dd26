//! Profile fields, and the components that a site has.

use super::profile;
use super::spec::{Kind, Spec, Verb, may, must, tool};

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_xprofile_groups",
        "/buddyboss/v1/xprofile/groups",
        "Profile field group",
        "List the groups of profile fields.",
    )
    .takes(&[
        may("fetch_fields", Kind::Flag, "Whether the fields are listed too"),
        may("user_id", Kind::Id, "Member whose data is meant"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_list_xprofile_fields",
        "/buddyboss/v1/xprofile/fields",
        "Profile field",
        "List profile fields.",
    )
    .takes(&[
        may("profile_group_id", Kind::Id, "Only fields of this group"),
        may("user_id", Kind::Id, "Member whose data is meant"),
        may("fetch_field_data", Kind::Flag, "Whether the data is fetched too"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_xprofile_field",
        "/buddyboss/v1/xprofile/fields/{id}",
        "Profile field",
        "Get one profile field.",
    )
    .takes(&[
        must("id", Kind::Id, "Field ID"),
        may("user_id", Kind::Id, "Member whose data is meant"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_xprofile_data",
        "/buddyboss/v1/xprofile/{field_id}/data/{user_id}",
        "Member",
        "Get what a member has in a profile field.",
    )
    .takes(&[must("field_id", Kind::Id, "Field ID"), must("user_id", Kind::Id, "Member ID")]),
    tool(
        Verb::Put,
        "buddyboss_update_xprofile_data",
        "/buddyboss/v1/xprofile/{field_id}/data/{user_id}",
        "Member",
        "Change what a member has in a profile field.",
    )
    .takes(&[
        must("field_id", Kind::Id, "Field ID"),
        must("user_id", Kind::Id, "Member ID"),
        must(
            "value",
            Kind::TextOrTexts,
            "The new value, or several for fields that take several; a date as 1990-05-17",
        ),
    ])
    .by(profile::update),
    tool(
        Verb::Get,
        "buddyboss_list_components",
        "/buddyboss/v1/components",
        "Component",
        "List the components of the platform and whether they are active.",
    )
    .takes(&[may("status", Kind::Choice(&["all", "active", "inactive"]), "Which (default: all)")])
    .whole(),
];
