//! What stands open in this process and is none of a child's business.

/// The first descriptor that is not a standard stream.
const FIRST_INHERITABLE: i32 = 3;

/// Keeps every descriptor but the standard streams from children. Those that we open are marked from the beginning;
/// whoever started us may have left others open, which would pass through us to every program.
pub(super) fn set_close_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITABLE, &[]);
}
