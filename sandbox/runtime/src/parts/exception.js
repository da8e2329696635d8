// DOMException and QuotaExceededError (Web IDL, 2.8, https://webidl.spec.whatwg.org/#idl-DOMException).

// 2.8.1: the names that have a code. QuotaExceededError left the table in 2025 and keeps its constant.
const codes = [
  "IndexSizeError", "", "HierarchyRequestError", "WrongDocumentError", "InvalidCharacterError", "",
  "NoModificationAllowedError", "NotFoundError", "NotSupportedError", "InUseAttributeError", "InvalidStateError",
  "SyntaxError", "InvalidModificationError", "NamespaceError", "InvalidAccessError", "", "TypeMismatchError",
  "SecurityError", "NetworkError", "AbortError", "URLMismatchError", "", "TimeoutError", "InvalidNodeTypeError",
  "DataCloneError",
];

const constants = {
  __proto__: null,
  INDEX_SIZE_ERR: 1, DOMSTRING_SIZE_ERR: 2, HIERARCHY_REQUEST_ERR: 3, WRONG_DOCUMENT_ERR: 4, INVALID_CHARACTER_ERR: 5,
  NO_DATA_ALLOWED_ERR: 6, NO_MODIFICATION_ALLOWED_ERR: 7, NOT_FOUND_ERR: 8, NOT_SUPPORTED_ERR: 9, INUSE_ATTRIBUTE_ERR: 10,
  INVALID_STATE_ERR: 11, SYNTAX_ERR: 12, INVALID_MODIFICATION_ERR: 13, NAMESPACE_ERR: 14, INVALID_ACCESS_ERR: 15,
  VALIDATION_ERR: 16, TYPE_MISMATCH_ERR: 17, SECURITY_ERR: 18, NETWORK_ERR: 19, ABORT_ERR: 20, URL_MISMATCH_ERR: 21,
  QUOTA_EXCEEDED_ERR: 22, TIMEOUT_ERR: 23, INVALID_NODE_TYPE_ERR: 24, DATA_CLONE_ERR: 25,
};

export default function exception(core) {
  const { defineProperty, finish, getPrototypeOf, Identity, SafeTypeError, setPrototypeOf, toDictionary, toDOMString, toDouble } = core;
  const { SafeError, SafeRangeError } = core;

  const codeByName = { __proto__: null, QuotaExceededError: 22 };
  for (let i = 0; i < codes.length; i++) if (codes[i] !== "") codeByName[codes[i]] = i + 1;

  // The hook of the part "clone": the engine's serializer reads `name` of each error it meets.
  let onName;

  // The slots of a DOMException, put on an error object of the engine: that one has the stack, and Error.isError knows it.
  class Slots extends Identity {
    #name;
    #message;
    constructor(error, name, message) {
      super(error);
      this.#name = name;
      this.#message = message;
    }
    static has(value) {
      return #name in value;
    }
    static name(error) {
      return error.#name;
    }
    static message(error) {
      return error.#message;
    }
  }

  class DOMException {
    constructor(message = "", name = "Error") {
      message = toDOMString(message);
      name = toDOMString(name);
      const error = new SafeError();
      setPrototypeOf(error, getPrototypeOf(this));
      return new Slots(error, name, message);
    }
    get name() {
      const name = Slots.name(this);
      if (onName !== undefined) onName(this);
      return name;
    }
    get message() {
      return Slots.message(this);
    }
    get code() {
      return codeByName[Slots.name(this)] ?? 0;
    }
  }
  finish(DOMException, { __proto__: null, name: "DOMException", constants });
  setPrototypeOf(DOMException.prototype, SafeError.prototype);

  const quotaOptions = [["quota", toDouble], ["requested", toDouble]];

  class QuotaExceededError extends DOMException {
    #quota;
    #requested;
    constructor(message = "", options = undefined) {
      message = toDOMString(message);
      const { quota = null, requested = null } = toDictionary(options, quotaOptions, "The options");
      if (quota !== null && quota < 0) throw new SafeRangeError("'quota' must not be negative.");
      if (requested !== null && requested < 0) throw new SafeRangeError("'requested' must not be negative.");
      if (quota !== null && requested !== null && requested < quota) {
        throw new SafeRangeError("'requested' must not be less than 'quota'.");
      }
      super(message, "QuotaExceededError");
      this.#quota = quota;
      this.#requested = requested;
    }
    get quota() {
      return this.#quota;
    }
    get requested() {
      return this.#requested;
    }
    static has(value) {
      return #quota in value;
    }
    static fields(error) {
      return { __proto__: null, quota: error.#quota ?? undefined, requested: error.#requested ?? undefined };
    }
  }
  const { has: isQuota, fields: quotaFields } = QuotaExceededError;
  delete QuotaExceededError.has;
  delete QuotaExceededError.fields;
  finish(QuotaExceededError, { __proto__: null, name: "QuotaExceededError" });

  const isObject = (value) => typeof value === "object" && value !== null;

  return {
    __proto__: null,
    DOMException,
    QuotaExceededError,

    /** Returns a DOMException. */
    makeException: (message, name) => new DOMException(message, name),

    /** Returns the exception for the text "Name: message" of a failed host operation: the engine's own errors by name. */
    exceptionOf(error) {
      const text = error.message;
      const at = core.stringIndexOf(text, ": ");
      const name = at < 0 ? "OperationError" : core.stringSlice(text, 0, at);
      const message = at < 0 ? text : core.stringSlice(text, at + 2);
      if (name === "TypeError") return new SafeTypeError(message);
      if (name === "RangeError") return new SafeRangeError(message);
      if (name === "Error") return new SafeError(message);
      return name === "QuotaExceededError" ? new QuotaExceededError(message) : new DOMException(message, name);
    },

    isException: (value) => isObject(value) && Slots.has(value),

    /** Returns a function that makes copies of a DOMException, as deserialization does (2.8.2): the stack is kept. */
    copierOf(error) {
      const name = Slots.name(error);
      const message = Slots.message(error);
      const quota = isQuota(error) ? quotaFields(error) : undefined;
      const stack = core.stackOf(error);
      return () => {
        const copy = quota === undefined ? new DOMException(message, name) : new QuotaExceededError(message, quota);
        if (stack !== undefined) {
          defineProperty(copy, "stack", { __proto__: null, value: stack, writable: true, enumerable: false, configurable: true });
        }
        return copy;
      };
    },

    watchNames(hook) {
      onName = hook;
    },
  };
}
