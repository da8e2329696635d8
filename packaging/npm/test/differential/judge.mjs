// Runs rows of the corpus through an executor of the dialect and judges the answers by the rules of its first line.
import { canon, canonLogs } from "./canon.mjs";
import { makeProviders } from "./providers.mjs";

/** What the corpus's outbound handler answers. */
async function echo(request) {
  const { pathname } = new URL(request.url);
  if (pathname === "/status/404") return new Response("nope", { status: 404 });
  if (pathname === "/throw") throw new Error("outbound refused");
  return Response.json({ method: request.method, url: request.url, header: request.headers.get("x-probe"), body: await request.text() });
}

/** The answer to row in the form of its expect. executorOf makes an executor of the options that the row names. */
export async function answer(row, executorOf) {
  const calls = [];
  const { providers, connectors } = makeProviders(row.providers ?? "std", (namespace, name, args) => calls.push([`${namespace}.${name}`, canon(args)]));
  const options = connectors && { connectors: connectors.map(({ name, handle }) => ({ name, binding: { callTool: handle } })) };
  const executor = executorOf({ timeout: row.timeout ?? 5000, modules: row.modules, globalOutbound: row.outbound === "echo" ? { fetch: echo } : null });
  const warn = console.warn;
  console.warn = () => {};
  let got;
  try {
    const result = await executor.execute(row.code, providers, options);
    got = {
      outcome: result.error ? "error" : "ok",
      keys: Object.keys(result).sort(),
      ...(result.error ? { error: canon(result.error) } : { result: canon(result.result) }),
      ...(result.logs === undefined ? {} : { logs: canonLogs(result.logs) }),
    };
  } catch (error) {
    got = { outcome: "threw", error: { name: error.name, message: error.message } };
  } finally {
    console.warn = warn;
  }
  if (row.settle) await new Promise((resolve) => setTimeout(resolve, row.settle));
  return { ...got, calls: calls.length > 120 ? { $t: "calls", n: calls.length, first: calls.slice(0, 2), last: calls.slice(-2) } : calls };
}

const text = (value) => JSON.stringify(value);

/** What is otherwise than the reference has it: a list of texts, empty when nothing is. */
export function faults(row, got) {
  const want = row.expect;
  if (want.outcome === "hang" || want.outcome === "crash") return hung(row, got);
  if (want.outcome === "threw") {
    const found = got.outcome === "error" ? [] : [`outcome: got ${text(got)}, want an error`];
    if (found.length === 0 && /SyntaxError/.test(want.error.message) && !/SyntaxError/.test(got.error)) found.push(`error: ${got.error} does not say that it is a syntax error`);
    return [...found, ...differing(row, got, want, ["calls"])];
  }
  return differing(row, got, want, ["outcome", "result", "error", "logs", "calls"]);
}

// hung is for rows on which the reference gives no answer: want says what the dialect promises there.
function hung(row, got) {
  if (row.want === undefined) return got.outcome === "error" || got.outcome === "ok" ? [] : [`outcome: got ${text(got)}`];
  return differing(row, got, row.want, Object.keys(row.want));
}

function differing(row, got, want, fields) {
  return fields
    .filter((field) => text(got[field]) !== text(want[field]))
    .map((field) => `${field}: got ${String(text(got[field])).slice(0, 300)}, want ${String(text(want[field])).slice(0, 300)}`);
}
