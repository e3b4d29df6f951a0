//! Tools for the web and for resources of MCP servers.

use crate::json::{List, Number};

wire_struct! {
    /// The input of `WebFetch`.
    #[derive(Default)]
    pub struct WebFetchInput {
        /// The address.
        url: String,
        /// What is asked about the page.
        prompt: String,
        /// Where in the page the reading begins.
        offset: Option<Number>,
    }
}

wire_struct! {
    /// The input of `WebSearch`.
    #[derive(Default)]
    pub struct WebSearchInput {
        /// The query.
        query: String,
        /// The domains that are searched.
        allowed_domains: List<String>,
        /// The domains that are left out.
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
