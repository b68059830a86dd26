//! The libFuzzer entry of `creole_fuzz::jws`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::jws(bytes));
