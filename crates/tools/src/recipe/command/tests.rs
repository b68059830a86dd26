//! Tests of looking up programs.

use super::*;

#[test]
fn a_name_is_looked_up_and_a_path_is_taken() {
    let folders = [PathBuf::from("relative"), PathBuf::from("/nowhere"), PathBuf::from("/bin")];
    assert_eq!(find_program(Path::new("sh"), &folders), Some("/bin/sh".into()));
    assert_eq!(find_program(Path::new("/bin/sh"), &[]), Some("/bin/sh".into()));
    assert_eq!(find_program(Path::new("/etc/passwd"), &folders), None, "nobody may run it");
    assert_eq!(find_program(Path::new("/bin"), &folders), None);
    assert_eq!(find_program(Path::new("no-such-program"), &folders), None);
}
