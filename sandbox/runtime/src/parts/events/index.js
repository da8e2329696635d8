// Events and their targets: what nearly every other part builds on.

import { makeEvent } from "./event.js";
import { makeReporting } from "./report.js";
import { makeTarget } from "./target.js";

export default function events(core) {
  const event = makeEvent(core);
  const target = makeTarget(core, event);
  core.setHandleReport(makeReporting(core, target));
  return { __proto__: null, ...event, ...target, createEvent: event.eventInternals.createEvent };
}
