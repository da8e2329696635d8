// The program that runs in the sandbox around the code of a model. `npm run harness` writes it, as bundlers rewrite
// functions, to src/codemode/harness-text.js as a text.
//
// It takes the host's one provider off the global object, so that only the namespaces reach it, and keeps what it uses of
// the language, so that a program that changes that harms itself only. Lines of the console go out at level debug, where
// nothing but the harness prints.
//
// It gives [namespace, compile, run]. writer and reader put bytes beside JSON, which has none, with their number in their
// place. A namespace has tools, or is a connector's, whose own properties do not count and whose values cross as they are.
// It keeps "then" from the host: with it, it would seem to be a promise that never settles. The host answers with a value,
// with the text of one and the bytes beside it, or with the message of an error, true being third then. Where it does not
// answer, the reason names the tool and not the harness. compile has the engine read statements by themselves, so that they
// close nothing of what is around them.
export default (mark) => {
  const { stringify, parse } = JSON, { hasOwn } = Object, { isView } = ArrayBuffer, { call } = globalThis.codemodeHost, print = console.debug;
  const text = String, Failure = Error, Bytes = Uint8Array, Buffer = ArrayBuffer, Shield = Proxy, Statements = (async () => {}).constructor;
  const printer = (prefix) => (...values) => {
    let line = prefix;
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + text(values[i]);
    print(line);
  };
  const writer = (bytes) => (key, value) => {
    const view = isView(value);
    if (!view && !(value instanceof Buffer)) return value;
    bytes[bytes.length] = view ? new Bytes(value.buffer, value.byteOffset, value.byteLength) : value;
    return { [mark]: bytes.length - 1 };
  };
  const reader = (bytes) => (key, value) => value !== null && hasOwn(value, mark) ? bytes[value[mark]] : value;
  const messageOf = (thrown) => {
    let message;
    try {
      const own = thrown?.message;
      message = text(own === undefined || own === "" ? thrown : own);
    } catch {}
    return message || "the program threw an error without a message";
  };
  const namespace = (name, hasTools) => new Shield({}, { __proto__: null, get(own, key) {
    if (hasTools && hasOwn(own, key)) return own[key];
    if (typeof key === "string" && key !== "then") return async (...values) => {
      const bytes = [];
      const sent = hasTools ? stringify(values, writer(bytes)) : values[0];
      let answer;
      try {
        answer = await call(name, key, sent, bytes);
      } catch (error) {
        throw new Failure(messageOf(error).replace(/argument \d of codemodeHost.call/, "the argument of " + name + "." + key));
      }
      const value = answer[0], beside = answer[1];
      if (answer[2]) throw new Failure(value);
      return beside ? parse(value, beside.length ? reader(beside) : undefined) : value;
    };
  } });
  const compile = (body, names) => {
    try {
      return new Statements(names, '"use strict";\n' + body);
    } catch (error) {
      throw new Failure("SyntaxError: " + error.message);
    }
  };
  const run = async (begin) => {
    try {
      const program = await begin();
      return { value: await program() };
    } catch (thrown) {
      return { error: messageOf(thrown) };
    }
  };
  delete globalThis.codemodeHost;
  for (const key of Object.keys(console)) console[key] = () => {};
  console.log = printer("");
  console.warn = printer("[warn] ");
  console.error = printer("[error] ");
  return [namespace, compile, run];
};
