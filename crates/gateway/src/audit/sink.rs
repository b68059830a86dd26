//! Where the lines of an audit log go: a file, stdout or a collector.

use std::io;
use std::io::Write;
use std::sync::LazyLock;
use std::time::SystemTime;

use creole::internal::sync::Mutex;
use creole::internal::task::random_id;

use crate::audit::file::AuditFile;
use crate::audit::hash_chain::{ChainHash, seal};
use crate::audit::settings::{AuditExport, AuditExporter, AuditSettings, AuditTarget};

/// The chain of the lines that this process writes to stdout, and the one of its lines for collectors.
static STDOUT_CHAIN: Mutex<ChainHash> = Mutex::new(ChainHash::START);
static EXPORT_CHAIN: Mutex<ChainHash> = Mutex::new(ChainHash::START);

/// The name of this process in the lines of its chains.
static WRITER: LazyLock<String> = LazyLock::new(|| match random_id() {
    Ok(id) => id[..16].to_owned(),
    Err(_) => format!("{:016x}", std::process::id()),
});

/// A line to write.
pub(crate) struct SinkLine {
    /// The line without a line end.
    pub(crate) text: Box<str>,
    /// The trace of its call.
    pub(crate) trace: Option<[u8; 16]>,
}

/// Where lines go.
pub(crate) enum Sink {
    File(AuditFile),
    Stdout { is_chained: bool },
    Exporter { exporter: AuditExporter, is_chained: bool },
}

impl Sink {
    /// Opens the sink.
    pub(crate) fn open(settings: &AuditSettings) -> io::Result<Self> {
        let is_chained = settings.chain;
        Ok(match &settings.to {
            AuditTarget::File(file) => Self::File(AuditFile::open(file, is_chained)?),
            AuditTarget::Stdout => Self::Stdout { is_chained },
            AuditTarget::Exporter(exporter) => {
                Self::Exporter { exporter: exporter.clone(), is_chained }
            }
        })
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(file) => file.path().display().to_string(),
            Self::Stdout { .. } => "stdout".to_owned(),
            Self::Exporter { .. } => "otlp".to_owned(),
        }
    }

    /// Writes lines. Returns how many were written, and why the others were not.
    pub(crate) fn write(&mut self, lines: &[SinkLine]) -> (usize, io::Result<()>) {
        match self {
            Self::File(file) => file.write(lines.iter().map(|line| &*line.text)),
            Self::Stdout { is_chained } => {
                let result = write_stdout(lines, *is_chained, &mut io::stdout().lock());
                (if result.is_ok() { lines.len() } else { 0 }, result)
            }
            Self::Exporter { exporter, is_chained } => export(lines, exporter, *is_chained),
        }
    }

    /// The newest hash of the chain.
    pub(crate) fn newest_hash(&self) -> Option<ChainHash> {
        match self {
            Self::File(file) => file.newest_hash(),
            Self::Stdout { is_chained } => is_chained.then(|| *STDOUT_CHAIN.lock()),
            Self::Exporter { is_chained, .. } => is_chained.then(|| *EXPORT_CHAIN.lock()),
        }
    }
}

fn write_stdout(lines: &[SinkLine], is_chained: bool, stdout: &mut impl Write) -> io::Result<()> {
    let mut chain = STDOUT_CHAIN.lock();
    let mut head = *chain;
    let mut text = String::new();
    for line in lines {
        match is_chained {
            true => {
                let (sealed, hash) = seal(&line.text, Some(&WRITER), head);
                head = hash;
                text.push_str(&sealed);
            }
            false => text.push_str(&line.text),
        }
        text.push('\n');
    }
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    *chain = head;
    Ok(())
}

fn export(
    lines: &[SinkLine],
    exporter: &AuditExporter,
    is_chained: bool,
) -> (usize, io::Result<()>) {
    let mut chain = EXPORT_CHAIN.lock();
    for (index, line) in lines.iter().enumerate() {
        let (text, hash) = match is_chained {
            true => {
                let (sealed, hash) = seal(&line.text, Some(&WRITER), *chain);
                (sealed.into(), hash)
            }
            false => (line.text.clone(), *chain),
        };
        let export = AuditExport { time: SystemTime::now(), line: text, trace: line.trace };
        if !exporter.export(export) {
            return (index, Err(io::Error::other("the queue of the collector is full")));
        }
        *chain = hash;
    }
    (lines.len(), Ok(()))
}
