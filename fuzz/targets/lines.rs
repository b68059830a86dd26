//! The libFuzzer entry of `creole_fuzz::lines`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::lines(bytes));
