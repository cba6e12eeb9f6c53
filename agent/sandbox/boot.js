// One expression: the function by which the child speaks to the engine. It runs before the script does and captures
// what it needs, because the script may replace or freeze every object that it can reach. So nothing below calls a
// method of such an object, and walks lists by their index.
(() => {
  "use strict";

  const { apply, ownKeys: allKeys } = Reflect;
  const { create, defineProperty, getOwnPropertyDescriptor, keys, setPrototypeOf } = Object;
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { now } = Date;
  const { isFinite } = Number;
  const [asText, run, PlainError, TypeFault, RangeFault, SyntaxFault] =
    [String, eval, Error, TypeError, RangeError, SyntaxError];
  const { forEach: eachOfMap } = Map.prototype;
  const { forEach: eachOfSet } = Set.prototype;
  const { toString: tagOf } = Object.prototype;
  const { exec } = RegExp.prototype;
  const { slice, toWellFormed } = String.prototype;
  const ProxyOf = Proxy;

  const UNSERIALISABLE = "[unserialisable]";
  const MAX_DEPTH = 20;
  const MAX_NAME = 200;
  const MAX_MESSAGE = 2000;
  const LINE_COST = 10; // what a line of the console weighs beside its text

  let job = null;
  let state = "pending";
  let result = "null";
  let failure = "null";
  let isCut = false;

  const cut = (text, length) => {
    if (text.length <= length) return text;
    isCut = true;
    return `${apply(slice, text, [0, length])}…`;
  };
  // One piece without halves of characters: what the engine still holds as pieces to join cannot leave it.
  const whole = (text) => apply(toWellFormed, text, []);
  const quoted = (text) => stringify(whole(text));

  // The JSON of a value. What JSON cannot hold is told in words, a cycle and what throws as UNSERIALISABLE.
  const json = (value, budget, depth = 0, above = null) => {
    budget.left -= 1;
    switch (typeof value) {
      case "undefined":
        return "null";
      case "boolean":
        return `${value}`;
      case "number":
        return isFinite(value) ? `${value}` : quoted(`${value}`);
      case "function":
        return '"[function]"';
      case "object":
        return value === null ? "null" : composite(value, budget, depth, above);
      default: {
        const text = cut(asText(value), budget.left > 0 ? budget.left : 0);
        budget.left -= text.length;
        return quoted(text);
      }
    }
  };

  const composite = (value, budget, depth, above) => {
    for (let one = above; one !== null; one = one.above) if (one.value === value) return quoted(UNSERIALISABLE);
    if (depth >= MAX_DEPTH) {
      isCut = true;
      return '"[too deep]"';
    }
    try {
      const { toJSON } = value;
      const plain = typeof toJSON === "function" ? apply(toJSON, value, [""]) : value;
      const below = { value, above };
      return plain === value ? members(value, budget, depth + 1, below) : json(plain, budget, depth + 1, below);
    } catch {
      return quoted(UNSERIALISABLE);
    }
  };

  const members = (value, budget, depth, above) => {
    if (isArray(value) || (isView(value) && value.length >= 0)) {
      return list((i) => value[i], value.length, budget, depth, above);
    }
    const found = [];
    let count = 0;
    const gather = (one) => defineProperty(found, count++, { __proto__: null, value: one });
    switch (apply(tagOf, value, [])) {
      case "[object Error]":
        return quoted(errorText(value));
      case "[object Map]":
        apply(eachOfMap, value, [(item, key) => gather([key, item])]);
        return list((i) => found[i], count, budget, depth, above);
      case "[object Set]":
        apply(eachOfSet, value, [gather]);
        return list((i) => found[i], count, budget, depth, above);
      default:
        return record(value, keys(value), budget, depth, above);
    }
  };

  const list = (item, length, budget, depth, above) => {
    let text = "";
    for (let i = 0; i < length; i++) {
      if (budget.left <= 0) {
        isCut = true;
        return `[${text}${i ? "," : ""}"[${length - i} more]"]`;
      }
      text += (i ? "," : "") + json(item(i), budget, depth, above);
    }
    return `[${text}]`;
  };

  const record = (value, names, budget, depth, above) => {
    let text = "";
    for (let i = 0; i < names.length; i++) {
      if (budget.left <= 0) {
        isCut = true;
        return `{${text}${text && ","}"…":"[${names.length - i} more]"}`;
      }
      const item = value[names[i]];
      if (item === undefined) continue;
      budget.left -= names[i].length;
      text += `${text && ","}${quoted(cut(names[i], MAX_MESSAGE))}:${json(item, budget, depth, above)}`;
    }
    return `{${text}}`;
  };

  // The innermost line of the script in a stack. The engine calls every source <input>; the child put these lines after
  // the script's own, so that a number tells whose it is.
  const lineIn = (stack) => {
    const place = /<input>:(\d+)/g;
    for (let found = apply(exec, place, [stack]); found !== null; found = apply(exec, place, [stack])) {
      if (+found[1] <= job.lines) return +found[1];
    }
    return 0;
  };

  const told = (thrown) => {
    let name = "Error";
    let message = UNSERIALISABLE;
    let line = 0;
    try {
      if (thrown !== null && typeof thrown === "object" && apply(tagOf, thrown, []) === "[object Error]") {
        name = cut(asText(thrown.name), MAX_NAME);
        message = cut(asText(thrown.message), MAX_MESSAGE);
        line = lineIn(asText(thrown.stack));
      } else if (thrown === null && apply(exec, /throw|reject/, [job.code]) === null) {
        // So the engine does when there is no memory even for its error.
        name = "InternalError";
        message = "out of memory";
      } else {
        name = "Thrown";
        message = shown(thrown, { left: MAX_MESSAGE });
      }
    } catch {
      // Telling of it threw: what was told so far stands.
    }
    return { name, message, line };
  };
  const errorText = (error) => {
    const { name, message, line } = told(error);
    return `${name}: ${message}${line ? ` (line ${line})` : ""}`;
  };

  // What the console shows of a value: text as it is, the rest as JSON.
  const shown = (value, budget) => {
    if (value === undefined) return "undefined";
    if (typeof value === "string") return cut(value, budget.left > 0 ? budget.left : 0);
    try {
      if (apply(tagOf, value, []) === "[object Error]") return errorText(value);
    } catch {
      return UNSERIALISABLE;
    }
    return json(value, budget);
  };

  let consoleText = "";
  let consoleLeft = 0;
  const say = (level, values) => {
    if (consoleLeft <= 0) {
      isCut = true;
      return;
    }
    const budget = { left: consoleLeft };
    let text = "";
    for (let i = 0; i < values.length && text.length <= consoleLeft; i++) {
      text += (i ? " " : "") + shown(values[i], budget);
      budget.left = consoleLeft - text.length;
    }
    text = cut(text, consoleLeft);
    consoleLeft -= text.length + LINE_COST;
    consoleText += `${consoleText && ","}{"level":"${level}","text":${quoted(text)}}`;
  };

  const install = (name, value) =>
    defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true });

  const counts = create(null);
  const starts = create(null);
  const label = (value) => (value === undefined ? "default" : asText(value));
  const elapsed = (name) => `${name}: ${name in starts ? now() - starts[name] : 0} ms`;
  install("console", {
    log: (...values) => say("log", values),
    info: (...values) => say("info", values),
    debug: (...values) => say("debug", values),
    warn: (...values) => say("warn", values),
    error: (...values) => say("error", values),
    trace: (...values) => say("debug", values),
    dir: (value) => say("log", [value]),
    table: (value) => say("log", [value]),
    group: (...values) => say("log", values),
    groupCollapsed: (...values) => say("log", values),
    groupEnd: () => undefined,
    clear: () => undefined,
    assert: (holds, ...values) => {
      if (!holds) say("error", values.length ? values : ["Assertion failed"]);
    },
    count: (value) => {
      const name = label(value);
      counts[name] = (counts[name] ?? 0) + 1;
      say("log", [`${name}: ${counts[name]}`]);
    },
    time: (value) => {
      starts[label(value)] = now();
    },
    timeLog: (value) => say("log", [elapsed(label(value))]),
    timeEnd: (value) => {
      say("log", [elapsed(label(value))]);
      delete starts[label(value)];
    },
  });

  // The engine's own reports what a callback throws outside of every limit; here it is a line of the console.
  install("queueMicrotask", (callback) => {
    if (typeof callback !== "function") throw new TypeFault("queueMicrotask takes a function");
    (async () => {
      await undefined;
      try {
        callback();
      } catch (thrown) {
        say("error", ["Uncaught", thrown]);
      }
    })();
  });

  const read = create(null);
  let hasListed = false;
  const written = create(null);
  let writtenLength = 0;
  const readFile = (name) => {
    const file = asText(name);
    if (file in written) return written[file];
    if (!(file in job.files)) {
      hasListed = true;
      const all = keys(job.files);
      let known = "";
      for (let i = 0; i < all.length && i < 20; i++) known += (i ? ", " : "") + all[i];
      throw new PlainError(`There is no file ${quoted(file)}. Files: ${known || "none"}${all.length > 20 ? ", …" : ""}`);
    }
    read[file] = true;
    return job.files[file];
  };
  install("readFile", readFile);
  install("writeFile", (name, text) => {
    if (typeof name !== "string" || name === "" || name.length > MAX_NAME) {
      throw new TypeFault(`writeFile(name, text) takes a name of 1 to ${MAX_NAME} characters`);
    }
    if (typeof text !== "string") throw new TypeFault("writeFile(name, text) takes a text; use JSON.stringify");
    const file = whole(name);
    const isNew = !(file in written);
    if (isNew && keys(written).length >= job.maxFiles) throw new RangeFault(`at most ${job.maxFiles} files can be written`);
    const length = writtenLength + text.length - (isNew ? 0 : written[file].length);
    if (length > job.maxWritten) throw new RangeFault(`at most ${job.maxWritten} characters can be written to files`);
    writtenLength = length;
    written[file] = whole(text);
  });

  const filesView = () => {
    const view = create(null);
    const names = keys(job.files);
    for (let i = 0; i < names.length; i++) {
      defineProperty(view, names[i], { __proto__: null, enumerable: true, get: () => readFile(names[i]) });
    }
    const refuse = () => {
      throw new TypeFault("files can only be read; use writeFile(name, text)");
    };
    const list = (target) => {
      hasListed = true;
      return allKeys(target);
    };
    return new ProxyOf(view, {
      __proto__: null,
      ownKeys: list,
      set: refuse,
      defineProperty: refuse,
      deleteProperty: refuse,
    });
  };

  const load = (text) => {
    job = parse(text);
    setPrototypeOf(job.files, null);
    consoleLeft = job.maxConsole;
    install("files", filesView());
  };

  // The prefix of the first line must not hide a "use strict" behind itself. There is one way only to read the comments
  // before it, so that a long row of slashes does not cost every other.
  const STRICT = /^(?:\s|\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*(['"])use strict\1/;
  const directive = (code) => (apply(exec, STRICT, [code]) === null ? "" : '"use strict";');

  const parses = (code) => {
    try {
      run(code);
      return true;
    } catch (error) {
      if (error instanceof SyntaxFault) return false;
      throw error;
    }
  };
  const asAsync = (code) => `(async () => {${directive(code)}${code}\n})`;

  // In a script, `await (x)` calls a function of that name and fails halfway. A static block forbids it as a name, so
  // a script that parses there has no such await outside of a function.
  const hasHiddenAwait = (code) =>
    apply(exec, /(?:^|[^.\w$])await\s*[([`+\-/]/, [code]) !== null &&
    !parses(`(() => class { static {${code}\n} })`) &&
    parses(asAsync(code));

  // A script gives the value of its last expression; what only parses inside of an async function, what it returns.
  const execute = (code) => {
    if (hasHiddenAwait(code)) return run(asAsync(code))();
    let hasStarted = false;
    defineProperty(globalThis, "__start__", {
      __proto__: null,
      configurable: true,
      value: () => {
        hasStarted = true;
        delete globalThis.__start__;
      },
    });
    try {
      return run(`${directive(code)}__start__();${code}`);
    } catch (error) {
      if (hasStarted || !(error instanceof SyntaxFault)) throw error;
      delete globalThis.__start__;
      return inBody(code, error);
    }
  };
  const inBody = (code, error) => {
    let body;
    try {
      body = run(asAsync(code));
    } catch (other) {
      // The reading that came further names the mistake.
      throw other instanceof SyntaxFault && lineIn(other.stack) > lineIn(error.stack) ? other : error;
    }
    return body();
  };

  const start = async () => {
    try {
      const value = await execute(job.code);
      result = json(value, { left: job.maxResult });
      state = "done";
    } catch (thrown) {
      const { name, message, line } = told(thrown);
      failure = `{"name":${quoted(name)},"message":${quoted(message)},"line":${line || "null"}}`;
      state = "failed";
    }
  };

  const names = (record) => {
    let text = "";
    const all = keys(record);
    for (let i = 0; i < all.length; i++) text += (i ? "," : "") + quoted(all[i]);
    return `[${text}]`;
  };
  const report = () =>
    whole(
      `{"state":"${state}","result":${result},"error":${failure},"console":[${consoleText}],` +
        `"is_truncated":${isCut},"read":${names(read)},"has_listed":${hasListed},"written":${names(written)}}`,
    );

  // What the engine throws when a limit is met becomes text outside of every limit, so no script may have a hand in it.
  defineProperty(InternalError.prototype, Symbol.toPrimitive, {
    __proto__: null,
    value() {
      return `InternalError: ${getOwnPropertyDescriptor(this, "message")?.value}`;
    },
  });
  defineProperty(PlainError, "prepareStackTrace", { __proto__: null, value: undefined, configurable: false });

  // They wait for other threads, and call back from outside of every limit.
  for (const name of ["SharedArrayBuffer", "Atomics", "FinalizationRegistry"]) delete globalThis[name];

  return (verb, text) => {
    switch (verb) {
      case "load":
        return load(text);
      case "start":
        start();
        return undefined;
      case "report":
        return report();
      default:
        return quoted(written[keys(written)[+text]]);
    }
  };
})()
