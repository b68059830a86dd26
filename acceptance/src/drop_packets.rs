//! Sockets that receive nothing, like a cut cable: the system drops packets before it acknowledges them, so that the
//! other side notices nothing either.

use std::os::fd::AsFd;

use socket2::{SockFilter, SockRef};

/// Instructions of the filter: load the length, jump if it is greater, and return how much is accepted.
const LENGTH: u16 = 0x80;
const IS_LONGER: u16 = 0x25;
const TAKE: u16 = 0x06;

/// The maximum length of a TCP header, without which no connection can be established.
const HEAD: u32 = 60;

/// Makes a socket receive nothing from now on. A listening one accepts no connections.
pub fn cut(socket: &impl AsFd) {
    attach(socket, &[SockFilter::new(TAKE, 0, 0, 0)]);
}

/// Makes the connections of a listening socket receive no data, although they are established.
pub fn starve(socket: &impl AsFd) {
    attach(
        socket,
        &[
            SockFilter::new(LENGTH, 0, 0, 0),
            SockFilter::new(IS_LONGER, 0, 1, HEAD),
            SockFilter::new(TAKE, 0, 0, 0),
            SockFilter::new(TAKE, 0, 0, u32::MAX),
        ],
    );
}

fn attach(socket: &impl AsFd, filter: &[SockFilter]) {
    SockRef::from(&socket.as_fd()).attach_filter(filter).expect("a filter");
}
