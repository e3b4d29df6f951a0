//! The MCP server of the tests as a program.

fn main() -> std::io::Result<()> {
    tests_e2e::outside::serve_pipes()
}
