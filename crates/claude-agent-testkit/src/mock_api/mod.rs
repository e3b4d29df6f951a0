//! A scripted Messages API on loopback.
//!
//! The real CLI connects to the API at `ANTHROPIC_BASE_URL`. [`MockApi`] is a server for that address
//! which replies according to a [`Script`]: text, tool calls, thinking, errors, slow streams, broken
//! streams. A test can thus run the real CLI without network access, an API key or cost, and knows in
//! advance what the model answers.
//!
//! A script is a list of rules. A rule matches a substring of a prompt and replies with its first
//! [`Reply`]; each time the CLI sends tool results, it replies with the next one. Nothing depends on
//! time or randomness, and ids are numbered (`msg_1`, `toolu_1`), so every run of a script is the same.
//!
//! ```
//! use claude_agent_testkit::mock_api::{MockApi, Reply, Script};
//! use serde_json::json;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let script = Script::new()
//!     .when("list the files", [Reply::tool("Bash", json!({"command": "ls"})), Reply::text("Done.")])
//!     .otherwise([Reply::text("Hello from the mock.")]);
//! let api = MockApi::start(script).await?;
//!
//! // The CLI is started with ANTHROPIC_BASE_URL set to `api.base_url()`. Here, a bare request:
//! let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
//! let address = api.base_url().replace("http://", "");
//! let mut connection = tokio::net::TcpStream::connect(&address).await?;
//! let head = "POST /v1/messages HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n";
//! let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
//! connection.write_all(request.as_bytes()).await?;
//! let mut answer = String::new();
//! connection.read_to_string(&mut answer).await?;
//!
//! assert!(answer.contains("Hello from the mock."));
//! assert_eq!(api.requests()[0].last_user_prompt().as_deref(), Some("hi"));
//! # Ok(())
//! # }
//! ```

mod answered;
#[cfg(feature = "mock-api")]
mod body;
pub(crate) mod log;
pub(crate) mod message;
#[cfg(feature = "mock-api")]
pub mod program;
pub(crate) mod reply;
mod request;
#[cfg(feature = "mock-api")]
mod respond;
mod script;
#[cfg(feature = "mock-api")]
mod server;

pub use reply::Reply;
pub use request::{ApiRequest, Headers};
pub use script::Script;
#[cfg(feature = "mock-api")]
pub use server::MockApi;
