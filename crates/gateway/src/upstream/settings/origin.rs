//! Where the settings of an upstream come from. A reload keeps an upstream whose origin did not change.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A value that settings were made from, such as a table of a configuration. Only its equality is known here: two
/// origins are equal if their values have the same type and are equal.
#[derive(Clone)]
pub struct SettingsOrigin(Arc<dyn Comparable>);

impl SettingsOrigin {
    /// The origin that is this value.
    pub fn new<T: PartialEq + Send + Sync + 'static>(value: T) -> Self {
        Self(Arc::new(value))
    }
}

impl PartialEq for SettingsOrigin {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_equal(&*other.0)
    }
}

/// The value may contain secrets, so it is not shown.
impl fmt::Debug for SettingsOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SettingsOrigin(…)")
    }
}

trait Comparable: Any + Send + Sync {
    fn is_equal(&self, other: &dyn Comparable) -> bool;
}

impl<T: PartialEq + Send + Sync + 'static> Comparable for T {
    fn is_equal(&self, other: &dyn Comparable) -> bool {
        (other as &dyn Any).downcast_ref::<T>().is_some_and(|other| self == other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_equal_if_type_and_value_are() {
        let origin = SettingsOrigin::new("a");
        assert_eq!(origin.clone(), SettingsOrigin::new("a"));
        assert_ne!(origin, SettingsOrigin::new("b"));
        assert_ne!(origin, SettingsOrigin::new("a".to_owned()));
    }

    #[test]
    fn the_value_is_not_shown() {
        assert_eq!(format!("{:?}", SettingsOrigin::new("hunter2")), "SettingsOrigin(…)");
    }
}
