//! Tests of texts that open, of texts that do not, and of the information in errors.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const LATER: u64 = 2_000;
const NOW: u64 = 1_000;

fn refs(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

fn sealer() -> Sealer {
    Sealer::from_key(&[7; 32])
}

#[tokio::test]
async fn a_shared_state_has_a_shared_secret_for_each_name() {
    let state = State::default();
    let sealed = |sealer: &Sealer| sealer.seal(Purpose::State, &[], LATER, b"kept");
    let first = Sealer::from_state(&state, "a").await.unwrap();
    let second = Sealer::from_state(&state, "a").await.unwrap();
    let opened = second.open(Purpose::State, &[], NOW, &sealed(&first));
    assert_eq!(opened.as_deref(), Ok(&b"kept"[..]));
    let other = Sealer::from_state(&state, "b").await.unwrap();
    let refused = other.open(Purpose::State, &[], NOW, &sealed(&first));
    assert_eq!(refused, Err(SealError::Invalid));
}

#[test]
fn the_text_has_the_documented_form_and_differs_each_time() {
    let text = sealer().seal(Purpose::State, &[b"user"], LATER, b"secret");
    let parts: Vec<&str> = text.split('.').collect();
    assert_eq!((parts.len(), parts[0], parts[1].len()), (3, "c1", KEY_ID));
    assert_eq!(URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len(), NONCE + EXPIRY + 6 + TAG);
    assert_ne!(text, sealer().seal(Purpose::State, &[b"user"], LATER, b"secret"));
}

#[test]
fn a_text_expires_at_its_end() {
    let text = sealer().seal(Purpose::Cursor, &[], LATER, b"x");
    assert!(sealer().open(Purpose::Cursor, &[], LATER - 1, &text).is_ok());
    let expired = sealer().open(Purpose::Cursor, &[], LATER, &text);
    assert_eq!(expired, Err(SealError::Expired));
    // A caller without a right to the text does not even learn that it expired.
    let foreign = sealer().open(Purpose::Cursor, &[b"other"], LATER, &text);
    assert_eq!(foreign, Err(SealError::Invalid));
}

#[test]
fn clocks_that_differ_refuse_nothing_that_is_fresh_and_let_nothing_live_long() {
    const APART: i64 = 5 * 60 * 1000;
    const LIFE: i64 = 60 * 1000;
    let secrets = Secrets::parse(&"01".repeat(32)).unwrap();
    let [here, there] = [(); 2].map(|()| Sealer::random());
    here.set_secrets(&secrets);
    there.set_secrets(&secrets);
    let start: i64 = 1_800_000_000_000;
    let text = here.seal(Purpose::State, &[], (start + LIFE) as u64, b"x");
    for ahead in [-APART, -1, 0, 1, APART - 1] {
        // The clock of the machine that opens it, this long after it was sealed.
        let opened =
            |passed: i64| there.open(Purpose::State, &[], (start + passed + ahead) as u64, &text);
        assert!(opened(0).is_ok() && opened(LIFE).is_ok(), "{ahead}");
        assert_eq!(opened(LIFE + 2 * APART), Err(SealError::Expired), "{ahead}");
    }
    // With a larger difference it is rejected; on the sealing machine too, it does not live longer than that.
    let refused = there.open(Purpose::State, &[], (start + LIFE + APART) as u64, &text);
    assert_eq!(refused, Err(SealError::Expired));
    // A private secret has no clock skew.
    let alone = Sealer::from_key(&[1; 32]);
    let ended = alone.open(Purpose::State, &[], (start + LIFE) as u64, &text);
    assert_eq!(ended, Err(SealError::Expired));
}

#[test]
fn each_flipped_bit_is_invalid() {
    let text = sealer().seal(Purpose::State, &[b"user", b"tools/call"], LATER, b"state");
    for index in 0..text.len() {
        for bit in 0..7 {
            let mut bytes = text.clone().into_bytes();
            bytes[index] ^= 1 << bit;
            let changed = String::from_utf8(bytes).unwrap();
            let opened = sealer().open(Purpose::State, &[b"user", b"tools/call"], NOW, &changed);
            assert_eq!(opened, Err(SealError::Invalid), "bit {bit} of {index}");
        }
    }
}

#[test]
fn each_truncation_and_extension_is_invalid() {
    let text = sealer().seal(Purpose::State, &[], LATER, b"state");
    let extended = ["A", "AAAA", "=", "==", ".", "\n", " "].map(|tail| format!("{text}{tail}"));
    let cut = (0..text.len()).map(|end| text[..end].to_owned());
    for changed in cut.chain(extended).chain([format!(" {text}"), format!("{text}{text}")]) {
        let opened = sealer().open(Purpose::State, &[], NOW, &changed);
        assert_eq!(opened, Err(SealError::Invalid), "{changed}");
    }
}

#[test]
fn the_previous_key_still_opens_and_older_ones_do_not() {
    let sealer = Sealer::random();
    let texts: Vec<String> = (1..=3)
        .map(|key| {
            sealer.rotate(&[key; 32]);
            sealer.seal(Purpose::State, &[], LATER, &[key])
        })
        .collect();
    sealer.rotate(&[3; 32]);
    let opened = |text: &str| sealer.clone().open(Purpose::State, &[], NOW, text);
    assert_eq!(opened(&texts[0]), Err(SealError::Invalid));
    assert_eq!(opened(&texts[1]), Ok(vec![2]));
    assert_eq!(opened(&texts[2]), Ok(vec![3]));
}

#[test]
fn another_process_has_another_random_key() {
    let text = Sealer::random().seal(Purpose::State, &[], LATER, b"x");
    let opened = Sealer::random().open(Purpose::State, &[], NOW, &text);
    assert_eq!(opened, Err(SealError::Invalid));
}

#[test]
fn the_longest_plain_bytes_open_and_longer_texts_are_invalid() {
    let text = sealer().seal(Purpose::State, &[], LATER, &[0; MAX_PLAIN]);
    assert!(text.len() <= MAX_TEXT);
    assert_eq!(sealer().open(Purpose::State, &[], NOW, &text).unwrap().len(), MAX_PLAIN);
    for longer in [1, 2, 3, MAX_TEXT, 1 << 20] {
        let text = sealer().seal(Purpose::State, &[], LATER, &vec![0; MAX_PLAIN + longer]);
        let opened = sealer().open(Purpose::State, &[], NOW, &text);
        assert!(text.len() <= MAX_TEXT || opened == Err(SealError::Invalid));
    }
}

#[test]
fn debug_output_and_texts_show_no_secret() {
    let sealer = Sealer::from_key(b"0123456789abcdef0123456789abcdef");
    let shown = format!("{sealer:?} {}", sealer.seal(Purpose::State, &[], LATER, b"x"));
    assert!(!shown.contains("0123456789abcdef"), "{shown}");
    assert!(shown.starts_with("Sealer { key: \""), "{shown}");
}

#[test]
fn digest_is_sha_256() {
    assert_eq!(digest(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
}

proptest! {
    #[test]
    fn a_sealed_value_opens_with_the_same_binding_only(
        plain in vec(any::<u8>(), 0..300),
        binding in vec(vec(any::<u8>(), 0..4), 0..4),
        other in vec(vec(any::<u8>(), 0..4), 0..4),
    ) {
        let text = sealer().seal(Purpose::State, &refs(&binding), LATER, &plain);
        let opened = sealer().open(Purpose::State, &refs(&binding), NOW, &text);
        prop_assert_eq!(opened, Ok(plain));
        let swapped = sealer().open(Purpose::Cursor, &refs(&binding), NOW, &text);
        prop_assert_eq!(swapped, Err(SealError::Invalid));
        let moved = sealer().open(Purpose::State, &refs(&other), NOW, &text);
        prop_assert_eq!(moved.is_ok(), binding == other);
    }

    #[test]
    fn no_two_bindings_are_the_same_bytes(
        one in vec(vec(0..2_u8, 0..12), 0..4),
        two in vec(vec(0..2_u8, 0..12), 0..4),
    ) {
        let same = associated_data(Purpose::State, &refs(&one)) == associated_data(Purpose::State, &refs(&two));
        prop_assert_eq!(same, one == two);
    }

    #[test]
    fn arbitrary_text_is_invalid(text in ".{0,200}", tail in "[A-Za-z0-9_-]{0,200}") {
        let id = sealer().seal(Purpose::State, &[], LATER, b"")[..12].to_owned();
        for text in [text, format!("{id}{tail}")] {
            let opened = sealer().open(Purpose::State, &[], NOW, &text);
            prop_assert_eq!(opened, Err(SealError::Invalid));
        }
    }
}

#[test]
fn keys_are_read_the_newest_first_and_mistakes_are_named() {
    let (old, new) = ("aB".repeat(32), "02".repeat(32));
    let sealer = Sealer::random();
    sealer.set_secrets(&Secrets::parse(&format!("{old}\n")).unwrap());
    let before = sealer.seal(Purpose::State, &[], u64::MAX, b"x");
    sealer.set_secrets(&Secrets::parse(&format!("# newest first\n{new}\n\n{old}\n")).unwrap());
    assert!(sealer.open(Purpose::State, &[], 0, &before).is_ok());
    let elsewhere = Sealer::random();
    elsewhere.set_secrets(&Secrets::parse(&format!("{new}\n{old}")).unwrap());
    assert!(elsewhere.open(Purpose::State, &[], 0, &before).is_ok());
    sealer.set_secrets(&Secrets::parse(&"03".repeat(32)).unwrap());
    assert_eq!(sealer.open(Purpose::State, &[], 0, &before), Err(SealError::Invalid));
    let (short, odd) = ("02".repeat(31), format!("{}zz", "02".repeat(31)));
    for problem in [String::new(), "#".to_owned(), short, odd, format!("{new}\n{new}\n{new}")] {
        assert!(Secrets::parse(&problem).is_err(), "{problem}");
    }
}
