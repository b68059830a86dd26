//! Tests of the curated tools.

mod administration;
mod requests;
mod safety;

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_tool_has_a_unique_name_and_a_valid_schema() {
    let mut names = BTreeSet::new();
    for spec in SETS.iter().flat_map(|(set, _)| specs_of_set(set)) {
        assert!(spec.name.starts_with("buddyboss_") && spec.name.len() <= 48, "{}", spec.name);
        assert!(names.insert(spec.name), "{} is listed twice", spec.name);
        assert!(spec.about.ends_with('.'), "{}", spec.name);
        let schema = spec.schema();
        assert!(creole::Schema::new(schema.to_string()).validate(&Value::Null).is_err());
        for part in spec.route.split('/').filter_map(|part| part.strip_prefix('{')) {
            let name = part.trim_end_matches('}');
            let argument = spec.arguments.iter().find(|argument| argument.name == name);
            assert!(argument.is_some_and(|it| it.required), "{}: {name}", spec.name);
        }
    }
    assert_eq!(names.len(), 94);
}
