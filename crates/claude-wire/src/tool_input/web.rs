//! Tools for the web and for resources of MCP servers.

use crate::json::{List, Number};

wire_struct! {
    /// The input of `WebFetch`.
    #[derive(Default)]
    pub struct WebFetchInput {
        /// The URL.
        url: String,
        /// The prompt about the page.
        prompt: String,
        /// The offset in the page.
        offset: Option<Number>,
    }
}

wire_struct! {
    /// The input of `WebSearch`.
    #[derive(Default)]
    pub struct WebSearchInput {
        /// The query.
        query: String,
        /// The allowed domains.
        allowed_domains: List<String>,
        /// The blocked domains.
        blocked_domains: List<String>,
    }
}

wire_struct! {
    /// The input of `ListMcpResourcesTool`.
    #[derive(Default)]
    pub struct ListMcpResourcesInput {
        /// The server; all servers if absent.
        server: Option<String>,
    }
}

wire_struct! {
    /// The input of `ReadMcpResourceTool`.
    #[derive(Default)]
    pub struct ReadMcpResourceInput {
        /// The server.
        server: String,
        /// The resource.
        uri: String,
    }
}
