package sandbox

import (
	"fmt"
	"strings"
)

// The texts by which a program that expects another runtime learns what to use here instead. They are part of the
// product: TestHints pins them. A module of the request always comes before a hint.

const (
	noFiles    = "there is no file system here: return data as the result, or call a tool that reads or writes files"
	noProcess  = "there are no processes here: call a tool that does the work"
	noSockets  = "there are no sockets here: use fetch, or call a tool"
	useFetch   = "use fetch, which is a global"
	useCrypto  = "use the global crypto: crypto.subtle, crypto.getRandomValues, crypto.randomUUID"
	useUUID    = "use crypto.randomUUID()"
	useArrays  = "use the methods of Array, Object, Map and Set: map, filter, reduce, Object.groupBy, structuredClone, …"
	useDates   = "use Date and Intl.DateTimeFormat, Intl.RelativeTimeFormat"
	useBytes   = "use Uint8Array with TextEncoder and TextDecoder; Uint8Array.fromBase64, toBase64, fromHex and toHex do the encodings"
	useURL     = "use URL and URLSearchParams, which are globals"
	usePaths   = "join strings with \"/\", or use new URL(relative, base).pathname"
	useEvents  = "use EventTarget and Event, which are globals"
	useStreams = "use ReadableStream, WritableStream and TransformStream, which are globals"
	useZlib    = "use CompressionStream and DecompressionStream"
	noWorkers  = "there is one thread: use promises, or run several executions"
	noPage     = "there is no page and no DOM here: the program computes a value and returns it"
	takeInput  = "the input of the program is the argument of its function: write the program as (input) => …, or export such a function by default"
	noStorage  = "nothing is kept between executions: use a variable, return the value, or call a tool that stores it"
	noServer   = "a program cannot serve or query one directly: call a tool"
	useImport  = "use import, or await import(…), of a module that was sent with the program"
)

// moduleHints are by specifier, names of Node's modules without "node:".
var moduleHints = map[string]string{
	"fs": noFiles, "fs/promises": noFiles, "fs-extra": noFiles, "graceful-fs": noFiles, "glob": noFiles, "fast-glob": noFiles, "rimraf": noFiles, "mkdirp": noFiles, "chokidar": noFiles, "sqlite": noFiles,
	"path": usePaths, "path/posix": usePaths,
	"child_process": noProcess, "cluster": noProcess, "execa": noProcess, "shelljs": noProcess, "zx": noProcess, "cross-spawn": noProcess,
	"process": "use the input of the program for configuration; there is no process, no environment and no argv",
	"os":      "nothing of the host can be seen here; navigator.hardwareConcurrency and navigator.language are constants",
	"crypto":  useCrypto, "crypto-js": useCrypto, "bcrypt": useCrypto, "bcryptjs": useCrypto, "uuid": useUUID, "nanoid": useUUID,
	"buffer": useBytes, "safe-buffer": useBytes, "string_decoder": "use TextDecoder with { stream: true }", "iconv-lite": "use TextDecoder, which knows all encodings of the web",
	"http": useFetch, "https": useFetch, "http2": useFetch, "undici": useFetch, "axios": useFetch, "node-fetch": useFetch, "cross-fetch": useFetch, "isomorphic-fetch": useFetch, "got": useFetch, "ky": useFetch, "superagent": useFetch, "request": useFetch, "request-promise": useFetch, "whatwg-fetch": useFetch,
	"net": noSockets, "tls": noSockets, "dgram": noSockets, "dns": noSockets, "dns/promises": noSockets, "ws": noSockets, "socket.io": noSockets, "socket.io-client": noSockets,
	"express": noServer, "fastify": noServer, "koa": noServer, "next": noServer, "pg": noServer, "mysql": noServer, "mysql2": noServer, "mongodb": noServer, "mongoose": noServer, "redis": noServer, "ioredis": noServer, "sqlite3": noServer, "better-sqlite3": noServer, "prisma": noServer, "@prisma/client": noServer,
	"lodash": useArrays, "lodash-es": useArrays, "underscore": useArrays, "ramda": useArrays, "immutable": useArrays,
	"moment": useDates, "moment-timezone": useDates, "dayjs": useDates, "date-fns": useDates, "luxon": useDates,
	"url": useURL, "querystring": useURL, "qs": useURL, "query-string": useURL, "punycode": useURL, "whatwg-url": useURL,
	"util": "use console.log to inspect, structuredClone to copy, TextEncoder and TextDecoder; promisify by new Promise", "util/types": "use instanceof, Array.isArray and ArrayBuffer.isView",
	"events": useEvents, "eventemitter3": useEvents, "stream": useStreams, "stream/web": useStreams, "stream/promises": useStreams, "readable-stream": useStreams,
	"zlib": useZlib, "pako": useZlib, "fflate": useZlib, "timers": "use setTimeout, setInterval and queueMicrotask, which are globals", "timers/promises": "use await new Promise((resolve) => setTimeout(resolve, ms))",
	"assert": "throw an Error where a condition does not hold", "assert/strict": "throw an Error where a condition does not hold", "chai": "throw an Error where a condition does not hold",
	"worker_threads": noWorkers, "async_hooks": "pass values as arguments; there is no AsyncLocalStorage", "perf_hooks": "use the global performance", "readline": "there is no terminal: take the input of the program", "readline/promises": "there is no terminal: take the input of the program", "inquirer": "there is no terminal: take the input of the program",
	"vm": "use Function or eval, inside the program's own limits", "module": useImport, "v8": "the engine cannot be reached", "inspector": "the engine cannot be reached", "repl": "there is no terminal", "tty": "there is no terminal", "test": "throw an Error where a condition does not hold",
	"dotenv": "use the input of the program for configuration", "chalk": "console lines are plain text", "colors": "console lines are plain text", "debug": "use console.debug", "winston": "use console", "pino": "use console", "yargs": "use the input of the program", "commander": "use the input of the program", "minimist": "use the input of the program",
	"react": noPage, "react-dom": noPage, "vue": noPage, "jquery": noPage, "jsdom": noPage, "puppeteer": noPage, "playwright": noPage, "cheerio": "there is no HTML parser: use string methods, or send a parser as a module",
	"form-data": "use FormData and Blob, which are globals", "abort-controller": "use AbortController, which is a global", "web-streams-polyfill": useStreams, "text-encoding": "use TextEncoder and TextDecoder, which are globals", "performance-now": "use performance.now()", "big.js": "use BigInt, or send the library as a module", "bluebird": "use Promise", "async": "use Promise.all and async functions", "p-limit": "use Promise.all over slices of the work", "js-base64": useBytes, "base64-js": useBytes,
	"zod": "check values by hand, or send the library as a module", "ajv": "check values by hand, or send the library as a module", "yaml": "use JSON, or send the library as a module", "js-yaml": "use JSON, or send the library as a module", "csv-parse": "split the text, or send the library as a module", "papaparse": "split the text, or send the library as a module", "xml2js": "use string methods, or send the library as a module",
	"typescript": "send the program with language \"typescript\"",
}

