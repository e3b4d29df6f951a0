//! An HTTP relay between a store and its server, which counts requests and injects faults into chosen ones.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request, as far as tests look at it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// With the request line.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Returns whether this is a write of a head object.
    pub(crate) fn is_head_write(&self) -> bool {
        self.method == "PUT" && self.path.contains("/heads/")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The server executes it.
    Pass,
    /// The server executes it, and the connection is closed instead of the response.
    LoseResponse,
    /// The connection is closed.
    Close,
    /// The server does not get it, and this is the response: the status and the code of the error.
    Fail(u16, &'static str),
}

type Decide = Box<dyn FnMut(&Request) -> Action + Send>;

/// Passes requests on to a port, until it is dropped.
pub(crate) struct Relay {
    port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

struct State {
    decide: Decide,
    requests: Vec<Request>,
}

impl Relay {
    pub(crate) async fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = State { decide: Box::new(|_| Action::Pass), requests: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let of_task = Arc::clone(&state);
        let task = tokio::spawn(async move {
            // Dropped with the task, which ends all connections.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let state = Arc::clone(&of_task);
                connections.spawn(async move { drop(relay(client, to, &state).await) });
            }
        });
        Self { port, state, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Decides what happens to the following requests.
    pub(crate) fn set(&self, decide: impl FnMut(&Request) -> Action + Send + 'static) {
        self.state.lock().unwrap().decide = Box::new(decide);
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Relays one request. The connection is closed afterwards.
async fn relay(mut client: TcpStream, to: u16, state: &Mutex<State>) -> io::Result<()> {
    let request = read_request(&mut client).await?;
    let action = {
        let mut state = state.lock().unwrap();
        state.requests.push(Request { body: Vec::new(), ..request.clone() });
        (state.decide)(&request)
    };
    match action {
        Action::Close => return Ok(()),
        Action::Fail(status, code) => return respond(&mut client, status, code).await,
        Action::Pass | Action::LoseResponse => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", to)).await?;
    let head = request.head.trim_end().to_owned() + "\r\nConnection: close\r\n\r\n";
    server.write_all(head.as_bytes()).await?;
    server.write_all(&request.body).await?;
    let mut response = Vec::new();
    server.read_to_end(&mut response).await?;
    if action == Action::Pass {
        client.write_all(&response).await?;
    }
    Ok(())
}

/// Reads a request with its body.
pub(crate) async fn read_request(client: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut line = head.split(' ');
    let method = line.next().unwrap_or_default().to_owned();
    let path = line.next().unwrap_or_default().to_owned();
    let mut request = Request { method, path, head, body: bytes.split_off(end) };
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    while request.body.len() < length.unwrap_or(0) {
        if client.read_buf(&mut request.body).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(request)
}

/// Responds with an error of S3.
pub(crate) async fn respond(client: &mut TcpStream, status: u16, code: &str) -> io::Result<()> {
    let body = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message>\
         <StringToSign>planted</StringToSign></Error>"
    );
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    client.write_all((head + &body).as_bytes()).await
}
