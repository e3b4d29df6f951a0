//! Tests of the test kit.

mod faults;
mod mock_api;
mod player;
mod recorder;
mod script_file;
mod sim;
