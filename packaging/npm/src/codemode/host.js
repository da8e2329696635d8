// The host's side of the harness: tools and connectors, asked by name.

import { isError } from "../values/encode.js";

/** The pause of the dialect's durable runtime: a program dies of an error with this message. */
const pause = "__CODEMODE_PAUSE__";

const messageOf = (thrown) => String(isError(thrown) ? thrown.message : thrown);

/** The functions that the harness calls: tools is a Map of Maps of functions, connectors a Map of bindings. */
export function hostOf({ tools, connectors, mark }) {
  return {
    call: (provider, name, text, bytes) => {
      const tool = tools.get(provider)?.get(name);
      return typeof tool === "function" ? callTool(tool, read(text, bytes, mark), mark) : ["error", `Tool "${name}" not found`];
    },
    connect: (connector, method, value) => callConnector(connectors.get(connector), method, value),
  };
}

async function callTool(tool, args, mark) {
  try {
    const bytes = [];
    const text = JSON.stringify(await tool(...args), writer(bytes, mark));
    return text === undefined ? ["value", undefined] : ["json", text, bytes];
  } catch (thrown) {
    return ["error", messageOf(thrown)];
  }
}

async function callConnector(binding, method, args) {
  try {
    const value = await binding.callTool(method, args);
    const control = value?.__codemode_control__;
    if (control === "pause") return ["error", pause];
    return control === "error" ? ["error", String(value.message)] : ["value", value];
  } catch (thrown) {
    return ["error", messageOf(thrown)];
  }
}

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
