// PerformanceObserver (Performance Timeline, 4.2, https://www.w3.org/TR/performance-timeline/#the-performanceobserver-interface).

export function makeObserver(core, { select, slotsOf }, token) {
  const { finish, illegalConstructor, makeException, requireArguments, SafeTypeError, toBoolean, toCallback, toDictionary, toDOMString, toSequence } = core;

  const supported = core.freeze(["mark", "measure"]);
  const isSupported = (type) => type === "mark" || type === "measure";
  const observers = new core.SafeSet();
  let scheduled = false;
  let queueFor, deliverTo;
  const none = core.list();
  let timeline; // gives the entries that are there already

  class PerformanceObserverEntryList {
    #list;
    constructor(key = undefined, list = undefined) {
      if (key !== token) throw illegalConstructor();
      this.#list = list;
    }
    getEntries() { return select(this.#list, none); }
    getEntriesByType(type) {
      const list = this.#list;
      requireArguments("getEntriesByType' on 'PerformanceObserverEntryList", arguments.length, 1);
      return select(list, none, undefined, toDOMString(type));
    }
    getEntriesByName(name, type = undefined) {
      const list = this.#list;
      requireArguments("getEntriesByName' on 'PerformanceObserverEntryList", arguments.length, 1);
      return select(list, none, toDOMString(name), type === undefined ? undefined : toDOMString(type));
    }
  }
  finish(PerformanceObserverEntryList, { __proto__: null, name: "PerformanceObserverEntryList" });

  function includes(names, name) {
    for (let i = 0; i < names.length; i++) if (names[i] === name) return true;
    return false;
  }

  const observeOptions = [
    ["buffered", toBoolean], ["entryTypes", (value, what) => toSequence(value, toDOMString, what)], ["type", toDOMString],
  ];

  class PerformanceObserver {
    #callback;
    #mode = undefined; // "single" or "multiple" once it observes
    #types = core.list();
    #buffer = core.list();
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
      const types = core.list();
      const add = (name) => {
        if (isSupported(name) && !includes(types, name)) core.push(types, name);
      };
      if (entryTypes === undefined) add(type);
      else for (let i = 0; i < entryTypes.length; i++) add(entryTypes[i]);
      if (types.length === 0) return;
      if (wanted === "single") for (let i = 0; i < this.#types.length; i++) add(this.#types[i]);
      this.#types = types;
      core.setAdd(observers, this);
      if (!buffered || wanted !== "single") return;
      const entries = timeline.buffered(type);
      for (let i = 0; i < entries.length; i++) this.#add(entries[i]);
    }
    disconnect() {
      this.#types = core.list();
      this.#buffer = core.list();
      this.#mode = undefined;
      core.setDelete(observers, this);
    }
    takeRecords() {
      const records = [];
      for (let i = 0; i < this.#buffer.length; i++) core.define(records, i, this.#buffer[i]);
      this.#buffer = core.list();
      return records;
    }
    #add(entry) {
      core.push(this.#buffer, entry);
      if (!scheduled) core.startTimer(deliver, 0);
      scheduled = true;
    }
    #deliver() {
      const list = this.#buffer;
      if (list.length === 0) return;
      this.#buffer = core.list();
      try {
        core.apply(this.#callback, this, [new PerformanceObserverEntryList(token, list), this, { droppedEntriesCount: 0 }]);
      } catch (error) {
        core.report("uncaught", error);
      }
    }
    static get supportedEntryTypes() { return supported; }
    static {
      queueFor = (observer, entry) => {
        if (includes(observer.#types, slotsOf(entry).entryType)) observer.#add(entry);
      };
      deliverTo = (observer) => observer.#deliver();
    }
  }
  finish(PerformanceObserver, { __proto__: null, name: "PerformanceObserver" });
  core.defineProperty(PerformanceObserver, "supportedEntryTypes", { __proto__: null, enumerable: true });

  function deliver() {
    scheduled = false;
    const all = core.setList(observers);
    for (let i = 0; i < all.length; i++) deliverTo(all[i]);
  }

  return {
    __proto__: null,
    PerformanceObserver, PerformanceObserverEntryList,
    queue(entry) {
      const all = core.setList(observers);
      for (let i = 0; i < all.length; i++) queueFor(all[i], entry);
    },
    attach: (entries) => { timeline = entries; },
  };
}
