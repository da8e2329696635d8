// The library that every program finds in its global. It runs once, in the empty global from which the startup
// snapshot is made; what it keeps must survive that: no Intl objects, no WebAssembly, no stack texts.

import { intrinsics } from "executor:intrinsics";

import { makeClock } from "./clock.js";
import { installConsole } from "./console.js";
import { installEventTarget } from "./event-target.js";
import { checkGlobal, defineAttribute } from "./global.js";
import { installLanguage } from "./language.js";
import { installMicrotask } from "./microtask.js";
import { lazyNames, parts } from "./parts/index.js";
import { global, parseJSON } from "./primordials.js";
import { makeProviders } from "./providers.js";
import { stackOf } from "./reflect.js";
import { makeReport } from "./report.js";
import { settle } from "./settle.js";
import { installStreaming } from "./streaming.js";
import { installTimers } from "./timers.js";
import { makeWake } from "./wake.js";
import { conversions, makeInterfaces } from "./webidl.js";

// The host's functions without Object.prototype behind them: a name looked up in vain would reach the guest. Until begin
// is called no execution is there to act for, and what acts does nothing: warm.js runs at that time.
function detach(host) {
  return { __proto__: null, ...host, call() {}, log() {}, timerStart: () => 1, timerStop() {} };
}

function attach(native, { call, log, timerStart, timerStop }) {
  native.call = call;
  native.log = log;
  native.timerStart = timerStart;
  native.timerStop = timerStop;
}

/** Defines the globals over the host's functions and returns what the event loop calls. The guest sees neither. */
export default function install(host) {
  const native = detach(host);
  const { defineProvider, nameOf } = makeProviders(native);
  const clock = makeClock(native);
  const core = {
    __proto__: null, ...intrinsics, ...conversions, ...makeInterfaces(native), checkGlobal, stackOf, native, nameOf, now: clock.now,
    inspect: (value) => core.need("console").inspect(value),
    makeException: (message, name) => core.need("exception").makeException(message, name),
  };
  const { need, wake, loaded } = makeWake(native, core);
  core.need = need;
  core.loaded = loaded;
  core.parts = parts;
  const { report, setHandleReport } = makeReport(core);
  core.report = report;
  core.setHandleReport = setHandleReport;

  defineAttribute("self", () => global);
  installConsole(core);
  installMicrotask(report);
  const { fire, startTimer, stopTimer } = installTimers(native, report);
  core.startTimer = startTimer;
  core.stopTimer = stopTimer;
  core.EventTarget = installEventTarget(core);
  installLanguage(core);
  for (const part in parts) for (const name of parts[part].attributes ?? []) defineAttribute(name, () => wake(name), parts[part].readonly ? null : undefined);

  // Runs before any guest code.
  function begin(configJSON) {
    attach(native, host);
    installStreaming(core);
    clock.start();
    const { providers, network, base } = parseJSON(configJSON);
    core.network = network;
    core.base = base;
    for (let i = 0; i < providers.length; i++) defineProvider(providers[i]);
  }

  return {
    __proto__: null,
    begin,
    fire,
    report,
    settle,
    wake,
    lazy: lazyNames(),
    inspect: core.inspect,
    // For the value codec.
    describe: (object) => need("values").describe(object),
    revive: (tag, body) => need("values").revive(tag, body),
    // For handles of a retained execution.
    open: (object) => need("handles").open(object),
    pull: (iterator, name, args) => need("handles").pull(iterator, name, args),
  };
}
