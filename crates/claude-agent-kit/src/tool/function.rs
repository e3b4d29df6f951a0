//! Functions and closures that implement a tool.

use std::future::Future;
use std::pin::Pin;

use super::{ToolContext, ToolError, ToolOutput, ToolResult};

/// The function of a tool: an async function or closure of its arguments, or of its arguments and
/// the [`ToolContext`] of the call.
///
/// ```
/// use claude_agent_kit::{NoArguments, ToolProgress};
/// use claude_agent_kit::{ToolContext, ToolServer};
///
/// let server = ToolServer::new().tool("index", "Indexes all files", |_: NoArguments, ctx: ToolContext| async move {
///     for step in 1..=3 {
///         ctx.progress(ToolProgress::new(f64::from(step)).total(3.0)).await?;
///     }
///     Ok("done")
/// });
/// ```
///
/// The arguments of a closure need type annotations, because a closure may have one or two of them.
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the function of a tool",
    label = "expected an async function of its arguments, or of its arguments and a `ToolContext`",
    note = "the function returns `Result<O, ToolError>`, where `O` can be serialized",
    note = "the arguments of a closure need their types: `|args: Args, ctx: ToolContext| async move {{ … }}`"
)]
pub trait ToolFunction<A, M>: Send + Sync + 'static + sealed::Sealed<A, M> {
    /// Calls the function.
    #[doc(hidden)]
    fn call(&self, arguments: A, context: ToolContext) -> CallFuture;
}

/// The future of a tool call.
type CallFuture = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// Marks functions of the arguments.
#[derive(Debug)]
pub struct Plain<O>(std::marker::PhantomData<O>);

/// Marks functions of the arguments and the context.
#[derive(Debug)]
pub struct WithContext<O>(std::marker::PhantomData<O>);

mod sealed {
    pub trait Sealed<A, M> {}
}

impl<A, F, R, O> sealed::Sealed<A, Plain<O>> for F where F: Fn(A) -> R {}

impl<A, F, R, O> ToolFunction<A, Plain<O>> for F
where
    F: Fn(A) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: ToolOutput,
{
    fn call(&self, arguments: A, _: ToolContext) -> CallFuture {
        result(self(arguments))
    }
}

impl<A, F, R, O> sealed::Sealed<A, WithContext<O>> for F where F: Fn(A, ToolContext) -> R {}

impl<A, F, R, O> ToolFunction<A, WithContext<O>> for F
where
    F: Fn(A, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: ToolOutput,
{
    fn call(&self, arguments: A, context: ToolContext) -> CallFuture {
        result(self(arguments, context))
    }
}

fn result<O: ToolOutput>(
    call: impl Future<Output = Result<O, ToolError>> + Send + 'static,
) -> CallFuture {
    Box::pin(async move {
        match call.await {
            Ok(output) => output.into_result().unwrap_or_else(Into::into),
            Err(error) => error.into(),
        }
    })
}
