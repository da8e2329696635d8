// PerformanceEntry (Performance Timeline, 4.1, https://www.w3.org/TR/performance-timeline/), PerformanceMark and
// PerformanceMeasure (User Timing, 3.2 and 3.3).

export function makeEntries(core, token) {
  const { finish, illegalConstructor, need, now, requireArguments, SafeTypeError, toDictionary, toDOMString, toDouble } = core;
  let lastId = 0;
  let slotsOf; // what the program cannot replace, as it can a getter

  class PerformanceEntry {
    #slots;
    constructor(key = undefined, name = undefined, entryType = undefined, startTime = undefined, duration = undefined) {
      if (key !== token) throw illegalConstructor();
      this.#slots = { __proto__: null, id: ++lastId, name, entryType, startTime, duration };
    }
    get id() { return this.#slots.id; }
    get name() { return this.#slots.name; }
    get entryType() { return this.#slots.entryType; }
    get startTime() { return this.#slots.startTime; }
    get duration() { return this.#slots.duration; }
    get navigationId() { return this.#slots.id * 0; } // there is no navigation
    toJSON() {
      const { id, name, entryType, startTime, duration } = this.#slots;
      return { id, name, entryType, startTime, duration, navigationId: 0 };
    }
    static {
      slotsOf = (entry) => entry.#slots;
    }
  }
  finish(PerformanceEntry, { __proto__: null, name: "PerformanceEntry" });

  const anyValue = (value) => value;
  const markOptions = [["detail", anyValue], ["startTime", toDouble]];

  // User Timing, 3.2.1: a detail is cloned, absent and null are null.
  const cloneDetail = (detail) => (detail === undefined || detail === null ? null : need("clone").cloneWithTransfer(detail, []).value);

  class PerformanceMark extends PerformanceEntry {
    #detail;
    constructor(markName, options = undefined) {
      requireArguments("PerformanceMark", arguments.length, 1);
      const name = toDOMString(markName);
      const { detail, startTime } = toDictionary(options, markOptions, "The options");
      if (startTime < 0) throw new SafeTypeError("'startTime' must not be negative.");
      super(token, name, "mark", startTime ?? now(), 0);
      this.#detail = cloneDetail(detail);
    }
    get detail() { return this.#detail; }
  }
  finish(PerformanceMark, { __proto__: null, name: "PerformanceMark" });

  class PerformanceMeasure extends PerformanceEntry {
    #detail;
    constructor(key = undefined, name = undefined, startTime = undefined, duration = undefined, detail = undefined) {
      if (key !== token) throw illegalConstructor();
      super(token, name, "measure", startTime, duration);
      this.#detail = detail;
    }
    get detail() { return this.#detail; }
  }
  finish(PerformanceMeasure, { __proto__: null, name: "PerformanceMeasure" });

  /** Performance Timeline, 5.4 "filter buffer by name and type" of two lists: in the order of start times. */
  function select(first, second, name, type) {
    const found = [];
    const take = (entries) => {
      for (let i = 0; i < entries.length; i++) {
        const slots = slotsOf(entries[i]);
        if (name !== undefined && slots.name !== name) continue;
        if (type !== undefined && slots.entryType !== type) continue;
        core.define(found, found.length, entries[i]);
      }
    };
    take(first);
    take(second);
    return core.arraySort(found, (a, b) => slotsOf(a).startTime - slotsOf(b).startTime);
  }

  return {
    __proto__: null,
    PerformanceEntry, PerformanceMark, PerformanceMeasure, cloneDetail, select, slotsOf,
    newMeasure: (name, start, duration, detail) => new PerformanceMeasure(token, name, start, duration, detail),
  };
}
