//! An inbox for permission requests that are answered by ID.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};

use super::{Permission, ToolRequest};
use crate::callback::{CallbackContext, CancelToken};
use crate::error::{Error, ErrorKind, Result};
use crate::list;
use crate::lock::lock;
use crate::panics;

/// How many requests can be pending in an inbox that was created with `new`.
const CAPACITY: usize = 1024;

/// How many IDs of closed requests are remembered, and how long such an ID may be.
const REMEMBERED: usize = 1024;
const REMEMBERED_BYTES: usize = 256;

/// Collects the permission requests of any number of sessions and queries until they are answered by
/// ID, for example by the handlers of a web service.
///
/// Register [`callback`](Self::callback) with [`can_use_tool`](crate::Options::can_use_tool). Clones
/// refer to the same inbox. A request that the CLI withdraws, or that
/// [`Timeouts::permission`](crate::Timeouts::permission) ends, disappears.
/// When the last clone of the inbox is dropped, all pending and later requests are denied, and so are
/// requests beyond its capacity.
///
/// ```no_run
/// use claude_agent_kit::{Options, Permission, PermissionInbox, Session};
///
/// # async fn example() -> claude_agent_kit::Result<()> {
/// let inbox = PermissionInbox::new();
/// let session = Session::start(Options::new().can_use_tool(inbox.callback())).await?;
/// let turn = session.send("Clean up the build directory.").await?;
/// let approve = async {
///     loop {
///         let request = inbox.next().await;
///         println!("{} wants to run with {}", request.tool_name, request.input.text());
///         // A service would send the request to a browser, and answer when the user has decided.
///         if let Err(error) = inbox.answer(&request.id, Permission::allow()) {
///             eprintln!("{error}");
///         }
///     }
/// };
/// tokio::select! {
///     outcome = turn.finish() => drop(outcome?),
///     () = approve => {}
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PermissionInbox(Arc<Owner>);

/// Closes the inbox when the last handle of the host is dropped. Callbacks do not hold it.
struct Owner(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

struct State {
    capacity: usize,
    is_closed: bool,
    /// In the order of arrival.
    pending: Vec<(u64, PendingRequest)>,
    /// The requests that `next` has not returned yet.
    unseen: VecDeque<u64>,
    next_number: u64,
    /// The requests closed last, for the error of a late answer.
    closed: VecDeque<(String, Closed)>,
}

struct PendingRequest {
    request: ToolRequest,
    response: oneshot::Sender<Permission>,
}

#[derive(Clone, Copy)]
pub(crate) enum Closed {
    Answered,
    Withdrawn,
}

impl PermissionInbox {
    /// Creates an inbox in which 1,024 requests can be pending.
    pub fn new() -> Self {
        Self::with_capacity(CAPACITY)
    }

    /// Creates an inbox in which `capacity` requests can be pending. Requests beyond that are denied.
    pub fn with_capacity(capacity: usize) -> Self {
        let state = State {
            capacity,
            is_closed: false,
            pending: Vec::new(),
            unseen: VecDeque::new(),
            next_number: 0,
            closed: VecDeque::new(),
        };
        let shared = Shared { state: Mutex::new(state), arrived: Notify::new() };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// Returns a callback for [`can_use_tool`](crate::Options::can_use_tool) that puts requests into
    /// this inbox. It does not keep the inbox alive.
    ///
    /// A callback of the host can decide the clear cases itself and call this one for the others.
    pub fn callback(
        &self,
    ) -> impl Fn(ToolRequest, CallbackContext) -> Pin<Box<dyn Future<Output = Permission> + Send>>
    + Clone
    + Send
    + Sync
    + 'static {
        let shared = self.0.0.clone();
        move |request, context| Box::pin(shared.clone().ask(request, context.cancel))
    }

    /// Waits for the next request, in the order of arrival. Each request is returned once, to one of
    /// the callers; it stays [pending](Self::pending) until it is answered.
    ///
    /// # Cancel safety
    /// Dropping the future loses no request.
    pub async fn next(&self) -> ToolRequest {
        let shared = &self.0.0;
        loop {
            // Created before the check, so that a request that arrives after the check wakes it.
            let arrived = shared.arrived.notified();
            if let Some(request) = shared.take_unseen() {
                return request;
            }
            arrived.await;
        }
    }

    /// Returns the requests that are pending, in the order of arrival, for example to show them again
    /// when a page is reloaded. Requests that [`next`](Self::next) has returned are included.
    pub fn pending(&self) -> Vec<ToolRequest> {
        let state = lock(&self.0.0.state);
        list::map(&state.pending, &|(_, pending)| pending.request.clone())
    }

    /// Answers a request. Of several answers to one request the first counts.
    ///
    /// # Errors
    /// [`RequestClosed`](ErrorKind::RequestClosed) when the request was answered before, or when the
    /// CLI no longer waits for an answer; the text of the error contains which.
    /// [`RequestUnknown`](ErrorKind::RequestUnknown) when no request has this ID, or had it long ago.
    pub fn answer(&self, id: impl AsRef<str>, permission: Permission) -> Result<()> {
        let id = id.as_ref();
        let mut state = lock(&self.0.0.state);
        let Some(number) = state.number_of(id) else {
            return Err(rejected(id, state.closed_as(id)));
        };
        let Some(PendingRequest { response, .. }) = state.remove(number, Closed::Answered) else {
            return Err(rejected(id, None));
        };
        drop(state);
        // The callback may have been cancelled just now.
        response.send(permission).map_err(|_| rejected(id, Some(Closed::Withdrawn)))
    }
}

impl Default for PermissionInbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_closed = true;
        state.unseen.clear();
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        // Dropping the senders makes the callbacks deny.
        drop(pending);
    }
}

