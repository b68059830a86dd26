//! The executions at an upstream, compared with the calls that clients made.

use std::collections::HashMap;

/// A call, as its client saw it.
#[derive(Clone, Debug)]
pub struct ExecutedCall {
    /// The secret of this call.
    pub nonce: String,
    /// Whether it may be executed more than once.
    pub may_repeat: bool,
    /// Whether its client got the result. Otherwise it may have been executed, or not.
    pub has_result: bool,
}

/// A violation by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionBreach {
    /// A call that must not be repeated was executed this often.
    Repeated(String, usize),
    /// A call has a result, and was not executed.
    Invented(String),
    /// A call was executed that no client made.
    Unknown(String),
}

/// All violations in a run. `executions` has how often each call was executed, by its nonce.
#[must_use]
pub fn execution_breaches(
    calls: &[ExecutedCall],
    executions: &HashMap<String, usize>,
) -> Vec<ExecutionBreach> {
    let by_nonce: HashMap<&str, &ExecutedCall> =
        calls.iter().map(|call| (&*call.nonce, call)).collect();
    let invented = calls.iter().filter(|call| call.has_result);
    let invented = invented.filter(|call| !executions.contains_key(&call.nonce));
    let mut breaches: Vec<_> =
        invented.map(|call| ExecutionBreach::Invented(call.nonce.clone())).collect();
    for (nonce, count) in executions {
        match by_nonce.get(&**nonce) {
            None => breaches.push(ExecutionBreach::Unknown(nonce.clone())),
            Some(call) if *count > 1 && !call.may_repeat => {
                breaches.push(ExecutionBreach::Repeated(nonce.clone(), *count));
            }
            Some(_) => {}
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(calls: &[ExecutedCall], executed: &[(&str, usize)]) -> Vec<ExecutionBreach> {
        let executions = executed.iter().map(|(nonce, count)| ((*nonce).to_owned(), *count));
        execution_breaches(calls, &executions.collect())
    }

    fn call(nonce: &str, may_repeat: bool, has_result: bool) -> ExecutedCall {
        ExecutedCall { nonce: nonce.to_owned(), may_repeat, has_result }
    }

    #[test]
    fn a_call_without_a_result_may_have_been_executed_or_not() {
        let calls = [call("a", false, false), call("b", false, false), call("c", false, true)];
        assert_eq!(breaches(&calls, &[("a", 1), ("c", 1)]), []);
    }

    #[test]
    fn only_a_call_that_may_be_repeated_is_executed_twice() {
        let calls = [call("a", true, false), call("b", false, false)];
        let expected = [ExecutionBreach::Repeated("b".to_owned(), 2)];
        assert_eq!(breaches(&calls, &[("a", 2), ("b", 2)]), expected);
    }

    #[test]
    fn a_result_without_an_execution_and_an_execution_without_a_call_are_violations() {
        let expected =
            [ExecutionBreach::Invented("a".to_owned()), ExecutionBreach::Unknown("x".to_owned())];
        assert_eq!(breaches(&[call("a", false, true)], &[("x", 1)]), expected);
    }
}
