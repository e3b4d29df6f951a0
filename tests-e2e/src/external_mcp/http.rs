//! The server over HTTP: streamable HTTP at `/mcp`, server-sent events at `/sse`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use super::{ExternalServer, MARK};

/// A server on loopback, which stops when it is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// Where events are sent once a client listens.
type Events = Arc<Mutex<Option<mpsc::Sender<Value>>>>;

impl HttpServer {
    /// Starts the server.
    ///
    /// # Errors
    /// Returns an error when no port is available.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let events = Events::default();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let events = events.clone();
                // A closed connection is not an error.
                drop(tokio::spawn(async move { serve(stream, events).await.ok() }));
            }
        });
        Ok(Self { address, accepting })
    }

    /// Returns the URL for streamable HTTP.
    pub fn http(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the URL for server-sent events.
    pub fn sse(&self) -> String {
        format!("http://{}/sse", self.address)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Request {
    /// The method and the path.
    what: String,
    mark: String,
    body: Value,
}

async fn serve(stream: TcpStream, events: Events) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let reply = ExternalServer::default().handle(&request.body, &request.mark);
        match request.what.as_str() {
            "POST /mcp" => {
                let reply = match reply {
                    Some(reply) => http_response("200 OK", &reply.to_string()),
                    None => http_response("202 Accepted", ""),
                };
                stream.write_all(reply.as_bytes()).await?;
            }
            "POST /messages" => {
                if let (Some(reply), Some(events)) = (reply, &*events.lock().await) {
                    // The client may have disconnected.
                    drop(events.send(reply).await);
                }
                stream.write_all(http_response("202 Accepted", "").as_bytes()).await?;
            }
            "GET /sse" => return send_events(&mut stream, &events).await,
            _ => stream.write_all(http_response("405 Method Not Allowed", "").as_bytes()).await?,
        }
    }
    Ok(())
}

/// Sends the endpoint and then every response to a client.
async fn send_events(stream: &mut BufReader<TcpStream>, events: &Events) -> io::Result<()> {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Connection: close\r\n\r\nevent: endpoint\ndata: /messages\n\n";
    let (sender, mut answers) = mpsc::channel(16);
    *events.lock().await = Some(sender);
    stream.write_all(HEAD.as_bytes()).await?;
    while let Some(answer) = answers.recv().await {
        stream.write_all(format!("event: message\ndata: {answer}\n\n").as_bytes()).await?;
    }
    Ok(())
}

/// Reads the next request. Returns `None` when the client has disconnected.
async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let (mut what, mut mark, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().map_err(io::Error::other)?;
            }
            Some((name, value)) if name.eq_ignore_ascii_case(MARK) => mark = value.to_owned(),
            Some(_) => {}
            None => what = line.rsplit_once(' ').map_or(line, |(what, _)| what).to_owned(),
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { what, mark, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

fn http_response(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
