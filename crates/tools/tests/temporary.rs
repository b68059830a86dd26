use creole_tools::{add, Options, PACKS};
use std::time::Instant;
#[test]
fn cold() {
    for _ in 0..4 {
        let start = Instant::now();
        let mut server = creole::Server::new("all");
        for (name, _) in PACKS { server = add(server, name, &Options::default()).unwrap(); }
        let added = start.elapsed();
        let service = server.start();
        println!("added {added:?} started {:?}", start.elapsed());
        drop(service);
    }
}
#[tokio::test]
async fn newline() {
    use creole::proto::wire::Raw;
    let tool = creole::Tool::raw("x", "y", Raw::parse("{\n\"type\":\"object\"\n}").unwrap(), |_, _| Box::pin(async { Ok(creole::ToolResult::text("z")) }));
    let service = creole::Server::new("n").tool(tool).start();
    let (mut near, far) = creole::transport::memory();
    tokio::spawn(async move { let (i, o) = far.split(); service.serve(i, o).await });
    near.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n").await.unwrap();
    println!("{:?}", String::from_utf8(near.receive().await.unwrap()));
}
