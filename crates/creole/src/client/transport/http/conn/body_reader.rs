//! Reads the bodies of responses: whole documents and event streams.

use std::future::poll_fn;

use creole_proto::framing::sse::{SseDecoder, SseEvent};

use crate::budget::{BudgetExhausted, BufferReservation, Reservation};
use crate::client::transport::LARGE_MESSAGE;
use crate::client::transport::http::conn::response_body::ResponseBody;

/// Why a body could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReadError {
    TooLong,
    Broken,
    /// Other bodies use all the memory of the budget.
    BudgetExhausted,
}

impl From<BudgetExhausted> for BodyReadError {
    fn from(_: BudgetExhausted) -> Self {
        Self::BudgetExhausted
    }
}

/// A whole body, which holds its memory reservation as long as it exists.
#[derive(Debug, Default)]
pub(crate) struct ResponseDocument {
    pub(crate) bytes: Vec<u8>,
    reservation: Option<Reservation>,
}

impl ResponseDocument {
    /// Its bytes, for a caller that keeps them.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        drop(self.reservation);
        self.bytes
    }
}

/// Space for a prefix that is written before a large document when it is forwarded.
const SPARE: usize = 512;

/// Reads a whole body. `hold` reserves memory for it once it is not small.
pub(crate) async fn read_document(
    mut body: ResponseBody,
    max_length: usize,
    hold: impl FnOnce() -> Reservation,
) -> Result<ResponseDocument, BodyReadError> {
    let announced = body.length().unwrap_or(0);
    if announced > max_length as u64 {
        return Err(BodyReadError::TooLong);
    }
    let spare = if announced < LARGE_MESSAGE as u64 { 0 } else { SPARE };
    let mut reservation = BufferReservation::new(hold);
    reservation.grow_to(announced as usize + spare)?;
    let mut whole = Vec::with_capacity(announced as usize + spare);
    while read_more(&mut body, &mut whole).await.map_err(|()| BodyReadError::Broken)? {
        if whole.len() > max_length {
            return Err(BodyReadError::TooLong);
        }
        reservation.grow_to(whole.capacity())?;
    }
    Ok(ResponseDocument { bytes: whole, reservation: reservation.into_reservation() })
}

/// Appends the next piece of a body; returns whether there was one. Cancel-safe.
async fn read_more(body: &mut ResponseBody, buffer: &mut Vec<u8>) -> Result<bool, ()> {
    poll_fn(|context| body.poll_append(context, buffer)).await
}

/// Why an event is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventError {
    /// It is too long, or not UTF-8.
    Unreadable,
    /// Other bodies use all the memory of the budget. The stream is over.
    BudgetExhausted,
}

/// Reserves memory for the events of a server.
type ReserveMemory = Box<dyn FnOnce() -> Reservation + Send>;

/// A body that is an event stream.
pub(crate) struct EventStream {
    body: ResponseBody,
    reservation: BufferReservation<ReserveMemory>,
    decoder: SseDecoder,
    chunk: Vec<u8>,
    /// How much of the chunk is decoded.
    taken: usize,
    /// Whether reading is over.
    is_over: bool,
}

impl EventStream {
    /// The events in a body. `hold` reserves memory for them once they are not small.
    pub(crate) fn new(
        body: ResponseBody,
        max_length: usize,
        hold: impl FnOnce() -> Reservation + Send + 'static,
    ) -> Self {
        let hold: ReserveMemory = Box::new(hold);
        let (decoder, chunk) = (SseDecoder::new(max_length), Vec::new());
        Self {
            body,
            reservation: BufferReservation::new(hold),
            decoder,
            chunk,
            taken: 0,
            is_over: false,
        }
    }

    /// The next event, or why one was dropped; `None` at the end, whatever its cause. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Result<SseEvent, EventError>> {
        loop {
            let mut rest = &self.chunk[self.taken..];
            let event = self.decoder.next(&mut rest);
            self.taken = self.chunk.len() - rest.len();
            if event.is_some() {
                return event.map(|event| event.map_err(|_| EventError::Unreadable));
            }
            if self.is_over {
                return None;
            }
            if let Err(BudgetExhausted) =
                self.reservation.resize_to(self.chunk.capacity() + self.decoder.buffered_bytes())
            {
                self.is_over = true;
                return Some(Err(EventError::BudgetExhausted));
            }
            self.chunk.clear();
            self.taken = 0;
            if !read_more(&mut self.body, &mut self.chunk).await.ok()? {
                return None;
            }
        }
    }
}
