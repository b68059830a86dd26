//! The libFuzzer entry of `creole_fuzz::challenge`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::challenge(bytes));