// missing is the error for a specifier that names no module.
func missing(specifier, referrer string) string {
	text := fmt.Sprintf("cannot find module %q imported from %q", specifier, referrer)
	name, isNode := strings.CutPrefix(specifier, "node:")
	hint, ok := moduleHints[name]
	if !ok {
		hint = moduleHints[packageOf(name)]
	}
	switch {
	case hint != "":
		return text + ": " + hint
	case isNode:
		return text + ": Node's modules are not here; the globals are those of the web platform"
	case strings.HasPrefix(specifier, "https:"), strings.HasPrefix(specifier, "http:"), strings.HasPrefix(specifier, "npm:"), strings.HasPrefix(specifier, "jsr:"):
		return text + ": modules are not loaded from the network; send it as one of the program's modules"
	case !isRelative(specifier) && !strings.Contains(specifier, ":"):
		return text + ": no packages are installed here; send it as one of the program's modules"
	}
	return text
}

// packageOf cuts a specifier to the name of its package.
func packageOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// globalHints are for names that other runtimes have as globals. Here they are not defined: typeof says "undefined".
var globalHints = map[string]string{
	"process": "use the input of the program for configuration; there is no process, no environment and no argv",
	"Buffer":  useBytes,
	"require": "use import, or await import(…), of a module that was sent with the program; only modules of type \"commonjs\" have require",
	"module":  "return the value, or use export default; only modules of type \"commonjs\" have module", "exports": "return the value, or use export; only modules of type \"commonjs\" have exports",
	"__dirname": noFiles, "__filename": "use import.meta.url", "global": "use globalThis",
	"setImmediate": "use setTimeout(callback, 0) or queueMicrotask(callback)", "clearImmediate": "use setTimeout and clearTimeout",
	"XMLHttpRequest": useFetch, "axios": useFetch, "$": noPage, "jQuery": noPage, "_": useArrays, "lodash": useArrays, "moment": useDates,
	"localStorage": noStorage, "sessionStorage": noStorage, "indexedDB": noStorage, "caches": noStorage,
	"document": noPage, "window": "use globalThis; " + noPage, "location": noPage, "history": noPage, "frames": noPage, "parent": noPage, "top": noPage, "HTMLElement": noPage, "Element": noPage, "Node": noPage, "Image": noPage, "DOMParser": "there is no HTML or XML parser: use string methods, or send a parser as a module", "MutationObserver": noPage, "requestAnimationFrame": "use setTimeout", "cancelAnimationFrame": "use clearTimeout", "requestIdleCallback": "use setTimeout", "getComputedStyle": noPage, "matchMedia": noPage, "screen": noPage,
	"alert": "use console.log", "confirm": "there is nobody to ask: take the input of the program", "prompt": "there is nobody to ask: take the input of the program",
	"Deno": "use the globals of the web platform; there is no Deno", "Bun": "use the globals of the web platform; there is no Bun", "WScript": "use the globals of the web platform",
	"WebSocket": noSockets, "Worker": noWorkers, "SharedWorker": noWorkers, "ServiceWorker": noWorkers, "importScripts": useImport, "postMessage": "return the value", "Notification": noPage,
	"fs": noFiles, "path": usePaths, "fetchSync": "use await fetch(…)", "define": "use export", "print": "use console.log", "System": "use import", "$input": takeInput, "input": takeInput, "args": takeInput,
}
