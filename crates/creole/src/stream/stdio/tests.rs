//! Tests of the standard streams against real pipes, sockets, files and devices.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use creole_test_wait::delay;
use tokio::time::timeout;

use super::*;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(5);

/// A pipe and a socket pair, each as (end to read, end to write).
fn pairs() -> [(OwnedFd, OwnedFd); 2] {
    let (reader, writer) = io::pipe().unwrap();
    let (one, other) = UnixStream::pair().unwrap();
    [(reader.into(), writer.into()), (one.into(), other.into())]
}

#[tokio::test]
async fn partial_reads_append_and_the_end_is_zero() {
    for (reader, writer) in pairs() {
        let (mut input, mut peer) = (Input::from_fd(reader).unwrap(), File::from(writer));
        let mut buffer = b">".to_vec();
        peer.write_all(b"hello").unwrap();
        assert_eq!(input.read(&mut buffer, 2).await.unwrap(), 2);
        assert_eq!(input.read(&mut buffer, 100).await.unwrap(), 3);
        assert_eq!(buffer, b">hello");
        assert!(timeout(SHORT, input.read(&mut buffer, 100)).await.is_err());
        peer.write_all(b"last").unwrap();
        drop(peer);
        assert_eq!(input.read(&mut buffer, 100).await.unwrap(), 4);
        for _ in 0..3 {
            assert_eq!(timeout(LONG, input.read(&mut buffer, 100)).await.unwrap().unwrap(), 0);
        }
        assert_eq!(buffer, b">hellolast");
    }
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    for (reader, writer) in pairs() {
        let (mut input, mut peer) = (Input::from_fd(reader).unwrap(), File::from(writer));
        let mut buffer = Vec::new();
        for byte in b"abcdef" {
            assert!(timeout(SHORT / 10, input.read(&mut buffer, 10)).await.is_err());
            peer.write_all(&[*byte]).unwrap();
            assert_eq!(timeout(LONG, input.read(&mut buffer, 10)).await.unwrap().unwrap(), 1);
        }
        assert_eq!(buffer, b"abcdef");
    }
}

#[tokio::test]
async fn a_megabyte_arrives_unchanged_through_a_slow_reader() {
    let bytes: Vec<u8> = (0..1_048_577_u32).map(|i| (i * 7 / 3) as u8).collect();
    for (reader, writer) in pairs() {
        let output = Output::from_fd(writer).unwrap();
        let mut input = Input::from_fd(reader).unwrap();
        let sending = async {
            let mut sent = 0;
            while sent < bytes.len() {
                sent += output.write(&bytes[sent..]).await.unwrap();
            }
            output.flush().await.unwrap();
            drop(output);
        };
        let receiving = async {
            let mut buffer = Vec::new();
            while input.read(&mut buffer, 5000).await.unwrap() > 0 {
                tokio::task::yield_now().await;
            }
            buffer
        };
        let ((), received) =
            timeout(LONG, async { tokio::join!(sending, receiving) }).await.unwrap();
        assert!(received == bytes);
    }
}

#[tokio::test]
async fn a_full_stream_would_block_and_continues_when_read() {
    for (reader, writer) in pairs() {
        let (output, mut peer) = (Output::from_fd(writer).unwrap(), File::from(reader));
        let mut taken = 0;
        while let Some(more) = output.try_write(&[1; 4096]).unwrap() {
            taken += more;
        }
        assert!(taken >= 4096);
        assert!(timeout(SHORT, output.write(b"x")).await.is_err());
        assert_eq!(output.try_write(b"x").unwrap(), None);
        let mut read = vec![0; taken];
        peer.read_exact(&mut read).unwrap();
        assert_eq!(timeout(LONG, output.write(b"x")).await.unwrap().unwrap(), 1);
        assert_eq!(output.try_write(b"y").unwrap(), Some(1));
        let mut rest = [0; 2];
        peer.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"xy");
    }
}