impl Shared {
    /// Waits for the answer to a request.
    async fn ask(self: Arc<Self>, request: ToolRequest, cancel: CancelToken) -> Permission {
        let (number, response) = match lock(&self.state).add(request) {
            Ok(added) => added,
            Err(reason) => return Permission::deny(reason),
        };
        // Also withdraws the request when this future is dropped.
        let _withdrawal = Withdrawal { shared: &self, number };
        if panics::catch(|| self.arrived.notify_one()).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
        match cancel.unless_cancelled(response).await {
            Some(Ok(permission)) => permission,
            Some(Err(_)) => Permission::deny(DROPPED),
            None => Permission::deny("the permission request was withdrawn"),
        }
    }

    fn take_unseen(&self) -> Option<ToolRequest> {
        let mut state = lock(&self.state);
        let number = state.unseen.pop_front()?;
        let request = state.pending[state.index_of(number)?].1.request.clone();
        let has_more = !state.unseen.is_empty();
        drop(state);
        if has_more {
            // A notification is kept once, however many requests have arrived.
            self.arrived.notify_one();
        }
        Some(request)
    }
}

const DROPPED: &str = "permission requests are no longer answered";

impl State {
    fn add(
        &mut self,
        request: ToolRequest,
    ) -> std::result::Result<(u64, oneshot::Receiver<Permission>), &'static str> {
        if self.is_closed {
            return Err(DROPPED);
        }
        if self.pending.len() >= self.capacity {
            return Err("too many permission requests are pending; try again later");
        }
        let (response, receiver) = oneshot::channel();
        let number = self.next_number;
        self.next_number += 1;
        self.pending.push((number, PendingRequest { request, response }));
        self.unseen.push_back(number);
        Ok((number, receiver))
    }

    fn index_of(&self, number: u64) -> Option<usize> {
        self.pending.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    fn number_of(&self, id: &str) -> Option<u64> {
        let mut pending = self.pending.iter();
        pending.find(|(_, pending)| pending.request.id == id).map(|(number, _)| *number)
    }

    fn remove(&mut self, number: u64, how: Closed) -> Option<PendingRequest> {
        let (_, pending) = self.pending.remove(self.index_of(number)?);
        self.unseen.retain(|unseen| *unseen != number);
        if pending.request.id.len() <= REMEMBERED_BYTES {
            self.closed.push_back((pending.request.id.clone(), how));
        }
        if self.closed.len() > REMEMBERED {
            self.closed.pop_front();
        }
        Some(pending)
    }

    fn closed_as(&self, id: &str) -> Option<Closed> {
        self.closed.iter().rev().find(|(closed, _)| closed == id).map(|(_, how)| *how)
    }
}

/// Withdraws a request whose callback ends without an answer.
struct Withdrawal<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let withdrawn = lock(&self.shared.state).remove(self.number, Closed::Withdrawn);
        drop(withdrawn);
    }
}

pub(crate) fn rejected(id: &str, closed: Option<Closed>) -> Error {
    let id: String = id.chars().take(REMEMBERED_BYTES).collect();
    match closed {
        Some(Closed::Answered) => Error::new(
            ErrorKind::RequestClosed,
            format!("permission request {id:?} has already been answered"),
        ),
        Some(Closed::Withdrawn) => Error::new(
            ErrorKind::RequestClosed,
            format!(
                "permission request {id:?} was withdrawn: the CLI no longer waits for a response"
            ),
        ),
        None => Error::new(
            ErrorKind::RequestUnknown,
            format!("no permission request with ID {id:?} is pending in this inbox"),
        ),
    }
}

impl fmt::Debug for PermissionInbox {
    /// Without the requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.0.0.state);
        f.debug_struct("PermissionInbox")
            .field("pending", &state.pending.len())
            .field("capacity", &state.capacity)
            .finish_non_exhaustive()
    }
}
