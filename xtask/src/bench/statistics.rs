//! Medians, spreads and paired ratios.

/// The median of some samples, with the minimum and the maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) lowest: f64,
    pub(super) median: f64,
    pub(super) highest: f64,
}

impl Spread {
    /// The spread of `samples`; not a number when there are none.
    pub(super) fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self {
            lowest: at(0),
            median: f64::midpoint(at(last / 2), at(sorted.len() / 2)),
            highest: at(last),
        }
    }
}

/// The median of `samples`.
pub(super) fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    Spread::of(samples).median
}

/// `combine` applied to the samples of the same repetition.
pub(super) fn paired(ours: &[f64], theirs: &[f64], combine: fn(f64, f64) -> f64) -> Spread {
    Spread::of(ours.iter().zip(theirs).map(|(ours, theirs)| combine(*ours, *theirs)))
}

#[cfg(test)]
mod tests {
    use super::{Spread, median, paired};

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        assert_eq!(median([3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]).to_bits(), 2.5_f64.to_bits());
        assert!(median([]).is_nan());
    }

    #[test]
    fn ratios_are_computed_before_the_median() {
        // The medians, 2 and 2, would give 1. The repetitions give 2.
        let ratio = paired(&[2.0, 8.0, 1.0], &[1.0, 2.0, 4.0], |ours, theirs| ours / theirs);
        assert_eq!(ratio, Spread { lowest: 0.25, median: 2.0, highest: 4.0 });
    }
}
