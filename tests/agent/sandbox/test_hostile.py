"""Scripts that mean harm, each in a real child: what they may do ends within the limits, and is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tests.adapters.sandbox import Ending, Run, Sandbox

# A script that the engine could not stop would be killed at the end of these seconds, and say nothing.
PATIENCE_S = 30.0


async def outcomes(scripts: Mapping[str, str], *, cpu_s: float = 0.1) -> dict[str, Run]:
    """Return what comes of the scripts, each in a child of its own, some of them side by side."""
    sandbox = Sandbox(cpu_s=cpu_s, wall_s=PATIENCE_S)
    runs = await asyncio.gather(*(sandbox.run(code, {"secret.txt": "kept"}) for code in scripts.values()))
    return dict(zip(scripts, runs, strict=True))


def endings(runs: Mapping[str, Run]) -> dict[str, Ending | None]:
    """Return how each ended, by the child's own account."""
    return {name: run.error.ending if run.error else None for name, run in runs.items() if run.protection is not None}


LOOPS = {
    "plain": "while (true) {}",
    "for": "for (;;);",
    "counting": "let i = 0; while (i >= 0) i++;",
    "catch": "while (true) { try { while (true); } catch {} }",
    "finally": "function f() { try { while (true); } finally { while (true); } } f()",
    "nested finally": "for (;;) { try { for (;;) { try { for (;;); } finally { continue; } } } finally { continue; } }",
    "generator": "function* g() { while (true) yield 1; } for (const x of g());",
    "labelled": "a: while (true) { while (true) continue a; }",
    "recursion that catches": "function f() { try { f(); } finally { f(); } } f()",
    "proxy": "const p = new Proxy({}, { has() { while (true); } }); 'x' in p",
    "sort": "Array(2).fill(0).map((_, i) => i).sort(() => { while (true); })",
    "replace": "'aaaa'.replace(/a/g, () => { while (true); })",
    "date": "new Date({ valueOf() { while (true); } })",
    "eval": "eval('while(true);')",
    "function constructor": "Function('while(true);')()",
    "async": "await 1; while (true);",
    "microtask": "queueMicrotask(() => { while (true); }); 1",
    "then": "Promise.resolve().then(() => { while (true); }); 1",
}


async def test_a_loop_is_stopped_whatever_it_hides_in() -> None:
    runs = await outcomes(LOOPS)
    assert endings(runs) == dict.fromkeys(LOOPS, Ending.TOO_SLOW)


async def test_a_stopped_script_is_told_its_limit_and_what_it_logged() -> None:
    (run,) = (await outcomes({"": "console.log('so far'); while (true);"}, cpu_s=0.25)).values()
    assert run.error is not None
    assert run.error.message == "the script was stopped: it may compute for 0.25 s, 30 s in all"
    assert [line.text for line in run.console] == ["so far"]


NATIVE = {
    "regex of nested stars": "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "regex of alternatives": "/^(a|aa|a?)+$/.test('a'.repeat(60) + 'b')",
    "regex looking behind": "/(?<=^(a+)+)b/.test('a'.repeat(40) + 'c' + 'a'.repeat(40) + 'b')",
    "indexOf over nothing": "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)",
    "includes over nothing": "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1)",
}


async def test_a_loop_inside_of_the_engine_is_stopped() -> None:
    runs = await outcomes(NATIVE)
    assert endings(runs) == dict.fromkeys(NATIVE, Ending.TOO_SLOW)


async def test_a_loop_that_the_engine_cannot_stop_is_killed() -> None:
    run = await Sandbox(wall_s=0.5).run("Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", {})
    assert run.error is not None
    assert (run.error.ending, run.protection) == (Ending.TOO_SLOW, None)


MEMORY = {
    "array": "const a = []; while (true) a.push(new Array(1000).fill(1));",
    "nested arrays": "let a = []; while (true) a = [a, a.concat(a)];",
    "buffers": "const all = []; while (true) all.push(new ArrayBuffer(1 << 20));",
    "one buffer": "new Uint8Array(1 << 30)",
    "one array": "new Array(2 ** 31).fill(0)",
    "string": "'x'.repeat(1 << 29)",
    "doubling string": "let s = 'xyz'; while (true) { s += s; s.charCodeAt(0); }",
    "padding": "'x'.padEnd(2 ** 29, 'y')",
    "map": "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i, text: 'x' + i });",
    "closures": "const all = []; while (true) { const big = new Array(9999).fill(0); all.push(() => big); }",
    "regexp source": "new RegExp('a'.repeat(1 << 24))",
    "json": "JSON.parse('[' + '[1],'.repeat(1 << 22) + '1]')",
    "console": "const a = []; while (true) { a.push('y'.repeat(1 << 16)); console.log(a.at(-1)); }",
}


