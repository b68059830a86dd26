// The bridge between a script and the program that runs it. All values cross it as JSON text.
(function (tell, mostNexts) {
  "use strict";
  const parse = JSON.parse, write = JSON.stringify;
  const waiting = new Map();
  let count = 0;

  const text = (value) => { try { return String(value); } catch { return "something without a text"; } };

  const described = (error) => {
    const is = error instanceof Error;
    const data = is && error.data !== undefined ? error.data : null;
    const base = {
      name: is ? text(error.name) : "",
      message: is ? text(error.message) : text(error),
      stack: is ? text(error.stack) : "",
      kind: is && typeof error.kind === "string" ? error.kind : null,
    };
    try { return write({ ...base, data }); } catch { return write({ ...base, data: null }); }
  };

  const next = (call) => new Promise((resolve, reject) => {
    if (++count > mostNexts) throw new RangeError(`next was called more than ${mostNexts} times`);
    const sent = write(call);
    if (sent === undefined) throw new TypeError("next needs the call that is to be passed on");
    waiting.set(count, { resolve, reject });
    tell("next", count, sent);
  });

  const line = (...values) => values.map((it) => typeof it === "string" ? it : write(it) ?? text(it)).join(" ");
  const log = (level) => (...values) => tell(level, 0, line(...values));
  globalThis.console = Object.freeze({ log: log("info"), info: log("info"), warn: log("warn"), error: log("warn") });

  return {
    begin: (run, texts) => {
      Promise.resolve().then(() => run(...texts.map((it) => parse(it)), next)).then(
        (value) => {
          const sent = write(value);
          if (sent === undefined) tell("nothing", 0, ""); else tell("done", 0, sent);
        },
      ).catch((error) => tell("thrown", 0, described(error)));
    },
    answer: (number, sent) => {
      const call = waiting.get(number);
      waiting.delete(number);
      call?.resolve(parse(sent));
    },
    refuse: (number, sent) => {
      const call = waiting.get(number);
      waiting.delete(number);
      const { message, ...facts } = parse(sent);
      call?.reject(Object.assign(new Error(message), facts));
    },
    described,
  };
})
