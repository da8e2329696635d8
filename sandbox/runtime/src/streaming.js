// WebAssembly.compileStreaming and instantiateStreaming (https://webassembly.github.io/spec/web-api/). WebAssembly is not
// there yet when the snapshot is built, so they are defined when an execution begins.

import { apply, define, global, promiseThen } from "./primordials.js";

export function installStreaming(core) {
  const { WebAssembly } = global;
  if (WebAssembly === undefined) return;
  const { compile, instantiate } = WebAssembly;
  const bytesOf = (source) => core.need("fetch").bytesOfSource(source);
  const members = {
    compileStreaming(source) {
      return promiseThen(bytesOf(source), (bytes) => apply(compile, WebAssembly, [bytes]));
    },
    instantiateStreaming(source, importObject = undefined) {
      return promiseThen(bytesOf(source), (bytes) => apply(instantiate, WebAssembly, [bytes, importObject]));
    },
  };
  define(WebAssembly, "compileStreaming", members.compileStreaming);
  define(WebAssembly, "instantiateStreaming", members.instantiateStreaming);
}
