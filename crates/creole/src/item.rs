//! The items of a server: tools, resources, prompts and skills.

pub(crate) mod front_matter;
pub(crate) mod media;
pub(crate) mod prompt;
pub(crate) mod resource;
pub(crate) mod skill;
pub(crate) mod tool;
pub(crate) mod uri_template;