#[tokio::test]
async fn closed_waits_for_the_reader_to_disconnect_and_writes_then_fail() {
    for (reader, writer) in pairs() {
        let output = Output::from_fd(writer).unwrap();
        assert_eq!(output.write(b"unread").await.unwrap(), 6);
        assert!(timeout(SHORT, output.closed()).await.is_err());
        drop(reader);
        timeout(LONG, output.closed()).await.unwrap();
        timeout(LONG, output.closed()).await.unwrap();
        let error = output.write(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(output.try_write(b"x").is_err());
    }
}

#[tokio::test]
async fn a_writer_waiting_for_space_notices_that_the_reader_disconnects() {
    for (reader, writer) in pairs() {
        let output = Output::from_fd(writer).unwrap();
        while output.try_write(&[1; 4096]).unwrap().is_some() {}
        let waiting = timeout(LONG, output.write(b"x"));
        let leaving = async {
            delay(SHORT).await;
            drop(reader);
        };
        let (written, ()) = tokio::join!(waiting, leaving);
        assert!(written.unwrap().is_err());
    }
}

#[tokio::test]
async fn a_peer_that_only_ends_its_own_sending_has_not_closed_our_output() {
    let (local, remote) = UnixStream::pair().unwrap();
    let output = Output::from_fd(local.into()).unwrap();
    remote.shutdown(Shutdown::Write).unwrap();
    assert!(timeout(SHORT, output.closed()).await.is_err());
    assert_eq!(output.write(b"x").await.unwrap(), 1);
}

#[tokio::test]
async fn one_socket_serves_both_directions() {
    let (local, mut remote) = UnixStream::pair().unwrap();
    let mut input = Input::from_fd(local.try_clone().unwrap().into()).unwrap();
    let output = Output::from_fd(local.into()).unwrap();
    for _ in 0..3 {
        remote.write_all(b"ping").unwrap();
        let mut buffer = Vec::new();
        assert_eq!(timeout(LONG, input.read(&mut buffer, 10)).await.unwrap().unwrap(), 4);
        assert_eq!(output.write(&buffer).await.unwrap(), 4);
        assert!(timeout(SHORT / 10, output.closed()).await.is_err());
        let mut echo = [0; 4];
        remote.read_exact(&mut echo).unwrap();
    }
    drop(input);
    assert_eq!(output.write(b"still here").await.unwrap(), 10);
}

#[tokio::test]
async fn devices_and_files_are_read_and_written_through_threads() {
    let mut buffer = Vec::new();
    let mut null = Input::from_fd(File::open("/dev/null").unwrap().into()).unwrap();
    assert_eq!(null.read(&mut buffer, 10).await.unwrap(), 0);

    let path = std::env::temp_dir().join(format!("creole-stdio-{}", std::process::id()));
    let output = Output::from_fd(File::create(&path).unwrap().into()).unwrap();
    for _ in 0..100 {
        assert_eq!(output.write(b"line\n").await.unwrap(), 5);
    }
    output.flush().await.unwrap();
    assert!(timeout(SHORT, output.closed()).await.is_err());
    let mut input = Input::from_fd(File::open(&path).unwrap().into()).unwrap();
    while input.read(&mut buffer, 7).await.unwrap() > 0 {}
    std::fs::remove_file(&path).unwrap();
    assert_eq!(buffer, b"line\n".repeat(100));
}

#[tokio::test]
async fn a_full_device_reports_its_error_on_flush() {
    let output = Output::from_fd(File::create("/dev/full").unwrap().into()).unwrap();
    output.write(b"x").await.unwrap();
    assert_eq!(output.flush().await.unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[tokio::test]
async fn an_endless_reader_lets_other_tasks_run() {
    let (reader, writer) = io::pipe().unwrap();
    let mut input = Input::from_fd(reader.into()).unwrap();
    std::thread::spawn(move || {
        let mut writer = writer;
        while writer.write_all(&[0; 65536]).is_ok() {}
    });
    let reading = tokio::spawn(async move {
        let mut buffer = Vec::new();
        while input.read(&mut buffer, 16).await.unwrap() > 0 {
            buffer.clear();
        }
    });
    tokio::task::yield_now().await;
    delay(SHORT).await;
    reading.abort();
}
