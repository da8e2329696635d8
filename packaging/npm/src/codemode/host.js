// The host's side of the harness: tools and connectors, asked by name.

import { isError } from "../values/encode.js";

/** The pause of the dialect's durable runtime: a program dies of an error with this message. */
const pause = "__CODEMODE_PAUSE__";

/** The functions that the harness calls: tools is a Map of Maps of functions, connectors are as execute is given them. */
export function hostOf({ tools, connectors, mark }) {
  return {
    call: answering(async (provider, name, text, bytes) => {
      const tool = tools.get(provider)?.get(name);
      if (typeof tool !== "function") throw `Tool "${name}" not found`;
      const found = [];
      const answer = JSON.stringify(await tool(...read(text, bytes, mark)), writer(found, mark));
      return answer === undefined ? ["value", undefined] : ["json", answer, found];
    }),
    connect: answering(async (connector, method, args) => {
      const { binding } = connectors.find(({ name }) => name === connector);
      const value = await binding.callTool(method, args);
      const control = value?.__codemode_control__;
      if (control === "pause") throw pause;
      if (control === "error") throw value.message;
      return ["value", value];
    }),
  };
}

const answering = (run) => (...args) => run(...args).catch((thrown) => ["error", String(isError(thrown) ? thrown.message : thrown)]);

function read(text, bytes, mark) {
  const marked = (value) => value !== null && typeof value === "object" && Number.isInteger(value[mark]);
  return JSON.parse(text, bytes.length > 0 ? (_, value) => (marked(value) ? bytes[value[mark]] : value) : undefined);
}

// A view may say of itself how it is written, as Node's Buffer does; it is bytes all the same.
function writer(bytes, mark) {
  return function (key, value) {
    const raw = this[key];
    const view = ArrayBuffer.isView(raw);
    if (!view && !(raw instanceof ArrayBuffer)) return value;
    bytes.push(view ? new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength) : raw);
    return { [mark]: bytes.length - 1 };
  };
}
