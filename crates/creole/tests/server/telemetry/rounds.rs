//! Tests of the records of calls that have several rounds or run as tasks.

use creole::TaskSupport;

use super::*;

#[tokio::test]
async fn input_requests_are_steps_with_their_round() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let server = greeter().tool(Tool::new("ask", "Asks twice", two_input_requests));
    let service = server.telemetry(telemetry.clone()).start();
    let mut client = MemoryClient::connect(&service);
    let capabilities = json!({"elicitation": {}, "sampling": {}});
    client.initialize("2025-11-25", capabilities).await;
    let mut message = client.ask(call(1, "ask", json!({}))).await;
    while let Some(method) = message["method"].as_str() {
        let result = match method {
            "elicitation/create" => json!({"action": "accept", "content": {"name": "Ada"}}),
            _ => json!({"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "well"}}),
        };
        let id = message["id"].clone();
        message = client.ask(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }
    let record = collector.next("tools/call").await;
    let asked: Vec<_> = record
        .steps()
        .iter()
        .filter_map(|step| match step.kind {
            StepKind::InputRequest { kind, round } => Some((kind, round, step.error)),
            _ => None,
        })
        .collect();
    let expected = [("elicitation/create", 1, None), ("sampling/createMessage", 2, None)];
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn the_rounds_of_a_call_of_the_stateless_era_continue_each_other() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let server = greeter().tool(Tool::new("ask", "Asks twice", two_input_requests));
    let service = server.telemetry(telemetry.clone()).start();
    let mut client = MemoryClient::connect(&service);
    let first = client.ask(modern(1, "ask", &json!({}))).await;
    let begun = collector.next("tools/call").await;
    assert_eq!((outcome(&begun), begun.round()), (CallOutcome::InputRequired, 1));
    assert!(matches!(begun.steps()[..], [ref step] if step.is_ended));
    let answers = json!({
        "inputResponses": {"name": {"action": "accept", "content": {"name": "Ada"}}},
        "requestState": first["result"]["requestState"],
    });
    client.ask(modern(2, "ask", &answers)).await;
    let second = collector.next("tools/call").await;
    assert_eq!(second.continues().map(|earlier| earlier.id), Some(begun.id));
    assert_eq!((second.round(), outcome(&second)), (2, CallOutcome::InputRequired));
}

#[tokio::test]
async fn the_work_on_a_task_continues_the_call_that_made_it() {
    let (telemetry, collector) = (Telemetry::default(), EndedRecords::new(Detail::Steps));
    let _guard = telemetry.subscribe(Arc::clone(&collector) as _);
    let work = Tool::new("work", "Works", |_: Nothing| async { "done" });
    let server = greeter().tool(work.task(TaskSupport::Required)).with(Judge);
    let mut client = connect(&telemetry, server).await;
    let mut message = call(1, "work", json!({}));
    message["params"]["task"] = json!({});
    client.ask(message).await;
    let (mut first, mut second) =
        (collector.next("tools/call").await, collector.next("tools/call").await);
    if first.continues().is_some() {
        std::mem::swap(&mut first, &mut second);
    }
    assert_eq!((outcome(&first), first.continues()), (CallOutcome::Task, None));
    assert_eq!(second.continues().map(|earlier| earlier.id), Some(first.id));
    assert_eq!(outcome(&second), CallOutcome::Success);
    assert!(layers(&first).is_empty());
    assert_eq!(layers(&second), [("judge", Decision::Passed, 1)]);
}
