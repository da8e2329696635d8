// Types of the client. The protocol itself: docs and ipc/protocol in the repository.

/** How an execution ended badly, or why it was not run. The set is closed and append-only. */
export type ErrorType =
  | "exception" | "syntax" | "module" | "cpu_timeout" | "wall_timeout" | "total_timeout" | "memory_limit"
  | "result_too_large" | "result_unserializable" | "tool_limit" | "cancelled" | "worker_crashed" | "deadlock"
  | "invalid_params" | "invalid_code" | "invalid_provider" | "overloaded" | "queue_timeout" | "draining" | "maintenance"
  | "unauthorized" | "unsupported_protocol" | "session_limit" | "handle_unknown" | "session_unknown" | "internal"
  | "parse_error" | "invalid_request" | "unknown_method";

export interface ErrorInfo {
  readonly type: ErrorType;
  /** JSON-RPC error code. */
  readonly code: number;
  /** The program had started. */
  readonly ran: boolean;
  /** The same request may succeed later, unchanged. */
  readonly retryable: boolean;
}

export declare const errorTypes: readonly ErrorInfo[];

/** A place in the submitted text; line and column count from 1, columns in UTF-16 code units. */
export interface Position {
  file: string;
  line: number;
  column: number;
  sourceLine?: string;
}

export interface LogLine {
  level: "debug" | "info" | "log" | "warn" | "error";
  /** Milliseconds since the program began to run. */
  time: number;
  text: string;
  /** What a bound on logs left out here. */
  truncated?: { lines: number; bytes: number };
}

/** A tool call of a program that ended in an error. A pending one may have had its effect. */
export interface ToolCallRecord {
  call?: number;
  provider?: string;
  path?: string[];
  status?: "ok" | "error" | "pending";
  ms?: number;
  /** Calls that the list leaves out here. */
  omitted?: number;
}

/** Times in milliseconds. */
export interface Stats {
  queueMs: number;
  wallMs: number;
  totalMs: number;
  cpuMs: number;
  peakHeapBytes: number;
  toolCalls: number;
  fetches: number;
  worker?: string;
  limits?: Required<Limits>;
}

export declare class ExecutorError extends Error implements ErrorInfo {
  readonly type: ErrorType;
  readonly code: number;
  readonly ran: boolean;
  readonly retryable: boolean;
  /** What the program had printed. */
  readonly logs: LogLine[];
  readonly calls?: ToolCallRecord[];
  readonly stats?: Stats;
  /** Name of what the program threw, as "TypeError". */
  readonly thrownName?: string;
  /** What it threw, where that was no Error. */
  readonly thrown?: unknown;
  /** Frames of the submitted text. */
  readonly programStack?: string;
  readonly position?: Position;
  /** With worker_crashed: "signal:SIGSEGV", "oom_kill", "unresponsive". */
  readonly reason?: string;
  /** With invalid_params: the path of the parameter, as "limits.cpuMs". */
  readonly field?: string;
  /** With overloaded and its kin. */
  readonly retryAfterMs?: number;
}

/** Each is lowered to the service's maximum; docs/limits.md has the defaults. */
export interface Limits {
  cpuMs?: number;
  wallMs?: number;
  totalMs?: number;
  heapMiB?: number;
  bufferMiB?: number;
  slackMiB?: number;
  stackKiB?: number;
  resultBytes?: number;
  messageBytes?: number;
  moduleBytes?: number;
  valueDepth?: number;
  valueParts?: number;
  logBytes?: number;
  logLines?: number;
  toolCalls?: number;
  toolCallsInFlight?: number;
  fetches?: number;
  fetchBytes?: number;
  timers?: number;
}

/** What a tool is told beside its arguments: `this` of a tool that is declared with `function`. */
export interface CallContext {
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly execution: string;
  readonly call: number;
}

// Arguments come from the program, and nothing holds them to a type: a tool must look at them itself.
export type Tool = (this: CallContext, ...args: any[]) => unknown;

/** Tools by name; a tool or an object may have further tools in it. Only own enumerable properties are tools. */
export interface Tools {
  [name: string]: Tool | Tools;
}

/** Answers for every name. */
export type AnyTool = (path: string[], args: unknown[], context: CallContext) => unknown;

export interface Module {
  /** Base64 where type is "bytes". */
  source: string;
  type?: "module" | "commonjs" | "json" | "text" | "bytes";
}

export interface ExecuteRequest {
  code: string;
  form?: "auto" | "module" | "function" | "script";
  language?: "javascript" | "typescript";
  /** File name in stack traces; "main.js" unless given. */
  name?: string;
  /** Handed to the entry function. */
  input?: unknown;
  providers?: Record<string, Tools | AnyTool>;
  modules?: Record<string, Module>;
  /** "none" unless given, "host" when there is fetch. */
  network?: "none" | "host" | "direct";
  limits?: Limits;
  /** Keeps the program where its value has functions, iterators or streams: they can be used, and their state stays. */
  retain?: boolean | { ttlMs?: number };
  trace?: { traceparent?: string; tracestate?: string };
  /** Unique in the session; one is made unless given. */
  execution?: string;
  /** Answers the program's requests; it must follow no redirects. globalThis.fetch does. */
  fetch?: (request: Request, context: CallContext) => Response | Promise<Response>;
  /** Hears of lines as they are printed. */
  onLog?: (line: LogLine) => void;
  onState?: (state: { state: "queued" | "running"; position?: number }) => void;
  /** Cancels the program. execute still waits for the outcome, for cancelGraceMs. */
  signal?: AbortSignal;
}

