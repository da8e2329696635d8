// Events, aborting and exceptions: what nearly every other part builds on.

import { makeAbort } from "./abort.js";
import { makeEvent } from "./event.js";
import { makeExceptions } from "./exception.js";
import { makeKinds } from "./kinds.js";
import { makeReporting } from "./report.js";
import { makeTarget } from "./target.js";

export default function events(core) {
  const exceptions = makeExceptions(core);
  const event = makeEvent(core);
  const { makeException } = exceptions;
  let abort;
  const target = makeTarget(core, {
    eventInternals: event.eventInternals,
    isSignal: (value) => abort.isSignal(value),
    addAbortAlgorithm: (signal, algorithm) => abort.addAbortAlgorithm(signal, algorithm),
    makeException,
  });
  abort = makeAbort(core, target, { Event: event.Event, makeException });
  const kinds = makeKinds(core, event);
  core.native.brand(core.EventTarget.prototype); // as finish() does for the others
  core.setHandleReport(makeReporting(core, target, kinds));
  return {
    __proto__: null,
    ...exceptions,
    ...event,
    ...target,
    ...abort,
    ...kinds,
    createEvent: event.eventInternals.createEvent,
    EventTarget: core.EventTarget,
  };
}
