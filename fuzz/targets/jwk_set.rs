//! The libFuzzer entry of `creole_fuzz::jwk_set`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::jwk_set(bytes));
