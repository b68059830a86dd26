//! Marks the open descriptors of this process close-on-exec, so that children do not inherit them.

/// The first descriptor that is not a standard stream.
const FIRST_INHERITABLE: i32 = 3;

/// Keeps every descriptor except the standard streams from children. Descriptors that we open are marked from the
/// start. The process that started us may have left others open, which would pass through us to every program.
pub(super) fn set_close_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITABLE, &[]);
}
