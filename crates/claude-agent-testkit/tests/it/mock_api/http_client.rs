//! A minimal HTTP/1.1 client.

use std::io;
use std::time::Duration;

use claude_agent_testkit::mock_api::MockApi;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The timeout of every operation.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// A connection without an HTTP library, which could hide deviations.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(super) async fn open(api: &MockApi) -> Self {
        Self::open_url(&api.base_url()).await
    }

    pub(super) async fn open_url(url: &str) -> Self {
        let stream = TcpStream::connect(url.replace("http://", "")).await.unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(super) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: mock\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.write(&format!("{head}content-length: {}\r\n\r\n{body}", body.len())).await;
    }

    pub(super) async fn write(&mut self, text: &str) {
        timeout(TIMEOUT, self.stream.write_all(text.as_bytes())).await.unwrap().unwrap();
    }

    pub(super) async fn response(&mut self) -> HttpResponse {
        let head = self.head().await;
        let framing = match head.header("content-length") {
            Some(length) => Framing::Length(length.parse().unwrap()),
            None => Framing::Chunked,
        };
        let (body, complete) = self.rest(framing).await;
        HttpResponse { head, body, complete }
    }

    pub(super) async fn head(&mut self) -> Head {
        let status = self.line().await.unwrap();
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        while let Some((name, value)) = self.line().await.unwrap().split_once(": ") {
            headers.push((name.to_owned(), value.to_owned()));
        }
        Head { status, headers }
    }

    pub(super) async fn rest(&mut self, framing: Framing) -> (String, bool) {
        let mut body = String::new();
        match framing {
            Framing::Length(length) => {
                let mut limited = (&mut self.stream).take(length as u64);
                timeout(TIMEOUT, limited.read_to_string(&mut body)).await.unwrap().unwrap();
                let complete = body.len() == length;
                (body, complete)
            }
            Framing::Chunked => loop {
                match self.chunk().await {
                    Ok(Some(chunk)) => body.push_str(&chunk),
                    Ok(None) => break (body, true),
                    Err(_) => break (body, false),
                }
            },
        }
    }

    /// Returns the next chunk of a body; `None` for its regular end.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<String>> {
        let size = usize::from_str_radix(&self.line().await?, 16).unwrap();
        let mut chunk = vec![0; size + 2];
        timeout(TIMEOUT, self.stream.read_exact(&mut chunk)).await.unwrap()?;
        chunk.truncate(size);
        Ok((size > 0).then(|| String::from_utf8(chunk).unwrap()))
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let read = timeout(TIMEOUT, self.stream.read_line(&mut line)).await.unwrap()?;
        if read == 0 {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(line.trim_end().to_owned())
        }
    }
}

pub(super) struct HttpResponse {
    pub(super) head: Head,
    pub(super) body: String,
    /// Whether the body ended as its framing requires.
    pub(super) complete: bool,
}

impl HttpResponse {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn events(&self) -> Vec<Value> {
        let events = self.body.split("\n\n").filter(|event| !event.is_empty()).map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(data["type"], name.strip_prefix("event: ").unwrap());
            data
        });
        events.collect()
    }
}

pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(super) enum Framing {
    Chunked,
    Length(usize),
}
