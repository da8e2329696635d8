// The work of language.js, as ECMA-262 (https://tc39.es/ecma262/) and the finished proposals say: Iterator.concat
// (https://tc39.es/proposal-iterator-sequencing/), Math.sumPrecise (https://tc39.es/proposal-math-sum/), Map upsert
// (https://tc39.es/proposal-upsert/).

export default function language(core) {
  const {
    abs, apply, bigintToString: bigToString, clz32, isInteger, isObject, iteratorDrop: drop, mapGet, mapHas, mapSet, SafeArrayBuffer,
    SafeRangeError, SafeTypeError, SafeWeakRef, symbolIterator, toBigInt: big, toNumber: number, viewConstructors,
    viewGetBigUint64: getBigUint64, viewSetFloat64: setFloat64, weakMapGet, weakMapHas, weakMapSet,
  } = core;

  // ---- Iterator.concat

  function concat(items) {
    const sources = core.list();
    for (let i = 0; i < items.length; i++) {
      const item = items[i];
      if (!isObject(item)) throw new SafeTypeError("Iterator.concat: a value is not an object.");
      const open = item[symbolIterator];
      if (typeof open !== "function") throw new SafeTypeError("Iterator.concat: a value is not iterable.");
      core.push(sources, { __proto__: null, item, open });
    }
    // A real iterator helper around a generator of our own.
    return drop(sequence(sources), 0);
  }

  function* sequence(sources) {
    for (let i = 0; i < sources.length; i++) {
      const iterator = apply(sources[i].open, sources[i].item, []);
      if (!isObject(iterator)) throw new SafeTypeError("An iterator is not an object.");
      const { next } = iterator;
      for (;;) {
        const step = apply(next, iterator, []);
        if (!isObject(step)) throw new SafeTypeError("The result of an iterator is not an object.");
        if (step.done) break;
        const { value } = step;
        let left = true;
        try {
          yield value;
          left = false;
        } finally {
          if (left) close(iterator);
        }
      }
    }
  }

  function close(iterator) {
    const { return: method } = iterator;
    if (method === undefined || method === null) return;
    if (!isObject(apply(method, iterator, []))) throw new SafeTypeError("The result of an iterator is not an object.");
  }

  // ---- Math.sumPrecise

  const view = new viewConstructors.DataView(new SafeArrayBuffer(8));
  const maxSafe = 2 ** 53 - 1;

  // The value of a finite number in units of 2^-1074, of which every double is a whole multiple.
  function toUnits(value) {
    setFloat64(view, 0, abs(value));
    const bits = getBigUint64(view, 0);
    const exponent = bits >> 52n;
    const fraction = bits & 0xfffffffffffffn;
    const units = exponent === 0n ? fraction : (fraction | 0x10000000000000n) << (exponent - 1n);
    return value < 0 ? -units : units;
  }

  // The nearest double, ties to even.
  function fromUnits(units) {
    const negative = units < 0n;
    const size = negative ? -units : units;
    const hex = bigToString(size, 16);
    const length = 4 * hex.length - (clz32(+`0x${hex[0]}`) - 28);
    const shift = length - 64;
    if (shift <= 0) return number(units) * 2 ** -1074;
    const s = big(shift);
    const rest = size & ((1n << s) - 1n);
    const top = number((size >> s) | (rest === 0n ? 0n : 1n));
    // Two steps: the power of two alone may be out of range while the product is not.
    const half = shift >> 1;
    const value = top * 2 ** (half - 1074) * 2 ** (shift - half);
    return negative ? -value : value;
  }

  // Adds numbers exactly: whole ones below 2^53 as they are, others in units.
  class Sum {
    whole = 0;
    units = 0n;
    special = 0; // infinities and NaN
    onlyMinusZero = true;
    add(value) {
      if (value === 0 && 1 / value < 0) return;
      this.onlyMinusZero = false;
      if (value - value !== 0) {
        this.special += value;
        return;
      }
      const next = this.whole + value;
      if (isInteger(value) && abs(value) <= maxSafe && abs(next) <= maxSafe) this.whole = next;
      else this.units += toUnits(value);
    }
    result() {
      if (this.special !== 0) return this.special;
      if (this.onlyMinusZero) return -0;
      return this.units === 0n ? this.whole : fromUnits(this.units + toUnits(this.whole));
    }
  }

  function sumPrecise(items) {
    const open = items?.[symbolIterator];
    if (typeof open !== "function") throw new SafeTypeError("Math.sumPrecise: the value is not iterable.");
    const iterator = apply(open, items, []);
    if (!isObject(iterator)) throw new SafeTypeError("An iterator is not an object.");
    const { next } = iterator;
    const sum = new Sum();
    for (let count = 1; ; count++) {
      const step = apply(next, iterator, []);
      if (!isObject(step)) throw new SafeTypeError("The result of an iterator is not an object.");
      if (step.done) return sum.result();
      const { value } = step;
      if (typeof value === "number" && count <= maxSafe) {
        sum.add(value);
        continue;
      }
      const fault = typeof value === "number" ? new SafeRangeError("Too many values.") : new SafeTypeError("Math.sumPrecise: a value is not a number.");
      try {
        close(iterator);
      } catch {
        // what is thrown first counts
      }
      throw fault;
    }
  }

  // ---- Map and WeakMap

  function toCallback(callback) {
    if (typeof callback !== "function") throw new SafeTypeError("The callback is not a function.");
  }

  // ECMA-262, 9.13: only the engine knows a symbol that is registered.
  function canBeHeld(value) {
    try {
      return new SafeWeakRef(value) !== undefined;
    } catch {
      return false;
    }
  }

  return {
    __proto__: null,
    concat,
    sumPrecise,
    getOrInsert(map, key, value) {
      if (mapHas(map, key)) return mapGet(map, key);
      mapSet(map, key, value);
      return value;
    },
    getOrInsertComputed(map, key, callback) {
      const known = mapHas(map, key); // first, as it checks what map is
      toCallback(callback);
      if (known) return mapGet(map, key);
      const value = callback(key === 0 ? 0 : key); // -0 is not a key
      mapSet(map, key, value);
      return value;
    },
    weakGetOrInsert(map, key, value) {
      if (weakMapHas(map, key)) return weakMapGet(map, key);
      weakMapSet(map, key, value);
      return value;
    },
    weakGetOrInsertComputed(map, key, callback) {
      const known = weakMapHas(map, key);
      toCallback(callback);
      if (known) return weakMapGet(map, key);
      if (!canBeHeld(key)) throw new SafeTypeError("Invalid value used as weak map key");
      const value = callback(key);
      weakMapSet(map, key, value);
      return value;
    },
  };
}
