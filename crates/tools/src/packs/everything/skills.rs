//! Skills: one with a reference, and one below a prefix with templates at two depths.

use creole::{Server, Skill};

/// The files of a skill, each with its path.
type SkillFiles = &'static [(&'static str, &'static str)];

const SKILLS: &[(&str, SkillFiles)] = &[
    (
        "git-commit",
        &[
            ("SKILL.md", include_str!("skills/git-commit/SKILL.md")),
            ("references/examples.md", include_str!("skills/git-commit/references/examples.md")),
        ],
    ),
    (
        "office/minutes",
        &[
            ("SKILL.md", include_str!("skills/office/minutes/SKILL.md")),
            ("templates/short.md", include_str!("skills/office/minutes/templates/short.md")),
            (
                "templates/long/full-day.md",
                include_str!("skills/office/minutes/templates/long/full-day.md"),
            ),
        ],
    ),
];

pub(crate) fn add(mut server: Server) -> Server {
    for (path, files) in SKILLS {
        let files = files.iter().map(|(file, text)| (*file, text.as_bytes()));
        server =
            server.skill(Skill::new(path, files).expect("the skills that ship inside are right"));
    }
    server
}
