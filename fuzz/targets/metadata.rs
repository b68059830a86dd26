//! The libFuzzer entry of `creole_fuzz::metadata`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::metadata(bytes));
