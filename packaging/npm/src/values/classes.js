// What the codec has of its own.

/** A value that cannot be encoded or decoded. `path` is a JSON Pointer (RFC 6901) into the encoded text. */
export class ValueError extends TypeError {
  constructor(path, reason) {
    super(`cannot code value${path && " at " + path}: ${reason}`);
    this.path = path;
  }

  get name() {
    return "ValueError";
  }
}

/** Stands for a function that the service keeps. */
export class Handle {
  constructor(id, kind) {
    this.id = id;
    this.kind = kind;
  }
}

/** By the object that stands for a handle here: {tag, invoke}, the body of its tag and invoke(args, options) of it. */
export const held = new WeakMap();
