//! The wire protocol of the Claude command-line program.
