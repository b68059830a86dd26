//! Reads which functions of a program ran from what callgrind writes.

use std::collections::{BTreeSet, HashMap};

/// The names, as the linker knows them, of the functions of the program called `program` that ran.
pub(super) fn functions(profile: &str, program: &str) -> BTreeSet<String> {
    let mut objects = HashMap::new();
    let mut functions = HashMap::new();
    let mut is_ours = false;
    let mut found = BTreeSet::new();
    for line in profile.lines() {
        let Some((key, reference)) = line.split_once('=') else { continue };
        match key {
            "ob" => is_ours = resolve(&mut objects, reference).ends_with(program),
            "cob" => drop(resolve(&mut objects, reference)),
            "cfn" => drop(resolve(&mut functions, reference)),
            "fn" => {
                let name = resolve(&mut functions, reference);
                // Behind the mark stands how deep a recursion was.
                let name = name.split('\'').next().unwrap_or(&name);
                // Without symbols callgrind names an address, `0x1234`, or `(below main)`.
                if is_ours && !name.starts_with(['0', '(']) {
                    found.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
    found
}

/// A name is written out once, `(7) name`, and then only its number, `(7)`.
fn resolve(known: &mut HashMap<String, String>, reference: &str) -> String {
    match reference.split_once(' ') {
        Some((number, name)) => {
            known.insert(number.to_owned(), name.to_owned());
            name.to_owned()
        }
        None => known.get(reference).cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn only_what_ran_in_the_program_itself_counts() {
        let profile = "ob=(1) /lib/libc.so.6\nfn=(1) malloc\n0 5\ncob=(2) /bin/creole\ncfn=(2) main\ncalls=1 0\n\
                       ob=(2)\nfn=(2)\n0 7\nfn=(3) walk'2\n0 7\nfn=(4) 0x00001234\n0 1\n";
        let found: Vec<_> = functions(profile, "/creole").into_iter().collect();
        assert_eq!(found, ["main", "walk"]);
    }
}
