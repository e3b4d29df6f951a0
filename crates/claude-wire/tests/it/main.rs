//! Tests of the wire crate: rules on single lines, and all of them on the recorded corpus.

mod bad_input;
mod bare_types;
mod control;
mod corpus;
mod envelope;
mod framing;
mod purity;
mod recording;
mod typed_messages;
mod unions;
