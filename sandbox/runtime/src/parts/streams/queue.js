// A queue with sizes (Streams, 8.1: https://streams.spec.whatwg.org/#queue-with-sizes) and the plain queue under it.

import { list, push, SafeRangeError } from "./core.js";

/** First in, first out. Taken slots are given back in blocks, so that a long queue costs no quadratic time. */
export class Queue {
  #items = list();
  #head = 0;
  get length() {
    return this.#items.length - this.#head;
  }
  push(item) {
    push(this.#items, item);
  }
  first() {
    return this.#items[this.#head];
  }
  shift() {
    const items = this.#items;
    const item = items[this.#head];
    items[this.#head++] = undefined;
    if (this.#head === items.length) this.clear();
    else if (this.#head === 1024) this.#compact();
    return item;
  }
  #compact() {
    const rest = list();
    for (let i = this.#head; i < this.#items.length; i++) push(rest, this.#items[i]);
    this.#items = rest;
    this.#head = 0;
  }
  clear() {
    this.#items = list();
    this.#head = 0;
  }
}

/** The queue of a controller: chunks and the sum of their sizes. */
export class SizedQueue {
  #chunks = new Queue();
  total = 0;
  get length() {
    return this.#chunks.length;
  }
  push(value, size) {
    if (!(size >= 0) || size === Infinity) throw new SafeRangeError("The size of a chunk must be a finite number that is not negative.");
    this.#chunks.push({ __proto__: null, value, size });
    this.total += size;
  }
  first() {
    return this.#chunks.first().value;
  }
  shift() {
    const { value, size } = this.#chunks.shift();
    this.total -= size;
    if (this.total < 0) this.total = 0; // rounding errors
    return value;
  }
  clear() {
    this.#chunks.clear();
    this.total = 0;
  }
}