async def test_a_memory_bomb_meets_the_limit_of_the_heap() -> None:
    runs = await outcomes(MEMORY, cpu_s=10.0)
    assert endings(runs) == dict.fromkeys(MEMORY, Ending.TOO_MUCH_MEMORY)


async def test_one_that_survives_its_memory_bomb_still_answers() -> None:
    code = "let a = []; try { while (true) a.push(new Array(1000).fill(1)); } catch { a = null; } 'alive'"
    (run,) = (await outcomes({"": code}, cpu_s=10.0)).values()
    assert (run.result, run.error) == ("alive", None)


GROWING = {
    "recursion": "function f() { f(); } f()",
    "mutual": "const f = () => g(), g = () => f(); f()",
    "getter": "const o = { get x() { return this.x; } }; o.x",
    "toString": "const o = { toString() { return '' + this; } }; '' + o",
    "proxy of itself": "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.x",
    "deep source": "eval('('.repeat(50000) + ')'.repeat(50000))",
    "deep JSON text": "JSON.parse('['.repeat(100000) + ']'.repeat(100000))",
    "deep JSON value": "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)",
    "deep regexp": "new RegExp('('.repeat(100000) + ')'.repeat(100000))",
    "spread": "Math.max(...new Array(500000).fill(1))",
    "apply": "Math.max.apply(null, { length: 1e8 })",
    "bigint": "let n = 2n; while (true) n = n * n;",
}


async def test_what_grows_without_end_is_an_error_of_the_script() -> None:
    runs = await outcomes(GROWING, cpu_s=10.0)
    assert endings(runs) == dict.fromkeys(GROWING, Ending.THROWN)


TELLING = {
    "message": "throw { get message() { while (true); } }",
    "message of an error": "throw Object.defineProperty(new Error(), 'message', { get() { while (true); } })",
    "name": "throw Object.defineProperty(new Error('x'), 'name', { get() { while (true); } })",
    "stack": "throw Object.defineProperty(new Error('x'), 'stack', { get() { while (true); } })",
    "toString of what is logged": "console.log(Object.assign(new Error(), { name: { toString() { while (true); } } }))",
    "tag": "throw { get [Symbol.toStringTag]() { while (true); } }",
    "toJSON": "({ toJSON() { while (true); } })",
    "getter of the result": "({ get x() { while (true); } })",
    "keys of the result": "new Proxy({}, { ownKeys() { while (true); } })",
    "tag of the result": "({ get [Symbol.toStringTag]() { while (true); } })",
    "then of the result": "({ get then() { while (true); } })",
    "thenable": "({ then(done) { while (true); } })",
    "rejected": "Promise.reject({ toString() { while (true); }, get message() { while (true); } })",
    "console": "console.log({ get x() { while (true); } })",
    "the engine's own error": "InternalError.prototype.toString = () => { while (true); };"
    "Error.prototype.toString = () => { while (true); }; while (true);",
    "the engine's own error as a primitive": "for (const one of [InternalError, Error, Object]) {"
    "one.prototype[Symbol.toPrimitive] = () => { while (true); } } while (true);",
}


async def test_what_is_told_of_a_script_is_told_within_its_limits() -> None:
    runs = await outcomes(TELLING)
    told = endings(runs)
    assert told.keys() == TELLING.keys()
    assert {name for name, ending in told.items() if ending is not Ending.TOO_SLOW} == set()


async def test_promises_are_counted() -> None:
    scripts = {
        "chain": "function f() { return Promise.resolve().then(f); } f()",
        "async recursion": "async function f() { await 1; return f(); } f(); 1",
        "microtasks": "(function f() { queueMicrotask(f); })(); 1",
    }
    runs = await outcomes(scripts, cpu_s=10.0)
    told = endings(runs)
    assert told.keys() == scripts.keys()
    assert set(told.values()) <= {Ending.TOO_MANY_JOBS, Ending.TOO_SLOW, Ending.TOO_MUCH_MEMORY}


