// CodemodeExecutor: an executor of the dialect of @cloudflare/codemode over any executor that speaks this package's own.

import { RemoteExecutor } from "../executor.js";
import { newName } from "../wait.js";
import { hostName, moduleOf } from "./harness.js";
import { hostOf } from "./host.js";
import { limitResult } from "./limit.js";
import { faultOf, toolsOf } from "./names.js";
import { readCode } from "./normalize.js";

const usualTimeoutMs = 60_000;
const timedOut = "Execution timed out";
/** Endings of a program that did not come to an end in its time. What can never settle would wait for that. */
const timeouts = ["cpu_timeout", "wall_timeout", "total_timeout", "deadlock"];

/** What the dialect does not bound is bounded by the service's maxima. */
const wide = {
  heapMiB: 128, bufferMiB: 128, resultBytes: 32 << 20, messageBytes: 32 << 20, logBytes: 1 << 30, logLines: 1 << 30,
  toolCalls: 1 << 30, toolCallsInFlight: 1 << 16, fetches: 1 << 30, fetchBytes: 1 << 30, timers: 1 << 24,
};

export class CodemodeExecutor {
  #executor;
  #own; // the executor that this one made
  #limits;
  #modules;
  #fetch;
  #maxResultChars;

  constructor(executorOrOptions) {
    const options = typeof executorOrOptions?.execute === "function" ? { executor: executorOrOptions } : { ...executorOrOptions };
    const { executor, timeout = usualTimeoutMs, modules = {}, globalOutbound, limits, maxResultChars, ...remote } = options;
    const ms = Math.max(1, Math.ceil(timeout));
    if (!Number.isSafeInteger(ms)) throw new TypeError("timeout is a number of milliseconds");
    if (maxResultChars !== undefined && !(maxResultChars > 0)) throw new TypeError("maxResultChars is a number of characters");
    this.#limits = { ...wide, cpuMs: ms, wallMs: ms, totalMs: ms, ...limits };
    this.#modules = modulesOf(modules);
    this.#fetch = outboundOf(globalOutbound ?? null);
    this.#maxResultChars = maxResultChars;
    this.#executor = executor ?? (this.#own = new RemoteExecutor(remote));
  }

  /** Runs code with providers in the sandbox; see the type declarations. It never rejects. */
  async execute(code, providersOrFns, options) {
    try {
      const plan = planOf(code, providersOrFns, options?.connectors ?? []);
      return typeof plan === "string" ? { result: undefined, error: plan } : await this.#run(plan);
    } catch (error) {
      return { result: undefined, error: messageOf(error), logs: linesOf(error?.logs ?? []) };
    }
  }

  async #run(plan) {
    const mark = newName();
    const request = {
      code: moduleOf({ ...plan, mark }),
      form: "module",
      name: "program.js",
      modules: this.#modules,
      limits: this.#limits,
      providers: { [hostName]: hostOf({ ...plan, mark }) },
    };
    if (this.#fetch !== undefined) request.fetch = this.#fetch;
    const { value: { error, value }, logs } = await this.#executor.execute(request);
    if (error !== undefined) return { result: undefined, error, logs: linesOf(logs) };
    return { result: this.#maxResultChars === undefined ? value : limitResult(value, this.#maxResultChars), logs: linesOf(logs) };
  }

  /** Ends the connection of an executor that this one made. */
  async close() {
    await this.#own?.close();
  }
}

/** What is to be run, or the text of the refusal. Nothing has been sent by then. */
function planOf(code, providersOrFns, connectors) {
  const providers = Array.isArray(providersOrFns) ? providersOrFns : [recordOf(providersOrFns)];
  const fault = faultOf(providers, connectors);
  if (fault !== undefined) return fault;
  const tools = new Map();
  for (const provider of providers) {
    const found = toolsOf(provider);
    if (typeof found === "string") return found;
    tools.set(provider.name, found);
  }
  return { code: readCode(code), providers, connectors, tools };
}

function recordOf(fns) {
  console.warn("CodemodeExecutor: a bare record of functions is deprecated; give [{ name: \"codemode\", fns }]");
  return { name: "codemode", fns: fns ?? {} };
}

function messageOf(error) {
  const { type } = error ?? {};
  if (timeouts.includes(type)) return timedOut;
  const message = String(error?.message ?? error) || "the execution failed";
  if (type === "syntax") return `SyntaxError: ${message}`;
  // The program's value is in an object of the harness.
  return type === "result_unserializable" ? message.replace("(at result.value", "(at result") : message;
}

/** The lines of the dialect among those of the service: the harness prints at level debug, and nothing else does. */
function linesOf(logs) {
  return logs.filter(({ level, truncated }) => level === "debug" || truncated).map(({ text, truncated }) => (truncated ? `[${truncated.lines} lines are left out here]` : text));
}

function modulesOf(sources) {
  const { "executor.js": _, ...others } = sources;
  return Object.fromEntries(Object.entries(others).map(([name, source]) => [name, { source }]));
}

function outboundOf(outbound) {
  if (outbound === null) return undefined;
  if (typeof outbound === "function") return (request) => outbound(request);
  if (typeof outbound.fetch === "function") return (request) => outbound.fetch(request);
  throw new TypeError("globalOutbound is null, a function, or has one named fetch");
}
