"""A receiver of OTLP: decodes requests by the official classes, refuses unknown fields, and prints what it received.

It prints one JSON object per line: first `port`, then `request` for each request, and `span`, `metric` or `log` for each
item of an accepted one. A line of its input sets the response to the requests that follow:
`{"http": 503, "retry_after": "7"}`, `{"grpc": 14}`, `{"reject": 2}`, or `{}` to accept them.
"""

import argparse
import json
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces

SIGNALS = {
    "traces": (traces.ExportTraceServiceRequest, traces.ExportTraceServiceResponse, "rejected_spans"),
    "metrics": (
        metrics.ExportMetricsServiceRequest,
        metrics.ExportMetricsServiceResponse,
        "rejected_data_points",
    ),
    "logs": (logs.ExportLogsServiceRequest, logs.ExportLogsServiceResponse, "rejected_log_records"),
}
SERVICES = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
response = {}
running = []
lock = threading.Lock()


def tell(**told):
    """Prints one line."""
    with lock:
        print(json.dumps(told), flush=True)


def check(message):
    """Raises an error if a message, or one in it, has a field that the official definition does not have."""
    if len(UnknownFieldSet(message)):
        raise ValueError(f"{message.DESCRIPTOR.full_name} has an unknown field")
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.is_repeated else [value]:
                check(each)


def plain(value):
    """An attribute's value."""
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


def attributes(entries):
    return {entry.key: plain(entry.value) for entry in entries}


def ids(item):
    return {"trace_id": item.trace_id.hex(), "span_id": item.span_id.hex()}


def tell_span(span, resource):
    assert len(span.trace_id) == 16 and len(span.span_id) == 8, "ids have the wrong length"
    assert span.start_time_unix_nano <= span.end_time_unix_nano, "the span ends before its start"
    told = ids(span) | {
        "parent": span.parent_span_id.hex(),
        "name": span.name,
        "kind": span.kind,
        "state": span.trace_state,
        "flags": span.flags,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "attributes": attributes(span.attributes),
        "links": [ids(link) for link in span.links],
        "status": span.status.code,
        "message": span.status.message,
    }
    tell(span=told, resource=resource)


def tell_metric(metric, resource):
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        told = {"name": metric.name, "unit": metric.unit, "kind": kind, "attributes": attributes(point.attributes)}
        if kind == "histogram":
            assert len(point.bucket_counts) == len(point.explicit_bounds) + 1, "a bucket is missing"
            assert sum(point.bucket_counts) == point.count, "the buckets contradict the count"
            told |= {"count": point.count, "sum": point.sum}
        else:
            told["value"] = getattr(point, point.WhichOneof("value"))
        tell(metric=told, resource=resource)


def tell_log(record, resource):
    told = ids(record) | {
        "body": plain(record.body),
        "severity": record.severity_number,
        "event": record.event_name,
        "attributes": attributes(record.attributes),
    }
    tell(log=told, resource=resource)


def accept(signal, body):
    """Reads a request, prints its items, and returns the response."""
    request_class, response_class, rejected = SIGNALS[signal]
    request = request_class.FromString(body)
    check(request)
    for group in getattr(request, {"traces": "resource_spans", "metrics": "resource_metrics", "logs": "resource_logs"}[signal]):
        resource = attributes(group.resource.attributes)
        assert "service.name" in resource, "the resource has no service.name"
        if signal == "traces":
            for span in (span for scope in group.scope_spans for span in scope.spans):
                tell_span(span, resource)
        elif signal == "metrics":
            for metric in (metric for scope in group.scope_metrics for metric in scope.metrics):
                tell_metric(metric, resource)
        else:
            for record in (record for scope in group.scope_logs for record in scope.log_records):
                tell_log(record, resource)
    answer = response_class()
    if "reject" in response:
        setattr(answer.partial_success, rejected, response["reject"])
        answer.partial_success.error_message = "rejected by the test"
    return answer


class Handler(BaseHTTPRequestHandler):
    """http/protobuf."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        tell(request={"path": self.path, "headers": headers, "at": time.time()})
        if "http" in response:
            return self.answer(response["http"], b"", {"retry-after": response.get("retry_after")})
        try:
            assert headers["content-type"] == "application/x-protobuf", "the media type is wrong"
            answer = accept(self.path.removeprefix("/v1/"), body)
        except Exception as error:  # any failure is the referee's verdict
            tell(error=str(error) or type(error).__name__)
            return self.answer(400, b"", {})
        self.answer(200, answer.SerializeToString(), {"content-type": "application/x-protobuf"})

    def answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            if value is not None:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def export(signal):
    """The method `Export` of a signal."""

    def handle(body, context):
        headers = dict(context.invocation_metadata())
        tell(request={"path": f"/v1/{signal}", "headers": headers, "at": time.time()})
        if "grpc" in response:
            code = next(code for code in grpc.StatusCode if code.value[0] == response["grpc"])
            context.abort(code, "refused by the test")
        try:
            return accept(signal, body).SerializeToString()
        except Exception as error:  # any failure is the referee's verdict
            tell(error=str(error) or type(error).__name__)
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    return grpc.unary_unary_rpc_method_handler(handle)


def serve_grpc(options):
    server = grpc.server(ThreadPoolExecutor(4))
    for service, signal in SERVICES.items():
        handlers = grpc.method_handlers_generic_handler(service, {"Export": export(signal)})
        server.add_generic_rpc_handlers((handlers,))
    address = f"127.0.0.1:{options.port}"
    if options.certificate:
        pair = (open(options.key, "rb").read(), open(options.certificate, "rb").read())
        port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port(address)
    server.start()
    # A server that nothing refers to ends.
    running.append(server)
    return port


def serve_http(options):
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    global response
    parser = argparse.ArgumentParser()
    parser.add_argument("--grpc", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    tell(port=serve_grpc(options) if options.grpc else serve_http(options))
    for line in sys.stdin:
        response = json.loads(line)
        tell(set=response)


main()
