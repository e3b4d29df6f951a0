//! Tests of the test kit.

mod mock_api;
mod recorder;
