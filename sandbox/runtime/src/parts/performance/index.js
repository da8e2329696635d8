// Performance (High Resolution Time, 7, https://www.w3.org/TR/hr-time-3/#sec-performance) with marks and measures (User
// Timing, https://www.w3.org/TR/user-timing/). The clock's step is in clock.js.

import { makeEntries } from "./entries.js";
import { makeObserver } from "./observer.js";

export default function performance(core) {
  const {
    EventTarget, finish, floor, illegalConstructor, isObject, list, makeException, native, need, now, push, requireArguments, SafeTypeError,
    toDictionary, toDOMString, toDouble,
  } = core;
  const token = {};
  const entries = makeEntries(core, token);
  const { PerformanceMark, newMeasure } = entries;
  const observer = makeObserver(core, entries, token);

  const maxEntries = 10_000; // of each kind; as with other buffers, what comes after is not kept
  let marks = list();
  let measures = list();
  const keep = (kept, entry) => {
    if (kept.length < maxEntries) push(kept, entry);
    observer.queue(entry);
  };
  // Computed late: the clock of the epoch may have been set since, but a program is short.
  const origin = floor((native.epochNow() - now()) * 10) / 10;

  const anyValue = (value) => value;
  const toTime = (value, what) => (typeof value === "number" ? toDouble(value, what) : toDOMString(value));
  const measureOptions = [["detail", anyValue], ["duration", toDouble], ["end", toTime], ["start", toTime]];

  // User Timing, 3.1.3: options are given when a member of the dictionary is.
  function toMeasureOptions(value) {
    if (value !== undefined && value !== null && !isObject(value)) return toDOMString(value);
    return toDictionary(value, measureOptions, "The options");
  }
  const isGiven = ({ detail, duration, end, start }) => detail !== undefined || duration !== undefined || end !== undefined || start !== undefined;

  // 3.3 "convert a mark to a timestamp".
  function timeOf(mark) {
    if (typeof mark === "number") {
      if (mark < 0) throw new SafeTypeError("A time must not be negative.");
      return mark;
    }
    for (let i = marks.length - 1; i >= 0; i--) if (entries.slotsOf(marks[i]).name === mark) return entries.slotsOf(marks[i]).startTime;
    throw makeException(`There is no mark '${mark}'.`, "SyntaxError");
  }

  class Performance extends EventTarget {
    #brand = true;
    constructor(key = undefined) {
      if (key !== token) throw illegalConstructor();
      super();
    }
    now() { this.#brand; return now(); }
    get timeOrigin() { this.#brand; return origin; }
    toJSON() { this.#brand; return { timeOrigin: origin }; }
    mark(markName, markOptions = undefined) {
      this.#brand;
      requireArguments("mark' on 'Performance", arguments.length, 1);
      const mark = new PerformanceMark(markName, markOptions);
      keep(marks, mark);
      return mark;
    }
    clearMarks(markName = undefined) {
      this.#brand;
      marks = markName === undefined ? list() : without(marks, toDOMString(markName));
    }
    measure(measureName, startOrMeasureOptions = undefined, endMark = undefined) {
      this.#brand;
      requireArguments("measure' on 'Performance", arguments.length, 1);
      const name = toDOMString(measureName);
      const from = toMeasureOptions(startOrMeasureOptions);
      const until = endMark === undefined ? undefined : toDOMString(endMark);
      const options = typeof from === "object" && isGiven(from) ? from : undefined;
      if (options !== undefined) checkOptions(options, until);
      const end = endOf(options, until);
      const start = startOf(options, typeof from === "string" ? from : undefined);
      const measure = newMeasure(name, start, end - start, entries.cloneDetail(options?.detail));
      keep(measures, measure);
      return measure;
    }
    clearMeasures(measureName = undefined) {
      this.#brand;
      measures = measureName === undefined ? list() : without(measures, toDOMString(measureName));
    }
    getEntries() {
      this.#brand;
      return entries.select(marks, measures);
    }
    getEntriesByType(type) {
      this.#brand;
      requireArguments("getEntriesByType' on 'Performance", arguments.length, 1);
      return entries.select(marks, measures, undefined, toDOMString(type));
    }
    getEntriesByName(name, type = undefined) {
      this.#brand;
      requireArguments("getEntriesByName' on 'Performance", arguments.length, 1);
      return entries.select(marks, measures, toDOMString(name), type === undefined ? undefined : toDOMString(type));
    }
  }
  finish(Performance, { __proto__: null, name: "Performance" });

  function without(kept, name) {
    const rest = list();
    for (let i = 0; i < kept.length; i++) if (entries.slotsOf(kept[i]).name !== name) push(rest, kept[i]);
    return rest;
  }

  function checkOptions(options, endMark) {
    if (endMark !== undefined) throw new SafeTypeError("An end mark cannot be given together with options.");
    if (options.start === undefined && options.end === undefined) throw new SafeTypeError("The options lack both 'start' and 'end'.");
    if (options.start !== undefined && options.duration !== undefined && options.end !== undefined) {
      throw new SafeTypeError("The options have all of 'start', 'duration' and 'end'.");
    }
  }

  function endOf(options, endMark) {
    if (endMark !== undefined) return timeOf(endMark);
    if (options?.end !== undefined) return timeOf(options.end);
    if (options?.start !== undefined && options.duration !== undefined) return timeOf(options.start) + options.duration;
    return now();
  }

  function startOf(options, startMark) {
    if (startMark !== undefined) return timeOf(startMark);
    if (options?.start !== undefined) return timeOf(options.start);
    if (options?.duration !== undefined) return timeOf(options.end) - options.duration;
    return 0;
  }

  const instance = new Performance(token);
  observer.attach({ __proto__: null, buffered: (type) => (type === "mark" ? marks : measures) });

  return {
    __proto__: null,
    Performance,
    performance: instance,
    PerformanceEntry: entries.PerformanceEntry,
    PerformanceMark,
    PerformanceMeasure: entries.PerformanceMeasure,
    PerformanceObserver: observer.PerformanceObserver,
    PerformanceObserverEntryList: observer.PerformanceObserverEntryList,
  };
}
