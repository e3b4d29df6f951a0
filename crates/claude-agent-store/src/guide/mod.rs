//! The guide to stores on servers. It continues the guide of `claude-agent-kit`.

#[doc = include_str!("store_servers.md")]
#[cfg_attr(feature = "postgres", doc = include_str!("store_servers_postgres.md"))]
#[cfg_attr(feature = "s3", doc = include_str!("store_servers_s3.md"))]
pub mod store_servers {}