export interface Execution<T = unknown> {
  value: T;
  logs: LogLine[];
  stats: Stats;
  /** Where the program is kept; see ExecuteRequest.retain. */
  retained?: Retained;
}

/**
 * A program that is kept for the functions, iterators and streams in its value. Those are asynchronous here, and each has a
 * dispose method, but for streams, which are given up by cancel. Calls begin in the order in which they were made, but for those
 * with a Blob, Request or Response among the arguments, which has to be read first. The program ends once all were given up,
 * after idleMs without a call, ttlMs after it settled, or with its session; later calls reject with handle_unknown, or with
 * draining once the executor was closed.
 */
export interface Retained {
  readonly id: string;
  readonly idleMs: number;
  readonly ttlMs: number;
  /** Gives up everything at once. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** What a function in the value of a retained program is. Its tool calls are answered by the providers of the program. */
export interface RetainedFunction<A extends unknown[] = any[], R = unknown> {
  (...args: A): Promise<R>;
  dispose(): void;
  [Symbol.dispose](): void;
}

/** What an iterator in the value of a retained program is. */
export interface RetainedIterator<T = unknown> extends AsyncIterableIterator<T> {
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Options of one call of a retained function. Limits on memory, values and timers stay those of the program. */
export type InvokeOptions = Pick<ExecuteRequest, "limits" | "trace" | "execution" | "onLog" | "onState" | "signal">;

export interface WebSocketLike {
  readonly protocol: string;
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: "open" | "error", listener: () => void): void;
  addEventListener(type: "message", listener: (event: { data: unknown }) => void): void;
  addEventListener(type: "close", listener: (event: { code: number; reason: string }) => void): void;
}

/** All numbers are below 2 ** 31. */
export interface RemoteExecutorOptions {
  /** unix:/path (Node, Deno and Bun), tcp://host:port, ws://host:port or wss://host:port. */
  url: string;
  /** Bearer token, of printable ASCII characters. Browsers cannot send one. */
  token?: string;
  /** Options of node:tls with wss, as { ca }; Node, Deno and Bun. */
  tls?: object;
  /** A WebSocket class in place of the runtime's own way. */
  webSocket?: new (url: string, protocols: string[], options?: { headers: Record<string, string> }) => WebSocketLike;
  /** Who is calling, for the operator of the service. */
  name?: string;
  /** The service is probed after so much silence, and lost after as much again. 15,000 unless given. */
  keepAliveMs?: number;
  /** How long connecting may take, with further attempts once there was a connection. 30,000 unless given. */
  connectTimeoutMs?: number;
  /** A session makes way for another one at this age, once what runs in it has ended. An hour unless given. */
  maxSessionAgeMs?: number;
  /** How long a cancelled execute waits for its outcome. 10,000 unless given. */
  cancelGraceMs?: number;
  /** One message to the service; its own may be twice as large, counting 128 for each frame that continues one. 32 MiB unless given. */
  maxMessageBytes?: number;
}

/** What the service told of itself. */
export interface ServerInfo {
  session: string;
  protocol: string;
  server: { name: string; version?: string };
  limits: Required<Limits>;
}

/**
 * Runs programs on a remote executord. It connects when it is first used, and again when the connection is lost: programs
 * that run do not notice, within the time that the service keeps a session. When the service drains, further programs go to
 * another session. Any number of callers may use one at once. An idle one does not keep a process alive, but for a while where
 * it has lost its connection and something is retained.
 */
export declare class RemoteExecutor {
  /** Throws a TypeError or an ExecutorError where the options make no sense; it does not connect yet. */
  constructor(options: RemoteExecutorOptions);
  /**
   * Runs one program and resolves to its value. Rejects with an ExecutorError when the program ended otherwise or was not
   * run; one of type "internal" after the connection was lost leaves open whether the program ran. It is never run twice.
   */
  execute<T = unknown>(request: ExecuteRequest): Promise<Execution<T>>;
  /** Calls a function in the value of a retained program, as calling it does; the result has its lines and figures too. */
  invoke<T = unknown>(f: RetainedFunction<any[], T>, args?: unknown[], options?: InvokeOptions): Promise<Execution<T>>;
  /** Connects if need be. */
  server(): Promise<ServerInfo>;
  /** Cancels what runs, waits for it, and ends the connection. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The text of a value in the protocol's codec. Rejects with a ValueError. */
export declare function encode(value: unknown): Promise<string>;
/** The value of a text. Throws a SyntaxError or a ValueError. */
export declare function decode(text: string): unknown;

export declare class ValueError extends TypeError {
  /** JSON Pointer (RFC 6901) into the encoded text. */
  readonly path: string;
}

/** Stands for what the service keeps, in values that are decoded by themselves. */
export declare class Handle {
  readonly id: string;
  readonly kind: "function" | "iterator" | "stream";
}
