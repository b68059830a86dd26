//! Tests of an upstream with servers in this process.

#[cfg(test)]
mod cancel;
#[cfg(test)]
mod era_change;
#[cfg(test)]
mod input_response;
#[cfg(test)]
mod list;
#[cfg(test)]
mod many_parked_calls;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod session;
#[cfg(test)]
mod slow_upstream;
