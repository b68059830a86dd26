//! One engine: a script in a world of its own, which holds the language and nothing else.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::function::Function as JsFunction;
use rquickjs::{Context, Ctx, Object, Persistent, Runtime};

use super::meter::Meter;
use super::thrown::Thrown;
use super::{Function, MOST_NEXTS, Source};

/// How deep the functions of a script may call each other, in bytes; the threads of scripts have more.
const STACK: usize = 512 * 1024;

/// The language: no files, no network, no clock but `Date`, and no modules, because nobody loads them.
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

/// What a script told.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// It passes a call on.
    Next(u32, String),
    /// It is done, with this as JSON, or with nothing.
    Done(Option<String>),
    /// It is done by throwing this.
    Thrown(Box<Thrown>),
    /// Something for the log.
    Log { is_warning: bool, line: String },
}

/// A script that was loaded. Nothing of it outlives it.
pub(super) struct Engine {
    // The order of dropping: values, then their context, then the runtime.
    handle: Persistent<Object<'static>>,
    context: Context,
    runtime: Runtime,
    meter: Rc<Meter>,
    told: Rc<RefCell<Vec<Told>>>,
    source: Arc<Source>,
}

impl Engine {
    /// Loads a script: what stands outside of its functions runs now.
    pub(super) fn load(
        source: &Arc<Source>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<Self, Box<Thrown>> {
        let broken = |error: rquickjs::Error| Thrown::limit(format!("no engine: {error}"));
        let limits = &source.limits;
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(STACK);
        let meter = Rc::new(Meter::new(limits.compute, cancelled));
        let watched = Rc::clone(&meter);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let context = Context::custom::<Language>(&runtime).map_err(broken)?;
        let told = Rc::new(RefCell::new(Vec::new()));
        let (file, text) = (source.name.as_str(), &*source.text);
        let loaded = meter.during(|| {
            context.with(|ctx| {
                let handle = bootstrap(&ctx, file, &told).map_err(|_| caught(&ctx, None, file))?;
                let mut options = EvalOptions::default();
                options.filename = Some(file.to_owned());
                ctx.eval_with_options::<(), _>(text, options)
                    .map_err(|_| caught(&ctx, Some(&handle), file))?;
                Ok(Persistent::save(&ctx, handle))
            })
        });
        let handle = loaded.map_err(|thrown| limited(thrown, &meter, source))?;
        Ok(Self { handle, context, runtime, meter, told, source: Arc::clone(source) })
    }

    /// Whether the script has this function.
    pub(super) fn has(&self, function: Function) -> bool {
        let asked = format!("typeof {} === 'function'", function.name());
        self.meter.during(|| self.context.with(|ctx| ctx.eval(asked).unwrap_or(false)))
    }

    /// Lets it compute as long as one that was just made.
    pub(super) fn renew(&self) {
        self.meter.renew(self.source.limits.compute);
    }

    /// Calls a function with these arguments as JSON, as far as it goes.
    pub(super) fn begin(&self, function: Function, arguments: &[String]) -> Vec<Told> {
        self.step(|ctx, handle| {
            let run: JsFunction<'_> = ctx.eval(function.name())?;
            handle.get::<_, JsFunction<'_>>("begin")?.call((run, arguments.to_vec()))
        })
    }

    /// Goes on with what became of a call that was passed on.
    pub(super) fn answer(&self, next: u32, answer: &Result<String, String>) -> Vec<Told> {
        let (name, text) = match answer {
            Ok(text) => ("answer", text),
            Err(text) => ("refuse", text),
        };
        self.step(|_, handle| handle.get::<_, JsFunction<'_>>(name)?.call((next, text.as_str())))
    }

    fn step(
        &self,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Object<'js>) -> rquickjs::Result<()>,
    ) -> Vec<Told> {
        self.meter.during(|| {
            let failed = self.context.with(|ctx| {
                let handle = self.handle.clone().restore(&ctx).ok()?;
                let failed = work(&ctx, &handle).is_err();
                failed.then(|| caught(&ctx, Some(&handle), &self.source.name))
            });
            self.told.borrow_mut().extend(failed.map(Told::Thrown));
            // An error of a job is told by the promise that it belongs to, or was not the script's to catch.
            while self.runtime.is_job_pending() && !self.meter.is_over() {
                if let Err(error) = self.runtime.execute_pending_job() {
                    drop(error);
                }
            }
        });
        let mut told = std::mem::take(&mut *self.told.borrow_mut());
        if self.meter.is_spent() {
            told.push(Told::Thrown(limited(Box::default(), &self.meter, &self.source)));
        }
        told
    }
}

/// Prepares a world: what is left of it in the script's reach is `console`, and `next` where it is given.
fn bootstrap<'js>(
    ctx: &Ctx<'js>,
    file: &str,
    told: &Rc<RefCell<Vec<Told>>>,
) -> rquickjs::Result<Object<'js>> {
    let (told, file) = (Rc::clone(told), file.to_owned());
    let tell = JsFunction::new(ctx.clone(), move |what: String, number: u32, text: String| {
        let new = match what.as_str() {
            "next" => Told::Next(number, text),
            "done" => Told::Done(Some(text)),
            "nothing" => Told::Done(None),
            "thrown" => Told::Thrown(Thrown::read(&text, &file)),
            level => Told::Log { is_warning: level == "warn", line: text },
        };
        told.borrow_mut().push(new);
    })?;
    let mut options = EvalOptions::default();
    options.filename = Some("creole".to_owned());
    let start: JsFunction<'js> = ctx.eval_with_options(include_str!("bootstrap.js"), options)?;
    start.call((tell, MOST_NEXTS))
}

/// The error that was just thrown.
fn caught<'js>(ctx: &Ctx<'js>, handle: Option<&Object<'js>>, file: &str) -> Box<Thrown> {
    let error = ctx.catch();
    let described = handle
        .and_then(|handle| handle.get::<_, JsFunction<'js>>("described").ok())
        .and_then(|describe| describe.call::<_, String>((error,)).ok());
    match described {
        Some(text) => Thrown::read(&text, file),
        None => Thrown::limit("it could not go on"),
    }
}

/// What is told of a script that was ended from outside.
fn limited(thrown: Box<Thrown>, meter: &Meter, source: &Source) -> Box<Thrown> {
    if !meter.is_spent() {
        return thrown;
    }
    let most = source.limits.compute.as_millis();
    Thrown::limit(format!("it computed for more than {most} ms and was ended"))
}
