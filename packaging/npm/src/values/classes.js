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

/** What stands in the tag of a handle, by the object that stands for it here. */
export const handleTags = new WeakMap();
