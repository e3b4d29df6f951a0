#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| claude_fuzz::run("transcript", data));
