//! Servers and a browser for tests: each request is answered by a function, and recorded.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use crate::error::OAuthError;
use crate::flow::authorization::AuthorizationRequest;
use crate::flow::person::{Browser, RedirectPage};
use crate::http::exchange::{Body, Exchange, Reach, Request, Response, form_decode};

/// Runs a future whose parts are ready at once.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing in these tests waits"),
    }
}

type Handler = Box<dyn Fn(&Request) -> Response + Send + Sync>;

/// Servers that answer by a function.
pub(crate) struct Servers {
    handler: Handler,
    pub(crate) requests: Mutex<Vec<Request>>,
    pub(crate) waits: Mutex<Vec<u64>>,
}

impl Servers {
    pub(crate) fn new(handler: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        Self { handler: Box::new(handler), requests: Mutex::default(), waits: Mutex::default() }
    }

    /// The addresses that were asked, in order.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|it| it.url.as_str().to_owned()).collect()
    }

    /// The forms that were sent to an address.
    pub(crate) fn forms(&self, url: &str) -> Vec<Vec<(String, String)>> {
        let requests = self.requests.lock().unwrap();
        let forms =
            requests.iter().filter(|it| it.url.as_str() == url).filter_map(|it| match &it.body {
                Some(Body::Form(text)) => form_decode(text),
                _ => None,
            });
        forms.collect()
    }

    pub(crate) fn reaches(&self) -> Vec<Reach> {
        self.requests.lock().unwrap().iter().map(|it| it.reach).collect()
    }
}

impl Exchange for Servers {
    async fn send(&self, request: Request) -> Result<Response, OAuthError> {
        let response = (self.handler)(&request);
        self.requests.lock().unwrap().push(request);
        Ok(response)
    }

    fn now(&self) -> u64 {
        1_000_000
    }

    async fn wait(&self, seconds: u64) {
        self.waits.lock().unwrap().push(seconds);
    }
}

/// A response with a status and a text.
pub(crate) fn response(status: u16, body: impl Into<String>) -> Response {
    Response { status, dpop_nonce: None, max_age: None, body: body.into().into_bytes() }
}

/// A response that says that nothing is there.
pub(crate) fn not_found() -> Response {
    response(404, "")
}

/// A browser in which the person consents at once. The function gets the parameters of the request and returns further
/// parameters of the response.
pub(crate) struct Consent<F> {
    pub(crate) answer: F,
    pub(crate) opened: Mutex<Vec<Vec<(String, String)>>>,
    pub(crate) registered: Mutex<Vec<Option<String>>>,
}

impl<F: Fn() -> String> Consent<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self { answer, opened: Mutex::default(), registered: Mutex::default() }
    }

    pub(crate) fn count(&self) -> usize {
        self.opened.lock().unwrap().len()
    }

    pub(crate) fn parameter(&self, at: usize, name: &str) -> Option<String> {
        let opened = self.opened.lock().unwrap();
        opened[at].iter().find(|it| it.0 == name).map(|it| it.1.clone())
    }
}

impl<'a, F: Fn() -> String + Send + Sync> Browser for &'a Consent<F> {
    type Page = &'a Consent<F>;

    async fn open(&self, registered: Option<&str>) -> Result<Self::Page, OAuthError> {
        self.registered.lock().unwrap().push(registered.map(str::to_owned));
        Ok(self)
    }
}

impl<F: Fn() -> String + Send + Sync> RedirectPage for &Consent<F> {
    fn redirect_uri(&self) -> &'static str {
        "http://127.0.0.1:40001/callback"
    }

    async fn authorize(&self, request: &AuthorizationRequest) -> Result<String, OAuthError> {
        let url = request.url();
        let parameters = form_decode(url.split_once('?').unwrap().1).unwrap();
        let state =
            parameters.iter().find(|it| it.0 == "state").map_or(String::new(), |it| it.1.clone());
        self.opened.lock().unwrap().push(parameters);
        let query = format!("state={state}&{}", (self.answer)());
        assert!(request.is_response(&query));
        Ok(query)
    }
}
