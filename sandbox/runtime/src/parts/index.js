// Which part of the library holds which global. A part is the file parts/NAME.js (or parts/NAME/index.js): it exports by
// default a function of the core that returns the values of its names, and anything else that other parts need. It is
// kept out of the snapshot and compiled when a program first touches one of its names.
//
// interfaces are not enumerable on the global, operations are (Web IDL, 3.7 and 3.8). attributes are accessors whose
// value the part has under the same name; what is assigned to one takes its place, unless they are readonly.

export const parts = {
  __proto__: null,
  abort: { interfaces: ["AbortController", "AbortSignal"] },
  events: { interfaces: ["CustomEvent", "Event"] },
  exception: { interfaces: ["DOMException", "QuotaExceededError"] },
  kinds: { interfaces: ["ErrorEvent", "MessageEvent", "PromiseRejectionEvent"] },
  streams: {
    interfaces: [
      "ByteLengthQueuingStrategy", "CountQueuingStrategy", "ReadableByteStreamController", "ReadableStream",
      "ReadableStreamBYOBReader", "ReadableStreamBYOBRequest", "ReadableStreamDefaultController",
      "ReadableStreamDefaultReader", "TransformStream", "TransformStreamDefaultController", "WritableStream",
      "WritableStreamDefaultController", "WritableStreamDefaultWriter",
    ],
  },
  url: { interfaces: ["URL", "URLSearchParams"] },
  urls: {}, // the parser of URLs
  urlpattern: { interfaces: ["URLPattern"] },
  crypto: { interfaces: ["Crypto"], attributes: ["crypto"], readonly: true },
  subtle: { interfaces: ["CryptoKey", "SubtleCrypto"] },
  encoding: { interfaces: ["TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream"] },
  compression: { interfaces: ["CompressionStream", "DecompressionStream"] },
  idna: { apart: true }, // written with ordinary methods: it has a realm of its own
  legacy: { apart: true },
  base64: { operations: ["atob", "btoa"] },
  clone: { operations: ["structuredClone"] },
  console: {}, // see ../console.js
  language: {}, // see ../language.js
  bytes: {}, // likewise
  handles: {}, // what the host of a retained execution pulls from; likewise
  values: {}, // platform objects that cross to the host; see ../index.js
  messaging: { interfaces: ["MessageChannel", "MessagePort"] },
  navigator: { interfaces: ["Navigator"], attributes: ["navigator"] },
  performance: {
    interfaces: [
      "Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure", "PerformanceObserver",
      "PerformanceObserverEntryList",
    ],
    attributes: ["performance"],
  },
  blob: { interfaces: ["Blob", "File"] },
  formdata: { interfaces: ["FormData"] },
  http: { interfaces: ["Headers", "Request", "Response"] },
  fetch: { operations: ["fetch"] },
  filereader: { interfaces: ["FileReader", "ProgressEvent"] },
  broadcastchannel: { interfaces: ["BroadcastChannel"] },
  eventsource: { interfaces: ["EventSource"] },
};

/** The names for the engine, one a line; an operation has a '+' before it. */
export function lazyNames() {
  let text = "";
  for (const part in parts) {
    for (const name of parts[part].interfaces ?? []) text += `${name}\n`;
    for (const name of parts[part].operations ?? []) text += `+${name}\n`;
  }
  return text;
}
