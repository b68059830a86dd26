//! The scripts that run in the server. Each is one atomic operation.

use std::sync::LazyLock;

use redis::Script;

macro_rules! script {
    ($($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $file)), "\n"),+)))
    };
}

pub(super) static GET: LazyLock<Script> = script!("clock.lua", "get.lua");
pub(super) static WRITE: LazyLock<Script> =
    script!("clock.lua", "counts.lua", "entry.lua", "write.lua");
pub(super) static TOUCH: LazyLock<Script> =
    script!("clock.lua", "counts.lua", "entry.lua", "touch.lua");
pub(super) static REMOVE: LazyLock<Script> =
    script!("clock.lua", "counts.lua", "entry.lua", "remove.lua");
pub(super) static APPEND: LazyLock<Script> =
    script!("clock.lua", "counts.lua", "log.lua", "append.lua");
pub(super) static READ: LazyLock<Script> = script!("clock.lua", "log.lua", "read.lua");
pub(super) static REMOVE_LOG: LazyLock<Script> =
    script!("clock.lua", "counts.lua", "remove_log.lua");
