// Types of the executor for @cloudflare/codemode. They are that package's own shapes, so that a CodemodeExecutor is its
// Executor, without depending on it.

import type { Execution, ExecuteRequest, Limits, RemoteExecutorOptions } from "../index.js";

export interface ExecuteResult {
  /** What the program returned; undefined when there is an error. */
  result: unknown;
  error?: string;
  /** Lines of console.log, warn and error; absent when the program was refused before it ran. */
  logs?: string[];
}

export interface ResolvedProvider {
  name: string;
  fns: Record<string, (...args: unknown[]) => Promise<unknown>>;
  /** Statements that run in the sandbox before the program, once all namespaces are there. */
  prelude?: string;
}

export interface ConnectorBinding {
  name: string;
  binding: { callTool(method: string, args: unknown): Promise<unknown> };
}

/** Whatever runs programs as RemoteExecutor does. */
export interface NativeExecutor {
  execute(request: ExecuteRequest): Promise<Execution>;
}

export interface CodemodeOptions {
  /** How long a program may run and wait for its tools, in milliseconds; 60,000 unless given. */
  timeout?: number;
  /** ES modules that programs may import by these names. */
  modules?: Record<string, string>;
  /** Answers requests of programs; without it they fail. */
  globalOutbound?: { fetch(request: Request): Response | Promise<Response> } | ((request: Request) => Response | Promise<Response>) | null;
  /** A result whose JSON text is longer is cut by limitResult; unless given, results are whole. */
  maxResultChars?: number;
  /** Limits of the service in place of those that follow from timeout and from the dialect. */
  limits?: Limits;
}

/** With executor, or with options of a RemoteExecutor that this one then makes and closes. */
export type CodemodeExecutorOptions = CodemodeOptions & ({ executor: NativeExecutor } | RemoteExecutorOptions);

/** An executor of the dialect of @cloudflare/codemode. Any number of executions may run at once, also from within a tool. */
export declare class CodemodeExecutor {
  /** Throws where the options make no sense; it does not connect yet. */
  constructor(executorOrOptions: NativeExecutor | CodemodeExecutorOptions);
  /**
   * Runs code as a model wrote it. Never rejects: what went wrong is the result's error. A bare record of functions in place
   * of providers is deprecated, and becomes the provider "codemode".
   */
  execute(
    code: string,
    providersOrFns: ResolvedProvider[] | Record<string, (...args: unknown[]) => Promise<unknown>>,
    options?: { connectors?: ConnectorBinding[] },
  ): Promise<ExecuteResult>;
  /** Ends the connection that it made; an executor that was given stays as it is. */
  close(): Promise<void>;
}

/** What a model wrote, as the text of one function. It does not change its own output. */
export declare function normalizeCode(code: string): string;

/**
 * The value itself where its JSON text has at most maxChars characters (24,000 unless given), else JSON data that fits: the
 * longest strings, arrays and objects are cut first, and each says so where it was cut. What has no JSON text is given back
 * as it is.
 */
export declare function limitResult(value: unknown, maxChars?: number): unknown;

/** The identifier that a tool of that name has in the sandbox. */
export declare function sanitizeToolName(name: string): string;
