//! The MCP server of the tests as a program.

fn main() -> std::io::Result<()> {
    tests_e2e::external_mcp::serve_pipes()
}
