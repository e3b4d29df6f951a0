//! A scripted Messages API on loopback.
