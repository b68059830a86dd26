//! A program that a test controls: it forwards its stdin to a port, and writes to stdout what the port sends.

use std::io::{Read, Write, copy, stdin, stdout};
use std::net::{Shutdown, TcpStream};
use std::process::{exit, id};
use std::{env, thread};

fn main() -> std::io::Result<()> {
    let address = env::args().nth(1).unwrap_or_default();
    let mut strings = TcpStream::connect(address)?;
    writeln!(strings, "{}", id())?;
    let mut to_test = strings.try_clone()?;
    thread::spawn(move || {
        // Either end may close first.
        _ = copy(&mut stdin().lock(), &mut to_test);
        _ = to_test.shutdown(Shutdown::Write);
    });
    let mut bytes = [0; 64 * 1024];
    loop {
        match strings.read(&mut bytes) {
            Ok(0) | Err(_) => exit(0),
            Ok(length) => {
                let mut out = stdout().lock();
                out.write_all(&bytes[..length])?;
                out.flush()?;
            }
        }
    }
}
