//! The body of a request, read up to a limit.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http_body::Body;

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is longer than allowed.
    TooLong,
    /// The client broke off.
    Broken,
}

/// Reads a body of at most `limit` bytes; one that announces more is not read at all.
pub(super) async fn whole<B>(mut body: B, limit: usize) -> Result<Bytes, Unread>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(Unread::TooLong);
    }
    let mut next = async || loop {
        match poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Unread::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    };
    let Some(first) = next().await? else { return Ok(Bytes::new()) };
    let Some(second) = next().await? else {
        return if first.len() > limit { Err(Unread::TooLong) } else { Ok(first) };
    };
    let mut all = BytesMut::from(&first[..]);
    let mut data = Some(second);
    while let Some(more) = data {
        if all.len() + more.len() > limit {
            return Err(Unread::TooLong);
        }
        all.extend_from_slice(&more);
        data = next().await?;
    }
    Ok(all.freeze())
}
