//! The libFuzzer entry of `creole_fuzz::callback_query`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| creole_fuzz::callback_query(bytes));
