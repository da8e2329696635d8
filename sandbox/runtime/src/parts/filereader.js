// FileReader (File API, 6.2, https://w3c.github.io/FileAPI/#APIASynch) and its ProgressEvent (XMLHttpRequest, 5,
// https://xhr.spec.whatwg.org/#interface-progressevent). A blob's bytes are there at once, so a read is its events: one
// task each for loadstart, for progress unless the blob is empty, and for load and loadend.

const EMPTY = 0;
const LOADING = 1;
const DONE = 2;

export default function filereader(core) {
  const {
    apply, EventTarget, finish, makeException, native, need, requireArguments, SafeTypeError, startTimer, stopTimer, stringIndexOf,
    toBoolean, toDictionary, toDOMString, toDouble, typedArrayBuffer, typedArrayByteLength,
  } = core;
  const { Event, fire, handlerAttributes } = need("events");
  const blobs = () => need("blob");

  const progressInit = [["lengthComputable", toBoolean, false], ["loaded", toDouble, 0], ["total", toDouble, 0]];

  class ProgressEvent extends Event {
    #init;
    constructor(type, eventInitDict = undefined) {
      requireArguments("ProgressEvent", arguments.length, 1);
      super(type, eventInitDict);
      this.#init = toDictionary(eventInitDict, progressInit, "The init dictionary");
    }
    get lengthComputable() { return this.#init.lengthComputable; }
    get loaded() { return this.#init.loaded; }
    get total() { return this.#init.total; }
  }
  finish(ProgressEvent, { __proto__: null, name: "ProgressEvent" });

  // ---- "package data" (6.2.1)

  function toDataURL(bytes, type) {
    const { btoa } = need("base64");
    return `data:${type === "" ? "application/octet-stream" : type};base64,${apply(btoa, undefined, [native.latin1(bytes)])}`;
  }

  // The encoding is the one asked for, else that of the blob's type, else UTF-8; a byte order mark goes before all.
  function toText(bytes, type, label) {
    const { decode, encodingOf } = need("encoding");
    const named = label === undefined ? undefined : encodingOf(label);
    return decode(bytes, named ?? encodingOfType(type) ?? "utf-8");
  }

  function encodingOfType(type) {
    if (stringIndexOf(type, "charset") < 0) return undefined;
    const charset = need("http").parameterOfType(type, "charset");
    return charset === undefined ? undefined : need("encoding").encodingOf(charset);
  }

  // One read: what it is about, the task that is next, and how far it came.
  class Reading {
    task = 0;
    loaded = 0;
    bytes;
    total;
    pack;
    constructor(bytes, pack) {
      this.bytes = bytes;
      this.total = typedArrayByteLength(bytes);
      this.pack = pack;
    }
  }
  const progressOf = ({ loaded, total }) => ({ __proto__: null, lengthComputable: true, loaded, total });

  class FileReader extends EventTarget {
    #state = EMPTY;
    #result = null;
    #error = null;
    #reading = null; // while LOADING
    constructor() {
      super();
    }
    get readyState() { return this.#state; }
    get result() { return this.#result; }
    get error() { return this.#error; }

    readAsArrayBuffer(blob) {
      this.#read("readAsArrayBuffer", arguments, (bytes) => typedArrayBuffer(blobs().copyBytes(bytes)));
    }
    readAsBinaryString(blob) {
      this.#read("readAsBinaryString", arguments, (bytes) => native.latin1(bytes));
    }
    readAsText(blob, encoding = undefined) {
      this.#read("readAsText", arguments, toText, encoding);
    }
    readAsDataURL(blob) {
      this.#read("readAsDataURL", arguments, toDataURL);
    }

    // "read operation" (6.2).
    #read(operation, args, pack, label = undefined) {
      this.#state;
      requireArguments(`${operation}' on 'FileReader`, args.length, 1);
      const blob = args[0];
      if (!blobs().isBlob(blob)) throw new SafeTypeError(`Failed to execute '${operation}' on 'FileReader': the argument is not a Blob.`);
      const encoding = label === undefined ? undefined : toDOMString(label);
      if (this.#state === LOADING) throw makeException("The FileReader is reading a Blob already.", "InvalidStateError");
      const bytes = blobs().bytesOfBlob(blob);
      const type = blobs().typeOfBlob(blob);
      const reading = new Reading(bytes, () => pack(bytes, type, encoding));
      this.#state = LOADING;
      this.#result = this.#error = null;
      this.#reading = reading;
      this.#later(reading, () => this.#begin(reading));
    }

    // Runs step as a task, unless the read was aborted by then.
    #later(reading, step) {
      reading.task = startTimer(() => {
        if (this.#reading === reading) step();
      }, 0);
    }

    #begin(reading) {
      fire(this, ProgressEvent, "loadstart", progressOf(reading));
      if (reading.total > 0) this.#later(reading, () => this.#advance(reading));
      else this.#later(reading, () => this.#end(reading));
    }

    #advance(reading) {
      reading.loaded = reading.total;
      fire(this, ProgressEvent, "progress", progressOf(reading));
      this.#later(reading, () => this.#end(reading));
    }

    #end(reading) {
      this.#state = DONE;
      this.#reading = null;
      try {
        this.#result = reading.pack();
      } catch {
        this.#error = makeException("The Blob's bytes cannot be given in this form.", "NotReadableError");
      }
      fire(this, ProgressEvent, this.#error === null ? "load" : "error", progressOf(reading));
      // A task of its own, because between two events of one task promises settle, which they do not before this returns.
      startTimer(() => this.#conclude(reading), 0);
    }

    // Fires loadend, unless a listener of the event before began another read.
    #conclude(reading) {
      if (this.#state !== LOADING) fire(this, ProgressEvent, "loadend", progressOf(reading));
    }

    abort() {
      this.#result = null;
      if (this.#state !== LOADING) return;
      const reading = this.#reading;
      stopTimer(reading.task);
      this.#state = DONE;
      this.#reading = null;
      fire(this, ProgressEvent, "abort", progressOf(reading));
      this.#conclude(reading);
    }

    static {
      handlerAttributes(FileReader, ["loadstart", "progress", "load", "abort", "error", "loadend"], (reader) => reader.#state);
    }
  }
  finish(FileReader, { __proto__: null, name: "FileReader", constants: { __proto__: null, EMPTY, LOADING, DONE } });

  return { __proto__: null, FileReader, ProgressEvent };
}
