//! Valid and invalid files of users and keys, and their edits.

use super::super::credential_text::CredentialText;
use super::super::keys::NewKey;
use super::*;

const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$\
                    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const KEY: &str = "$sha256$ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn error_text(text: &str, kind: CredentialKind) -> String {
    let error = parse(text, kind).unwrap_err();
    explain_error(error, kind, Path::new("f")).to_string()
}

#[test]
fn comments_blank_lines_and_spaces_are_accepted() {
    let text = format!(
        "\u{feff}# Ours\r\n\r\n  alice : {HASH} : mcp , admin\r\nbob:{HASH}\n#x\ncarol:{HASH}:"
    );
    let entries = parse(&text, CredentialKind::Users).unwrap();
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {} {}", entry.line, entry.name, entry.roles.join("+")))
        .collect();
    assert_eq!(shown, ["3 alice mcp+admin", "4 bob ", "6 carol "]);
}

#[test]
fn the_roles_of_the_admin_listener_have_a_colon() {
    let users = parse(&format!("alice:{HASH}:mcp,admin:read"), CredentialKind::Users).unwrap();
    assert_eq!(users[0].roles.join("+"), "mcp+admin:read");
    let expiry = |text: &str| {
        let keys = parse(&format!("ci:{KEY}:{text}"), CredentialKind::Keys).unwrap();
        let StoredCredential::Key { expires, .. } = &keys[0].credential else { panic!("no key") };
        format!("{} {}", keys[0].roles.join("+"), expires.is_some())
    };
    assert_eq!(expiry("admin:read"), "admin:read false");
    assert_eq!(expiry("admin:read, admin:approve,mcp"), "admin:read+admin:approve+mcp false");
    assert_eq!(expiry("mcp,admin:operate:2027-01-31T12:00:00Z"), "mcp+admin:operate true");
    assert_eq!(expiry("admin:2027-01-31"), "admin true");
    for (text, kind) in
        [("mcp:read", CredentialKind::Users), ("admin:reader", CredentialKind::Keys)]
    {
        let hash = if kind == CredentialKind::Users { HASH } else { KEY };
        let message = error_text(&format!("alice:{hash}:{text}"), kind);
        assert!(message.contains("the role contains a character that is not allowed"), "{message}");
    }
}

#[test]
fn each_error_is_reported_with_its_line_and_without_its_content() {
    let user = |line: &str| {
        error_text(&format!("# one\n{}", line.replace("HASH", HASH)), CredentialKind::Users)
    };
    let key = |line: &str| {
        error_text(&format!("# one\n{}", line.replace("KEY", KEY)), CredentialKind::Keys)
    };
    let plain = "the value is not a hash; it may be the password itself; \
                 `creole passwd f NAME` stores the hash of a password";
    let cases = [
        (user("hunter2"), "f:2: the line has no colon; a line is `name:hash` or `name:hash:role,role`".to_owned()),
        (user("alice:hunter2"), format!("f:2: of `alice`: {plain}")),
        (user("alice:"), format!("f:2: of `alice`: {plain}")),
        (user(":HASH"), "f:2: the name is empty".to_owned()),
        (user("al ice:HASH"), "f:2: the name contains a character that is not allowed; use letters A to Z, digits and . _ - + @".to_owned()),
        (user(&format!("{}:HASH", "a".repeat(65))), "f:2: the name is longer than 64 characters".to_owned()),
        (user("alice:HASH:mcp,,admin"), "f:2: the role is empty".to_owned()),
        (user("alice:HASH:mcp,mcp"), "f:2: the role `mcp` is listed twice".to_owned()),
        (user("alice:HASH:m\"cp"), "f:2: the role contains a character that is not allowed; use letters A to Z, digits and . _ - + @".to_owned()),
        (user("alice:HASH\nbob:HASH\nalice:HASH"), "f:4: `alice` is already defined in line 2".to_owned()),
        (user(&format!("ci:{KEY}")), "f:2: of `ci`: a key hash in a file of users; put keys into the file of `keys_file`".to_owned()),
        (key(&format!("alice:{HASH}")), "f:2: of `alice`: a password hash in a file of keys; put users into the file of `users`".to_owned()),
        (key("ci:creole_abc"), "f:2: of `ci`: the value is not a hash; it may be the key itself; `creole passwd f --key NAME` creates a key and stores its hash".to_owned()),
        (key("ci:KEY0"), "f:2: of `ci`: the value is not a hash; it may be the key itself; `creole passwd f --key NAME` creates a key and stores its hash".to_owned()),
        (key("ci:KEY:mcp:soon"), "f:2: of `ci`: the expiry is not a valid date; write it like 2027-01-31 or 2027-01-31T12:00:00Z".to_owned()),
    ];
    for (message, expected) in cases {
        assert_eq!(message, expected);
        assert!(!message.contains("hunter2") && !message.contains("creole_abc"));
    }
    let many = (0..33).map(|number| format!("r{number}")).collect::<Vec<_>>().join(",");
    assert!(user(&format!("alice:HASH:{many}")).contains("more than 32 roles"));
}

