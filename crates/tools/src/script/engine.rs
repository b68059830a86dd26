//! A script engine: an isolated JavaScript context with only the language itself.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Function as JsFunction;
use rquickjs::{Context, Ctx, Object, Persistent, Runtime};

use super::cpu_time::CpuTimeLimit;
use super::script_error::ScriptError;
use super::{Function, MAX_FORWARDED_CALLS, ScriptSource};

/// Maximum stack of a script's functions, in bytes. The threads of scripts have more.
const MAX_STACK: usize = 512 * 1024;

/// The language: no files, no network, no clock but `Date`, and no modules, because no loader is set.
type Language = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// An event of a script.
#[derive(Debug, PartialEq)]
pub(super) enum EngineEvent {
    /// It forwards a call.
    Next(u32, String),
    /// It ended with this as JSON, or without a value.
    Done(Option<String>),
    /// It ended by throwing this.
    Thrown(Box<ScriptError>),
    /// A line for the log.
    Log { is_warning: bool, line: String },
}

/// A loaded script. None of its state outlives it.
pub(super) struct Engine {
    // The drop order: values, then their context, then the runtime.
    handle: Persistent<Object<'static>>,
    context: Context,
    runtime: Runtime,
    cpu_time: Rc<CpuTimeLimit>,
    events: Rc<RefCell<Vec<EngineEvent>>>,
    source: Arc<ScriptSource>,
}

impl Engine {
    /// Loads a script. The code outside of its functions runs now.
    pub(super) fn load(
        source: &Arc<ScriptSource>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Self, Box<ScriptError>> {
        let broken = |error: rquickjs::Error| {
            ScriptError::limit_exceeded(format!("cannot create a script engine: {error}"))
        };
        let limits = &source.limits;
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(MAX_STACK);
        let meter = Rc::new(CpuTimeLimit::new(limits.cpu_time, cancelled));
        let watched = Rc::clone(&meter);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let context = Context::custom::<Language>(&runtime).map_err(broken)?;
        let events = Rc::new(RefCell::new(Vec::new()));
        let (file, text) = (source.name.as_str(), &*source.text);
        let loaded = meter.measure(|| {
            context.with(|ctx| {
                let handle =
                    bootstrap(&ctx, file, &events).map_err(|_| take_exception(&ctx, None, file))?;
                let mut options = EvalOptions::default();
                options.filename = Some(file.to_owned());
                ctx.eval_with_options::<(), _>(text, options)
                    .map_err(|_| take_exception(&ctx, Some(&handle), file))?;
                Ok(Persistent::save(&ctx, handle))
            })
        });
        let handle = loaded.map_err(|failure| explain_limit(failure, &meter, source))?;
        Ok(Self { handle, context, runtime, cpu_time: meter, events, source: Arc::clone(source) })
    }

    /// Whether the script has this function.
    pub(super) fn has(&self, function: Function) -> bool {
        let asked = format!("typeof {} === 'function'", function.name());
        self.cpu_time.measure(|| self.context.with(|ctx| ctx.eval(asked).unwrap_or(false)))
    }

    /// Restores the full CPU time limit.
    pub(super) fn reset_cpu_time(&self) {
        self.cpu_time.reset(self.source.limits.cpu_time);
    }

    /// Calls a function with these arguments as JSON, until it waits or ends.
    pub(super) fn begin(&self, function: Function, arguments: &[String]) -> Vec<EngineEvent> {
        self.step(|ctx, handle| {
            let run: JsFunction<'_> = ctx.eval(function.name())?;
            handle.get::<_, JsFunction<'_>>("begin")?.call((run, arguments.to_vec()))
        })
    }

    /// Continues with the outcome of a forwarded call.
    pub(super) fn resume(&self, next: u32, answer: &Result<String, String>) -> Vec<EngineEvent> {
        let (name, text) = match answer {
            Ok(text) => ("answer", text),
            Err(text) => ("refuse", text),
        };
        self.step(|_, handle| handle.get::<_, JsFunction<'_>>(name)?.call((next, text.as_str())))
    }

    fn step(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> rquickjs::Result<()>,
    ) -> Vec<EngineEvent> {
        self.cpu_time.measure(|| {
            let failed = self.context.with(|ctx| {
                let handle = self.handle.clone().restore(&ctx).ok()?;
                let failed = work(&ctx, &handle).is_err();
                failed.then(|| take_exception(&ctx, Some(&handle), &self.source.name))
            });
            self.events.borrow_mut().extend(failed.map(EngineEvent::Thrown));
            // An error of a job is reported by its promise, or the script could not have caught it.
            while self.runtime.is_job_pending() && !self.cpu_time.must_stop() {
                if let Err(error) = self.runtime.execute_pending_job() {
                    drop(error);
                }
            }
        });
        let mut events = std::mem::take(&mut *self.events.borrow_mut());
        if self.cpu_time.is_exhausted() {
            events.push(EngineEvent::Thrown(explain_limit(
                Box::default(),
                &self.cpu_time,
                &self.source,
            )));
        }
        events
    }
}

/// Prepares the context. The script can access only `console`, and `next` where it is provided.
fn bootstrap<'js>(
    ctx: &Ctx<'js>,
    file: &str,
    events: &Rc<RefCell<Vec<EngineEvent>>>,
) -> rquickjs::Result<Object<'js>> {
    let (events, file) = (Rc::clone(events), file.to_owned());
    let tell = JsFunction::new(ctx.clone(), move |message: String, number: u32, text: String| {
        let new = match message.as_str() {
            "next" => EngineEvent::Next(number, text),
            "done" => EngineEvent::Done(Some(text)),
            "nothing" => EngineEvent::Done(None),
            "thrown" => EngineEvent::Thrown(ScriptError::from_json(&text, &file)),
            level => EngineEvent::Log { is_warning: level == "warn", line: text },
        };
        events.borrow_mut().push(new);
    })?;
    let mut options = EvalOptions::default();
    options.filename = Some("creole".to_owned());
    let start: JsFunction<'js> = ctx.eval_with_options(include_str!("bootstrap.js"), options)?;
    start.call((tell, MAX_FORWARDED_CALLS))
}

/// Takes the exception that was just thrown.
fn take_exception<'js>(
    ctx: &Ctx<'js>,
    handle: Option<&Object<'js>>,
    file: &str,
) -> Box<ScriptError> {
    let error = ctx.catch();
    let described = handle
        .and_then(|handle| handle.get::<_, JsFunction<'js>>("described").ok())
        .and_then(|describe| describe.call::<_, String>((error,)).ok());
    match described {
        Some(text) => ScriptError::from_json(&text, file),
        None => ScriptError::limit_exceeded("the script was stopped"),
    }
}

/// The error for a script that was ended because of a limit.
fn explain_limit(
    error: Box<ScriptError>,
    meter: &CpuTimeLimit,
    source: &ScriptSource,
) -> Box<ScriptError> {
    if !meter.is_exhausted() {
        return error;
    }
    let max = source.limits.cpu_time.as_millis();
    ScriptError::limit_exceeded(format!(
        "the script used more than {max} ms of CPU time and was stopped"
    ))
}
