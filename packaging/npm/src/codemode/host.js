// The host's side of the harness: tools and connectors, asked by name.

import { bytesOf } from "../values/base64.js";
import { isError } from "../values/encode.js";
import { stringify } from "../values/json.js";

/**
 * The function that the harness calls, for a connector with a value and for a tool with a text and the bytes beside it. tools
 * are those of toolsOf, connectors are as execute is given them. It never rejects. harness/program.js says what it answers.
 */
export const callerOf = ({ tools, connectors, mark }) => async (namespace, name, sent, bytes) => {
  try {
    const connector = connectors.find((one) => one.name === namespace);
    if (connector !== undefined) {
      const value = await connector.binding.callTool(name, sent);
      const control = value?.__codemode_control__;
      if (control === "pause") throw "__CODEMODE_PAUSE__"; // the dialect's durable runtime knows that a program died of it
      if (control === "error") throw value.message;
      return [value];
    }
    const [, tool] = tools.get(`${namespace}.${name}`) ?? [];
    if (typeof tool !== "function") throw `Tool "${name}" not found`;
    const found = [];
    const reader = (_, value) => (Number.isInteger(value?.[mark]) ? bytes[value[mark]] : value);
    const answer = stringify(await tool(...JSON.parse(sent, bytes.length > 0 ? reader : undefined)), writer(found, mark));
    return [answer, answer && found];
  } catch (thrown) {
    return [String(isError(thrown) ? thrown.message : thrown), null, true];
  }
};

// A view may say of itself how it is written, as Node's Buffer does; it is bytes all the same.
function writer(bytes, mark) {
  return function (key, value) {
    const raw = this[key];
    const view = ArrayBuffer.isView(raw);
    if (!view && !(raw instanceof ArrayBuffer)) return value;
    bytes.push(view ? bytesOf(raw) : raw);
    return { [mark]: bytes.length - 1 };
  };
}
