//! Sockets that hear nothing, as if somebody had cut the cable: the system drops what arrives before it is
//! acknowledged, so that the other side learns nothing either.

use std::os::fd::AsFd;

use socket2::{SockFilter, SockRef};

/// Instructions of the filter: how long is it, go on if it is longer, and how much of it is taken.
const LENGTH: u16 = 0x80;
const IS_LONGER: u16 = 0x25;
const TAKE: u16 = 0x06;

/// The longest head of TCP, without which no connection comes about.
const HEAD: u32 = 60;

/// Has a socket hear nothing from now on; nobody can connect to one that listens.
pub fn cut(socket: &impl AsFd) {
    attach(socket, &[SockFilter::new(TAKE, 0, 0, 0)]);
}

/// Has the connections of a socket that listens hear nothing that is said on them, although they come about.
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
