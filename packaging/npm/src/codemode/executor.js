// CodemodeExecutor: an executor of the dialect of @cloudflare/codemode over any executor that speaks this package's own.

import { refuse } from "../errors.js";
import { RemoteExecutor } from "../executor.js";
import { isArray } from "../values/tags.js";
import { entriesOf, fromEntries } from "../values/walk.js";
import { newName } from "../wait.js";
import { moduleOf } from "./harness.js";
import { callerOf } from "./host.js";
import { limitResult } from "./limit.js";
import { toolsOf } from "./names.js";
import { readCode } from "./normalize.js";

const usualTimeoutMs = 60_000;
/** Endings of a program that did not come to an end in its time. What can never settle would wait for that. */
const timeouts = /^((cpu|wall|total)_timeout|deadlock)$/;

const unknown = "the execution failed";

/** What the dialect does not bound is bounded by the service's maxima. */
const plenty = 1 << 30;
const wide = {
  heapMiB: 128, bufferMiB: 128, resultBytes: 32 << 20, messageBytes: 32 << 20, logBytes: plenty, logLines: plenty,
  toolCalls: plenty, toolCallsInFlight: 1 << 16, fetches: plenty, fetchBytes: plenty, timers: 1 << 24,
};

export class CodemodeExecutor {
  #executor;
  #own; // the executor that this one made
  #request; // what all have in common
  #maxResultChars;

  constructor(executorOrOptions) {
    const { executor, timeout = usualTimeoutMs, modules = {}, globalOutbound = null, limits, maxResultChars, ...remote } =
      executorOrOptions?.execute ? { executor: executorOrOptions } : executorOrOptions ?? {};
    const ms = Math.max(1, Math.ceil(timeout));
    if (!Number.isSafeInteger(ms)) refuse("timeout is a number of milliseconds");
    if (maxResultChars !== undefined && !(maxResultChars > 0)) refuse("maxResultChars is a number of characters");
    this.#request = {
      form: "module",
      name: "program.js",
      modules: modulesOf(modules),
      limits: { ...wide, cpuMs: ms, wallMs: ms, totalMs: ms, ...limits },
      fetch: outboundOf(globalOutbound),
    };
    this.#maxResultChars = maxResultChars;
    this.#executor = executor ?? (this.#own = new RemoteExecutor(remote));
  }

  /** Runs code with providers in the sandbox; see the type declarations. It never rejects. */
  async execute(code, providersOrFns, options) {
    try {
      const providers = isArray(providersOrFns) ? providersOrFns : [recordOf(providersOrFns)];
      const connectors = options?.connectors ?? [];
      const plan = { tools: toolsOf(providers, connectors), code: readCode(code), providers, connectors, mark: newName() };
      const { value, logs } = await this.#executor.execute({
        ...this.#request, code: moduleOf(plan), providers: { codemodeHost: { call: callerOf(plan) } },
      });
      if (value.error !== undefined) throw { message: value.error, logs };
      return { result: this.#maxResultChars === undefined ? value.value : limitResult(value.value, this.#maxResultChars), logs: linesOf(logs) };
    } catch (error) {
      // A text is a refusal: nothing has been sent.
      if (typeof error === "string") return { result: undefined, error };
      try {
        return { result: undefined, error: messageOf(error), logs: linesOf(error?.logs ?? []) };
      } catch {
        return { result: undefined, error: unknown, logs: [] }; // it cannot be read
      }
    }
  }

  /** Ends the connection of an executor that this one made. */
  async close() {
    await this.#own?.close();
  }
}

function recordOf(fns) {
  console.warn("CodemodeExecutor: a bare record of functions is deprecated; give [{ name: \"codemode\", fns }]");
  return { name: "codemode", fns: fns ?? {} };
}

function messageOf(error) {
  const { type } = error ?? {};
  if (timeouts.test(type)) return "Execution timed out";
  const message = String(error?.message ?? error) || unknown;
  if (type === "syntax") return `SyntaxError: ${message}`;
  // The program's value is in an object of the harness.
  return type === "result_unserializable" ? message.replace("(at result.value", "(at result") : message;
}

/** The lines of the dialect among those of the service: the harness prints at level debug, and nothing else does. */
function linesOf(logs) {
  return logs.flatMap(({ level, text, truncated }) => (truncated ? `[${truncated.lines} lines are left out here]` : level === "debug" ? text : []));
}

// modulesOf leaves out the reference's own file.
function modulesOf({ "executor.js": _, ...sources }) {
  return fromEntries(entriesOf(sources).map(([name, source]) => [name, { source }]));
}

function outboundOf(outbound) {
  const answer = outbound?.fetch ?? outbound;
  if (answer === null) return undefined;
  if (typeof answer !== "function") refuse("globalOutbound is null, a function, or has one named fetch");
  return (request) => answer.call(outbound, request);
}