#[test]
fn an_unreadable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).unwrap();
    write("latin1", b"# a\n# caf\xe9\n");
    write("huge", &vec![b'#'; 1024 * 1024 + 1]);
    let what = |name: &str| read_credential_file(&path(name)).unwrap_err();
    assert_eq!(what("none").message, "the file does not exist; `creole passwd` creates it");
    assert_eq!(
        read_credential_file(folder.path()).unwrap_err().message,
        "it is not a regular file"
    );
    assert_eq!(
        (what("latin1").message.as_str(), what("latin1").line),
        ("the file is not UTF-8 text", Some(2))
    );
    assert_eq!(what("huge").message, "the file is larger than 1048576 bytes");
}

#[test]
fn changes_keep_the_other_lines() {
    let text = format!("# Ours\n\nalice:{HASH}:mcp\n# Bob is on leave.\nbob:{HASH}\ncarol:{HASH}");
    let mut file = CredentialText::parse(&text, CredentialKind::Users, Path::new("f")).unwrap();
    let other = HASH.replace("t=2", "t=3");
    assert!(file.put_user("bob", &other, Some(&["mcp".to_owned(), "admin".to_owned()])).unwrap());
    assert!(file.put_user("alice", &other, None).unwrap(), "the roles stay");
    assert!(!file.put_user("dave", HASH, None).unwrap());
    assert!(file.remove("carol") && !file.remove("carol") && !file.remove("# Ours"));
    let expected = format!(
        "# Ours\n\nalice:{other}:mcp\n# Bob is on leave.\nbob:{other}:mcp,admin\ndave:{HASH}\n"
    );
    assert_eq!(file.text(), expected);
    assert_eq!(file.roles_of("bob"), ["mcp", "admin"]);
    assert!(file.put_user("dave", &other, Some(&["x".to_owned()])).unwrap());
    assert!(file.remove("alice") && file.remove("dave") && file.remove("bob"));
    assert_eq!(file.text(), "# Ours\n\n# Bob is on leave.\n");
    assert!(file.put_user("a:b", HASH, None).is_err());
    assert!(file.put_user("a", HASH, Some(&["x,y".to_owned()])).is_err());
}

#[test]
fn a_written_file_is_read_back() {
    let mut file = CredentialText::new(CredentialKind::Keys);
    let key = NewKey::random();
    let end = "2027-01-31T12:00:00+02:00".parse().unwrap();
    assert!(!file.put_key("ci", &key, None, Some(end)).unwrap());
    assert!(!file.put_key("cd", &key, Some(&["mcp".to_owned()]), Some(end)).unwrap());
    assert!(file.put_key("cd", &key, None, None).unwrap());
    let expected = format!(
        "# Keys: name:key hash:role,role:expiry\nci:$sha256${0}::2027-01-31T10:00:00Z\n\
         cd:$sha256${0}:mcp\n",
        key.sha256
    );
    assert_eq!(file.text(), expected);
    let entries = parse(&expected, CredentialKind::Keys).unwrap();
    assert!(
        matches!(entries[0].credential, StoredCredential::Key { expires: Some(moment), .. } if moment == end)
    );
    assert!(matches!(entries[1].credential, StoredCredential::Key { expires: None, .. }));
}
