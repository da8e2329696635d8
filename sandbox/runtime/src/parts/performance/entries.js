// PerformanceEntry (Performance Timeline, 4.1, https://www.w3.org/TR/performance-timeline/), PerformanceMark and
// PerformanceMeasure (User Timing, 3.2 and 3.3).

export function makeEntries(core, token) {
  const { finish, illegalConstructor, need, now, requireArguments, SafeTypeError, toDictionary, toDOMString, toDouble } = core;
  let lastId = 0;

  class PerformanceEntry {
    #id = ++lastId;
    #name;
    #entryType;
    #startTime;
    #duration;
    constructor() {
      if (arguments[0] !== token) throw illegalConstructor();
      this.#name = arguments[1];
      this.#entryType = arguments[2];
      this.#startTime = arguments[3];
      this.#duration = arguments[4];
    }
    get id() { return this.#id; }
    get name() { return this.#name; }
    get entryType() { return this.#entryType; }
    get startTime() { return this.#startTime; }
    get duration() { return this.#duration; }
    get navigationId() { return this.#id * 0; } // there is no navigation
    toJSON() {
      return {
        id: this.#id, name: this.#name, entryType: this.#entryType, startTime: this.#startTime, duration: this.#duration, navigationId: 0,
      };
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
    constructor() {
      if (arguments[0] !== token) throw illegalConstructor();
      super(token, arguments[1], "measure", arguments[2], arguments[3]);
      this.#detail = arguments[4];
    }
    get detail() { return this.#detail; }
  }
  finish(PerformanceMeasure, { __proto__: null, name: "PerformanceMeasure" });

  /** Performance Timeline, 5.4 "filter buffer by name and type": in the order of start times. */
  function select(list, name, type) {
    const found = [];
    for (let i = 0; i < list.length; i++) {
      if (name !== undefined && list[i].name !== name) continue;
      if (type !== undefined && list[i].entryType !== type) continue;
      found[found.length] = list[i];
    }
    return found.sort((a, b) => a.startTime - b.startTime);
  }

  return {
    __proto__: null,
    PerformanceEntry, PerformanceMark, PerformanceMeasure, cloneDetail, select,
    newMeasure: (name, start, duration, detail) => new PerformanceMeasure(token, name, start, duration, detail),
  };
}
