//! A web service whose agents need approval for shell commands. A page lists pending approvals and decides.
//!
//! Conversations and approvals are in an SQLite file, so that the service can be stopped, killed and started again
//! while approvals are pending. The README describes how to run it.

mod arguments;
mod files;
mod listener;
mod service;
mod simulated;
mod task;
mod web;

use std::error::Error;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::arguments::Arguments;
use crate::listener::BoundedListener;
use crate::service::Service;
use crate::web::Approver;

/// How long runs have to end when the service stops.
const SHUTDOWN: Duration = Duration::from_secs(15);

/// How long connections have to end when the service stops.
const CONNECTION_GRACE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = Arguments::parse(std::env::args().skip(1))? else { return Ok(()) };
    // Before conversations are continued, so that a second service that is started by mistake does nothing.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port)).await;
    let listener = listener.map_err(|error| format!("port {}: {error}", arguments.port))?;
    let service = Service::open(&arguments).await?;
    service.recover().await?;
    let watching = tokio::spawn(service.clone().watch());
    let continuing = tokio::spawn(service.clone().continue_decided());

    let address = listener.local_addr()?;
    let approvers: Vec<Approver> = arguments.approvers.into_iter().map(Approver::new).collect();
    let mut urls = String::new();
    for approver in &approvers {
        // A browser does not send the part after the `#`, so that the token is in no log.
        writeln!(urls, "{}: http://{address}/#{}", approver.name, approver.token)?;
    }
    // Not to stdout, which is often a log.
    let file = std::path::absolute(&arguments.folder)?.join("urls");
    files::write_private(&file, &urls)?;
    println!("listening on {address}; the URLs of the approvers are in {}", file.display());
    let stopping = service.clone();
    let signal = async move {
        wait_for_signal().await;
        println!("stopping");
        // Connections for events would otherwise stay open.
        stopping.close();
    };
    let router = web::router(Arc::clone(&service), approvers);
    let listener = BoundedListener::new(listener);
    let served = axum::serve(listener, router).with_graceful_shutdown(signal).into_future();
    let is_late = async {
        service.closed().await;
        tokio::time::sleep(CONNECTION_GRACE).await;
    };
    tokio::select! {
        served = served => served?,
        () = is_late => eprintln!("warning: connections that did not end were closed"),
    }
    watching.abort();
    continuing.abort();
    let left = service.shutdown(SHUTDOWN).await;
    if left > 0 {
        return Err(format!("{left} runs have not ended yet").into());
    }
    println!("stopped");
    Ok(())
}

/// Waits for Ctrl-C or SIGTERM.
async fn wait_for_signal() {
    let interrupt = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("warning: Ctrl-C is not handled: {error}");
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => drop(terminate.recv().await),
        Err(error) => {
            eprintln!("warning: SIGTERM is not handled: {error}");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending::<()>().await;
}
