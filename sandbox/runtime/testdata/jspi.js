// A module of WebAssembly whose import may suspend it: twice() calls the import two times and adds what it gave.
const section = (id, ...body) => [id, body.length, ...body];
const import_ = [1, 1, 0x6d, 1, 0x66, 0, 0]; // one: m.f, a function of type 0
const twice = [1, 5, ...new TextEncoder().encode("twice"), 0, 1]; // one: function 1
const body = [0, 0x10, 0, 0x10, 0, 0x6a, 0x0b]; // no locals; call 0, call 0, i32.add
const module = new WebAssembly.Module(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, ...section(1, 1, 0x60, 0, 1, 0x7f), ...section(2, ...import_),
  ...section(3, 1, 0), ...section(7, ...twice), ...section(10, 1, body.length, ...body)]));
export const suspending = (f) => new WebAssembly.Instance(module, { m: { f: new WebAssembly.Suspending(f) } }).exports;