async def test_a_promise_that_never_settles_is_told() -> None:
    scripts = {
        "result": "new Promise(() => {})",
        "await": "await new Promise(() => {}); 1",
        "thenable": "({ then() {} })",
        "race of none": "Promise.race([])",
    }
    assert endings(await outcomes(scripts)) == dict.fromkeys(scripts, Ending.NEVER_SETTLED)


async def test_there_is_no_way_out_of_the_engine() -> None:
    scripts = {
        "import of fs": "const fs = await import('fs'); fs.readFileSync('/etc/passwd')",
        "import of std": "const std = await import('std'); std.loadFile('/etc/passwd')",
        "import of os": "const os = await import('os'); os.exec(['id'])",
        "import of a path": "await import('/etc/passwd')",
        "import of data": "await import('data:text/javascript,export default 1')",
        "static import": "import * as std from 'std'; std.exit(1)",
        "require": "require('fs')",
        "process": "process.exit(1)",
        "constructor": "this.constructor.constructor('return process')().exit()",
        "function constructor": "(() => {}).constructor('return require')()('fs')",
        "async function constructor": "await (async () => {}).constructor('return std.exit(1)')()",
        "generator constructor": "(function* () {}).constructor('yield os.open(1)')().next()",
        "fetch": "await fetch('http://127.0.0.1/')",
        "file out of the workspace": "readFile('/etc/passwd')",
        "file by a walk": "readFile('../../etc/passwd')",
        "print": "print(1)",
        "timers": "setTimeout(() => {}, 1)",
    }
    runs = await outcomes(scripts)
    assert endings(runs) == dict.fromkeys(scripts, Ending.THROWN)


async def test_what_waits_or_calls_back_from_outside_is_gone() -> None:
    names = "std os bjson scriptArgs process require Deno Bun fetch XMLHttpRequest WebAssembly Worker SharedArrayBuffer"
    names += " Atomics FinalizationRegistry setTimeout setInterval print load gc __start__ __loadScript"
    code = f"{names.split()!r}.filter((name) => typeof globalThis[name] !== 'undefined')"
    (run,) = (await outcomes({"": code})).values()
    assert run.result == []


async def test_a_reply_cannot_be_forged() -> None:
    reply = '{"state":"done","result":"forged","error":null,"console":[],"written":[]}'
    scripts = {
        "JSON": f"JSON.stringify = () => '{reply}'; JSON.parse = () => ({{}}); 1",
        "no JSON": "JSON = null; Promise = null; Object = null; String = null; Reflect = null; 1",
        "array": "Array.prototype.join = Array.prototype.push = Array.prototype.map = () => 'forged';"
        "Array.prototype[Symbol.iterator] = function* () { yield 'forged'; }; 1",
        "setters": "for (const key of [0, 1, 'left', 'result', 'name', 'value', 'get'])"
        "Object.prototype.__defineGetter__(key, () => 'forged'); 1",
        "call": "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'forged'; 1",
        "string": "String.prototype.toJSON = Number.prototype.toJSON = Object.prototype.toJSON = () => 'forged'; 1",
        "then": "Promise.prototype.then = (f) => f('forged'); Promise.resolve = () => 'forged'; 1",
        "species": "Object.defineProperty(Promise, Symbol.species, { get() { return null; } }); 1",
        "regexp": "RegExp.prototype.exec = () => ['forged', '7']; 1",
        "frozen": "Object.freeze(globalThis); Object.freeze(Object.prototype); Object.freeze(Array.prototype); 1",
        "emptied": "for (const key of Reflect.ownKeys(globalThis)) { try { delete globalThis[key]; } catch {} } 1",
        "replaced console": "console = null; files = null; readFile = null; writeFile = null; 1",
        "primitive": "Number.prototype.toString = Number.prototype.valueOf = () => 'forged'; 1",
        "closing": "1 }) ( } /* ' \\\" ` */",
    }
    runs = await outcomes(scripts)
    closing = runs.pop("closing")
    assert closing.error is not None
    assert closing.error.name == "SyntaxError"
    assert {name: (run.result, run.error) for name, run in runs.items()} == dict.fromkeys(runs, (1, None))


