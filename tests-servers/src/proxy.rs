//! A TCP proxy that stalls.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Whether requests and responses are held back.
#[derive(Clone, Copy, Debug, Default)]
struct Stalls {
    requests: bool,
    responses: bool,
}

/// Passes connections on to a port, until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    stalls: Arc<watch::Sender<Stalls>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of a port of the loopback interface, on the current runtime.
    ///
    /// # Errors
    /// Returns an error when there is no free port.
    pub async fn start(to: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let stalls = Arc::new(watch::channel(Stalls::default()).0);
        let of_task = Arc::clone(&stalls);
        let task = tokio::spawn(async move {
            // Dropped with the task, which ends all connections.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let stalls = of_task.subscribe();
                connections.spawn(pass(from_client, to_server, stalls, |stalls| stalls.requests));
                let stalls = of_task.subscribe();
                connections.spawn(pass(from_server, to_client, stalls, |stalls| stalls.responses));
            }
        });
        Ok(Self { port, stalls, task })
    }

    /// Returns the port that accepts connections.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Holds everything back, or passes it on again.
    pub fn stall(&self, is_stalled: bool) {
        self.stalls.send_replace(Stalls { requests: is_stalled, responses: is_stalled });
    }

    /// Holds back what the server sends.
    pub fn stall_responses(&self, is_stalled: bool) {
        self.stalls.send_replace(Stalls { requests: false, responses: is_stalled });
    }

    /// Closes all connections, and accepts no others.
    pub fn close(&self) {
        self.task.abort();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.close();
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut stalls: watch::Receiver<Stalls>,
    is_stalled: fn(&Stalls) -> bool,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let passes = stalls.wait_for(|stalls| !is_stalled(stalls)).await.is_ok();
        if !passes || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
