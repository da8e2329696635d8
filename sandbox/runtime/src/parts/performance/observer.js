// PerformanceObserver (Performance Timeline, 4.2, https://www.w3.org/TR/performance-timeline/#the-performanceobserver-interface).

const supported = Object.freeze(["mark", "measure"]);

export function makeObserver(core, { select }, token) {
  const { finish, illegalConstructor, makeException, requireArguments, SafeTypeError, toBoolean, toCallback, toDictionary, toDOMString, toSequence } = core;

  const observers = new Set();
  let scheduled = false;
  let queueFor, deliverTo;
  let timeline; // gives the entries that are there already

  class PerformanceObserverEntryList {
    #list;
    constructor() {
      if (arguments[0] !== token) throw illegalConstructor();
      this.#list = arguments[1];
    }
    getEntries() { return select(this.#list); }
    getEntriesByType(type) {
      const list = this.#list;
      requireArguments("getEntriesByType' on 'PerformanceObserverEntryList", arguments.length, 1);
      return select(list, undefined, toDOMString(type));
    }
    getEntriesByName(name, type = undefined) {
      const list = this.#list;
      requireArguments("getEntriesByName' on 'PerformanceObserverEntryList", arguments.length, 1);
      return select(list, toDOMString(name), type === undefined ? undefined : toDOMString(type));
    }
  }
  finish(PerformanceObserverEntryList, { __proto__: null, name: "PerformanceObserverEntryList" });

  const observeOptions = [
    ["buffered", toBoolean], ["entryTypes", (value, what) => toSequence(value, toDOMString, what)], ["type", toDOMString],
  ];

  class PerformanceObserver {
    #callback;
    #mode = undefined; // "single" or "multiple" once it observes
    #types = [];
    #buffer = [];
    constructor(callback) {
      requireArguments("PerformanceObserver", arguments.length, 1);
      this.#callback = toCallback(callback, "The callback");
    }
    // 4.2.1
    observe(options = undefined) {
      const mode = this.#mode;
      const { buffered, entryTypes, type } = toDictionary(options, observeOptions, "The options");
      if (entryTypes === undefined && type === undefined) throw new SafeTypeError("The options lack both 'entryTypes' and 'type'.");
      if (entryTypes !== undefined && (type !== undefined || buffered !== undefined)) {
        throw new SafeTypeError("'entryTypes' cannot be given together with other options.");
      }
      const wanted = type === undefined ? "multiple" : "single";
      if (mode !== undefined && mode !== wanted) {
        throw makeException("An observer of 'type' cannot observe 'entryTypes', and the reverse.", "InvalidModificationError");
      }
      this.#mode = wanted;
      const types = (entryTypes ?? [type]).filter((name) => supported.includes(name));
      if (types.length === 0) return;
      this.#types = wanted === "multiple" ? types : [...new Set([...this.#types, ...types])];
      observers.add(this);
      if (buffered && wanted === "single") for (const entry of timeline.buffered(type)) this.#add(entry);
    }
    disconnect() {
      this.#types = [];
      this.#buffer = [];
      this.#mode = undefined;
      observers.delete(this);
    }
    takeRecords() {
      const list = this.#buffer;
      this.#buffer = [];
      return list;
    }
    #add(entry) {
      this.#buffer[this.#buffer.length] = entry;
      if (!scheduled) core.startTimer(deliver, 0);
      scheduled = true;
    }
    #deliver() {
      const list = this.#buffer;
      if (list.length === 0) return;
      this.#buffer = [];
      try {
        core.apply(this.#callback, this, [new PerformanceObserverEntryList(token, list), this, { droppedEntriesCount: 0 }]);
      } catch (error) {
        core.report("uncaught", error);
      }
    }
    static get supportedEntryTypes() { return supported; }
    static {
      queueFor = (observer, entry) => {
        if (observer.#types.includes(entry.entryType)) observer.#add(entry);
      };
      deliverTo = (observer) => observer.#deliver();
    }
  }
  finish(PerformanceObserver, { __proto__: null, name: "PerformanceObserver" });
  core.defineProperty(PerformanceObserver, "supportedEntryTypes", { __proto__: null, enumerable: true });

  function deliver() {
    scheduled = false;
    for (const observer of [...observers]) deliverTo(observer);
  }

  return {
    __proto__: null,
    PerformanceObserver, PerformanceObserverEntryList,
    queue(entry) {
      for (const observer of observers) queueFor(observer, entry);
    },
    attach: (entries) => { timeline = entries; },
  };
}