async def test_errors_are_told_although_their_makers_were_changed() -> None:
    scripts = {
        "iterator": "Array.prototype[Symbol.iterator] = null; null.x",
        "string": "String = null; String.prototype; null.x",
        "regexp": "RegExp.prototype.exec = () => { throw 1; }; null.x",
        "prepareStackTrace": "Error.prepareStackTrace = () => { while (true); }; null.x",
        "frozen": "Object.freeze(Error.prototype); Object.freeze(TypeError.prototype); null.x",
        "hasInstance": "Object.defineProperty(SyntaxError, Symbol.hasInstance, { value: () => true }); null.x",
    }
    runs = await outcomes(scripts)
    assert {name: run.error.name for name, run in runs.items() if run.error} == dict.fromkeys(scripts, "TypeError")


async def test_the_shims_cannot_be_turned_against_the_run() -> None:
    scripts = {
        "polluted": "Object.prototype.get = Object.prototype.set = () => 'forged'; files['secret.txt']",
        "own keys": "Object.prototype.ownKeys = () => ['forged']; readFile('secret.txt')",
        "proto": "writeFile('__proto__', 'x'); writeFile('constructor', 'y'); readFile('secret.txt')",
        "assigned": "try { files['secret.txt'] = 'changed'; } catch {} readFile('secret.txt')",
        "deleted": "try { delete files['secret.txt']; } catch {} readFile('secret.txt')",
        "host": "try { readFile.caller; } catch {} try { console.log.arguments; } catch {} files['secret.txt']",
    }
    runs = await outcomes(scripts)
    assert {name: run.result for name, run in runs.items()} == dict.fromkeys(scripts, "kept")


async def test_what_is_too_long_is_cut() -> None:
    scripts = {
        "result": "'x'.repeat(20 << 20)",
        "wide": "Array.from({ length: 200000 }, (_, i) => i)",
        "names": "Object.fromEntries(Array.from({ length: 9999 }, (_, i) => ['name'.repeat(50) + i, i]))",
        "deep": "let a = 1; for (let i = 0; i < 5000; i++) a = { a }; a",
        "console": "for (let i = 0; i < 50000; i++) console.log('line ' + i)",
        "empty lines": "for (let i = 0; i < 50000; i++) console.log('')",
        "one line": "console.log('y'.repeat(1 << 20), 'z'.repeat(1 << 20))",
        "message": "throw new Error('m'.repeat(1 << 20))",
        "thrown": "throw 'm'.repeat(1 << 20)",
    }
    runs = await outcomes(scripts, cpu_s=10.0)
    assert {name for name, run in runs.items() if not run.is_truncated} == set()
    assert all(len(run.model_dump_json()) < 400_000 for run in runs.values())
    assert 19_950 < sum(len(line.text) + 10 for line in runs["console"].console) < 20_020


async def test_a_script_cannot_write_without_end() -> None:
    scripts = {
        "many": "for (let i = 0; ; i++) writeFile('f' + i, '')",
        "large": "writeFile('a', 'x'.repeat(4000001))",
        "growing": "for (let i = 0; ; i++) writeFile('f' + i, 'x'.repeat(1000000))",
        "long name": "writeFile('n'.repeat(201), '')",
        "no name": "writeFile('', '')",
        "no text": "writeFile('a', { toString() { return 'x'; } })",
    }
    runs = await outcomes(scripts, cpu_s=10.0)
    assert endings(runs) == dict.fromkeys(scripts, Ending.THROWN)
    assert all(run.written == {} for run in runs.values())


async def test_half_characters_and_nothings_come_back_whole() -> None:
    scripts = {
        "half": r"console.log('\ud800'); writeFile('h\udc00', 'a\ud800b'); ['\udfff', { '\ud800': 1 }]",
        "nul": r"writeFile('n', 'a\0b'); 'a\0b'",
        "lines": r"'\u2028\u2029'",
    }
    runs = await outcomes(scripts)
    assert runs["half"].result == ["\ufffd", {"\ufffd": 1}]
    assert runs["half"].written == {"h\ufffd": "a\ufffdb"}
    assert runs["nul"].result == "a\0b"
    assert runs["nul"].written == {"n": "a\0b"}
    assert runs["lines"].result == "\u2028\u2029"
