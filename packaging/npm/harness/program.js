// The program that runs in the sandbox around the code of a model. `npm run harness` writes it, as bundlers rewrite
// functions, to src/codemode/harness-text.js as a text.
//
// It takes the host's one provider off the global object, so that only the namespaces reach it, and keeps what it uses of
// the language, so that a program that changes that harms itself only. Lines of the console go out at level debug, where
// nothing but the harness prints.
//
// What it is made of: writer and reader put bytes beside JSON, which has none, with their number in their place. answered
// is what an answer of the host stands for; where there is none, the reason names the tool and not the harness. isTool
// keeps "then" from the host: with it, a namespace would seem to be a promise that never settles. compile has the engine
// read statements by themselves, so that they close nothing of what is around them.
export default (mark) => {
  const { stringify, parse } = JSON, { hasOwn } = Object, { isView } = ArrayBuffer, { apply } = Reflect, { replace } = String.prototype;
  const text = String, Failure = Error, Bytes = Uint8Array, Buffer = ArrayBuffer, Shield = Proxy, Statements = (async () => {}).constructor;
  const inside = /argument \d of codemodeHost\.\w+/;
  const { call, connect } = globalThis.codemodeHost;
  delete globalThis.codemodeHost;
  const print = console.debug;
  const printer = (prefix) => (...values) => {
    let line = prefix;
    for (let i = 0; i < values.length; i++) line += i === 0 ? text(values[i]) : " " + text(values[i]);
    print(line);
  };
  for (const key of Object.keys(console)) if (typeof console[key] === "function") console[key] = () => {};
  console.log = printer("");
  console.warn = printer("[warn] ");
  console.error = printer("[error] ");
  const writer = (bytes) => (key, value) => {
    const view = isView(value);
    if (!view && !(value instanceof Buffer)) return value;
    bytes[bytes.length] = view ? new Bytes(value.buffer, value.byteOffset, value.byteLength) : value;
    return { [mark]: bytes.length - 1 };
  };
  const reader = (bytes) => (key, value) => value !== null && typeof value === "object" && hasOwn(value, mark) ? bytes[value[mark]] : value;
  const messageOf = (thrown) => {
    let message;
    try {
      if (thrown !== null && (typeof thrown === "object" || typeof thrown === "function")) message = thrown.message;
      if (message === undefined || message === "") message = thrown;
      message = text(message);
    } catch {
      message = "";
    }
    return message === "" ? "the program threw an error without a message" : message;
  };
  const answered = async (answer, name, key) => {
    let got;
    try {
      got = await answer;
    } catch (error) {
      throw new Failure(apply(replace, messageOf(error), [inside, "the argument of " + name + "." + key]));
    }
    if (got[0] === "error") throw new Failure(got[1]);
    return got[0] === "json" ? parse(got[1], got[2].length > 0 ? reader(got[2]) : undefined) : got[1];
  };
  const isTool = (key) => typeof key === "string" && key !== "then";
  return {
    __proto__: null,
    tools: (name) => new Shield({}, { __proto__: null, get(own, key) {
      if (hasOwn(own, key)) return own[key];
      if (!isTool(key)) return undefined;
      return async (...values) => {
        const bytes = [];
        return await answered(call(name, key, stringify(values, writer(bytes)), bytes), name, key);
      };
    } }),
    connector: (name) => new Shield({}, { __proto__: null, get: (own, key) => isTool(key) ? async (value) => await answered(connect(name, key, value), name, key) : undefined }),
    compile: (body, ...names) => {
      try {
        return new Statements(...names, '"use strict";\n' + body);
      } catch (error) {
        throw new Failure("SyntaxError: " + error.message);
      }
    },
    run: async (begin) => {
      try {
        const program = await begin();
        return { __proto__: null, value: await program() };
      } catch (thrown) {
        return { __proto__: null, error: messageOf(thrown) };
      }
    },
  };
};
