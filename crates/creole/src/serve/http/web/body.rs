//! Reads the body of a request, with limits on its size, its duration and its minimum rate.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use http_body::Body;
use tokio::time::{Instant, timeout_at};

use crate::budget::{BudgetExhausted, BufferReservation, Reservation};
use crate::serve::http::web::handler::ErrorResponse;

/// Limits on the size and duration of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyLimits {
    /// Maximum size in bytes.
    pub size: usize,
    /// Maximum duration.
    pub total: Duration,
    /// How long the body may be slower than `rate`.
    pub grace: Duration,
    /// Minimum average number of bytes per second.
    pub rate: u32,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            size: 1024 * 1024,
            total: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            rate: 1024,
        }
    }
}

/// Why a body was not read to its end. The connection cannot be used for another request then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is larger than that many bytes.
    TooLarge(usize),
    /// It arrived too slowly.
    TooSlow,
    /// It ended early, or its chunks are malformed.
    Broken,
    /// Other bodies use all the memory of the budget.
    BudgetExhausted,
}

impl BodyError {
    /// The HTTP status for this error.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::BudgetExhausted => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(max) => write!(formatter, "the body is larger than {max} bytes"),
            Self::TooSlow => formatter.write_str("the body was not received in time"),
            Self::Broken => formatter.write_str("the body ended early or its framing is invalid"),
            Self::BudgetExhausted => {
                formatter.write_str("the memory budget for bodies is exhausted; try again later")
            }
        }
    }
}

impl From<BodyError> for ErrorResponse {
    fn from(unread: BodyError) -> Self {
        let refusal = Self::new(unread.status(), unread.to_string()).close_connection();
        match unread {
            BodyError::BudgetExhausted => {
                refusal.header(RETRY_AFTER, HeaderValue::from_static("5"))
            }
            _ => refusal,
        }
    }
}

/// Reads a body to its end, and returns the memory reserved for it if it is not small.
///
/// A body whose declared length is too large is not read at all. A body that arrives in one piece is not copied.
pub(crate) async fn read_reserved<B>(
    mut body: B,
    limits: &BodyLimits,
    hold: impl FnOnce() -> Reservation,
) -> Result<(Bytes, Option<Reservation>), BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > limits.size as u64 {
        return Err(BodyError::TooLarge(limits.size));
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(limits.size);
    let mut reservation = BufferReservation::new(hold);
    let mut start = None;
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    loop {
        let received = first.len() + whole.len();
        let Some(piece) = next_data(&mut body, &mut start, received, limits).await? else { break };
        if piece.len() > limits.size - received {
            return Err(BodyError::TooLarge(limits.size));
        }
        if received == 0 {
            reservation
                .grow_to(piece.len())
                .map_err(|BudgetExhausted| BodyError::BudgetExhausted)?;
            first = piece;
            continue;
        }
        let needed = received + piece.len();
        if whole.capacity() < needed {
            // Memory is allocated for bytes that arrived, never for a length that was only declared.
            let capacity = needed.max((received * 2).min(announced));
            reservation.grow_to(capacity).map_err(|BudgetExhausted| BodyError::BudgetExhausted)?;
            whole.reserve_exact(capacity - whole.len());
        }
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&piece);
    }
    Ok((if whole.is_empty() { first } else { whole.into() }, reservation.into_reservation()))
}

/// The next piece of data; `None` at the end.
async fn next_data<B>(
    body: &mut B,
    start: &mut Option<Instant>,
    received: usize,
    limits: &BodyLimits,
) -> Result<Option<Bytes>, BodyError>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        if body.is_end_stream() {
            return Ok(None);
        }
        // Most bodies arrive with their heads, and data that is available needs no timer.
        let there = poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await;
        let frame = match there {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let start = *start.get_or_insert_with(Instant::now);
                let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
                let frame = timeout_at(start + limits.allowed_time(received), frame);
                // The wait is on the heap: this future is a part of every connection.
                Box::pin(frame).await.map_err(|_| BodyError::TooSlow)?
            }
        };
        match frame.transpose().map_err(|_| BodyError::Broken)? {
            None => return Ok(None),
            // Trailers are ignored.
            Some(frame) => match frame.into_data() {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Ok(Some(piece)),
                Err(_) => {}
            },
        }
    }
}

impl BodyLimits {
    /// How long after the start more data must have arrived.
    fn allowed_time(&self, received: usize) -> Duration {
        let earned = received as u64 * 1000 / u64::from(self.rate.max(1));
        Duration::from_millis(earned).max(self.grace).min(self.total)
    }
}
