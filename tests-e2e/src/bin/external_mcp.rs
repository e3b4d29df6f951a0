//! The external MCP server of the tests, over stdio.

fn main() -> std::io::Result<()> {
    tests_e2e::external_mcp::serve_pipes()
}
