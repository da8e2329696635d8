// The ways into @cloudflare/codemode, from npm as they are, with our executor behind them and a script in place of a model.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test, { after, before } from "node:test";
import { CodemodeExecutor } from "../src/codemode/index.js";
import { chromium, posting, servePages } from "./support/browser.mjs";
import { bundle, load } from "./support/bundle.mjs";
import { freePort, startDaemon } from "./support/daemon.mjs";
import { startWorkerd } from "./support/workerd.mjs";

let daemon;
let executor;
let pages;
before(async () => {
  pages = await servePages();
  daemon = await startDaemon({ port: await freePort(), flags: ["--allow-origin", pages.origin] });
  executor = new CodemodeExecutor({ url: daemon.url, timeout: 3000 });
});
after(async () => {
  await executor?.close();
  await Promise.all([daemon?.stop(), pages?.close()]);
});

const program = "async () => { console.log('looking'); const u = await codemode.getUser({ id: 2 }); return { name: u.name, sum: await codemode.add({ a: 1, b: 2 }) }; }";
const answer = { result: { name: "user 2", sum: 3 }, logs: ["looking"] };

test("/ai: a tool of the AI SDK, called by a scripted model", async () => {
  const { createCodeTool, generateText, isStepCount, stepCountIs, MockLanguageModelV3, tool, z } = await load(`
export { createCodeTool } from "@cloudflare/codemode/ai";
export * from "ai";
export { MockLanguageModelV3 } from "ai/test";
export { z } from "zod";`);
  const approved = [];
  const tools = {
    getUser: tool({ description: "A user", inputSchema: z.object({ id: z.number() }), execute: async ({ id }) => ({ name: `user ${id}` }) }),
    add: tool({ inputSchema: z.object({ a: z.number(), b: z.number() }), execute: async ({ a, b }) => a + b }),
    drop: tool({ inputSchema: z.object({}), needsApproval: true, execute: async () => approved.push("dropped") }),
  };
  const codemode = createCodeTool({ tools, executor });
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const programs = [program, "async () => codemode.add({ a: 'x' })", "async () => codemode.drop({})"];
  const prompts = [];
  const model = new MockLanguageModelV3({ doGenerate: async ({ prompt }) => {
    prompts.push(prompt);
    const code = programs.shift();
    const content = code ? [{ type: "tool-call", toolCallId: String(programs.length), toolName: "codemode", input: JSON.stringify({ code }) }] : [{ type: "text", text: "done" }];
    return { content, finishReason: { unified: code ? "tool-calls" : "stop", raw: undefined }, usage, warnings: [] };
  } });
  const { text, steps } = await generateText({ model, tools: { codemode }, prompt: "go", stopWhen: (isStepCount ?? stepCountIs)(6) });
  assert.equal(text, "done");
  assert.deepEqual(steps[0].toolResults[0].output, answer);
  const failures = steps.slice(1, 3).map((step) => String(step.content.find((part) => part.type === "tool-error").error));
  assert.match(failures[0], /Code execution failed: [^]*expected number/); // the validator's text, thrown in the sandbox
  assert.match(failures[1], /Code execution failed: Tool "drop" not found/);
  assert.deepEqual(approved, []);
  assert.match(JSON.stringify(prompts.at(-1)), /user 2/);
});

test("/tanstack-ai: a server tool, called by a scripted model in the loop of chat", async () => {
  const { chat, createCodeTool, tanstackTools, toolDefinition, z } = await load(`
export { createCodeTool, tanstackTools } from "@cloudflare/codemode/tanstack-ai";
export { chat, toolDefinition } from "@tanstack/ai";
export { z } from "zod";`);
  const tools = [
    toolDefinition({ name: "getUser", description: "A user", inputSchema: z.object({ id: z.number() }) }).server(async ({ id }) => ({ name: `user ${id}` })),
    toolDefinition({ name: "add", description: "A sum", inputSchema: z.object({ a: z.number(), b: z.number() }) }).server(async ({ a, b }) => a + b),
  ];
  const codemode = createCodeTool({ tools: [tanstackTools(tools), { name: "other", tools: { echo: { description: "", execute: async (x) => x } } }], executor });
  assert.deepEqual(await codemode.execute({ code: program }), answer);
  assert.deepEqual(await codemode.execute({ code: "other.echo({ a: [1] })" }), { result: { a: [1] } });
  await assert.rejects(codemode.execute({ code: "console.warn('w'); throw new Error('no')" }), /Code execution failed: no\n\nConsole output:\n\[warn\] w/);

  const programs = [program, "async () => other.echo({ twice: (await codemode.add({ a: 2, b: 2 })) })", "async () => { console.log('trying'); null.x; }"];
  const turns = []; // what the model was given, each time
  const model = { kind: "text", name: "script", model: "script", async *chatStream({ messages, tools: offered, runId = "r", threadId = "t" }) {
    turns.push({ messages: structuredClone(messages), tools: offered.map(({ name, description }) => ({ name, description })) });
    const ids = { runId, threadId, timestamp: 0, model: "script" };
    const code = programs.shift();
    yield { type: "RUN_STARTED", ...ids };
    if (code === undefined) {
      yield { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant", ...ids };
      yield { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "done", ...ids };
      yield { type: "TEXT_MESSAGE_END", messageId: "m", ...ids };
      yield { type: "RUN_FINISHED", finishReason: "stop", ...ids };
      return;
    }
    const toolCallId = `call-${programs.length}`;
    yield { type: "TOOL_CALL_START", toolCallId, toolCallName: codemode.name, ...ids };
    yield { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify({ code }), ...ids };
    yield { type: "TOOL_CALL_END", toolCallId, ...ids };
    yield { type: "RUN_FINISHED", finishReason: "tool_calls", ...ids };
  } };
  const text = await chat({ adapter: model, messages: [{ role: "user", content: "go" }], tools: [codemode], stream: false });
  assert.equal(text, "done");
  assert.deepEqual(turns.map(({ tools: [{ name }] }) => name), Array(4).fill(codemode.name));
  assert.match(turns[0].tools[0].description, /getUser/);
  const results = turns.at(-1).messages.filter(({ role }) => role === "tool").map(({ content }) => JSON.parse(content));
  assert.deepEqual(results.slice(0, 2), [answer, { result: { twice: 4 } }]);
  assert.match(JSON.stringify(results[2]), /Code execution failed: .*null.*Console output:.*trying/);
});

test("/mcp: servers, asked by a client of MCP", async () => {
  const { codeMcpServer, openApiMcpServer, McpServer, Client, InMemoryTransport, z } = await load(`
export { codeMcpServer, openApiMcpServer } from "@cloudflare/codemode/mcp";
export { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
export { Client } from "@modelcontextprotocol/sdk/client/index.js";
export { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
export { z } from "zod";`);
  const connected = async (server) => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = new Client({ name: "test", version: "1" });
    await Promise.all([server.connect(theirs), client.connect(ours)]);
    return { client, ask: async (name, code) => {
      const { content, isError } = await client.callTool({ name, arguments: { code } });
      return isError ? { error: content[0].text } : JSON.parse(content[0].text);
    } };
  };
  const upstream = new McpServer({ name: "upstream", version: "1" });
  upstream.registerTool("get-user", { description: "A user", inputSchema: { id: z.number() } }, async ({ id }) => ({ content: [{ type: "text", text: JSON.stringify({ name: `user ${id}` }) }] }));
  upstream.registerTool("fail", { inputSchema: {} }, async () => ({ isError: true, content: [{ type: "text", text: "it cannot" }] }));
  const code = await connected(await codeMcpServer({ server: upstream, executor }));
  const { tools } = await code.client.listTools();
  assert.deepEqual(tools.map(({ name }) => name), ["code"]);
  assert.match(tools[0].description, /get_user/);
  assert.deepEqual(await code.ask("code", "async () => [await codemode.get_user({ id: 3 }), await codemode.fail({}).catch((e) => e.message)]"), [{ name: "user 3" }, "it cannot"]);
  assert.match((await code.ask("code", "async () => { throw new Error('mine') }")).error, /mine/);
  assert.match((await code.ask("code", "for (;;);")).error, /Execution timed out/);
  await code.client.close();

  const spec = { openapi: "3.0.0", info: { title: "t", version: "1" }, paths: { "/users/{id}": { get: { summary: "one user", responses: {} } }, "/long": { get: { summary: "x".repeat(200_000), responses: {} } } } };
  const asked = [];
  const api = await connected(openApiMcpServer({ spec, executor, request: async (options) => {
    asked.push(options);
    return { ok: options.path };
  } }));
  assert.deepEqual(await api.ask("search", "async () => { const spec = await codemode.spec(); return Object.keys(spec.paths); }"), ["/users/{id}", "/long"]);
  assert.deepEqual(await api.ask("execute", "async () => codemode.request({ method: 'GET', path: '/users/1' })"), { ok: "/users/1" });
  assert.deepEqual(asked.map(({ method, path }) => [method, path]), [["GET", "/users/1"]]);
  await api.client.close();
});

test("/browser: a tool in a page", { skip: chromium === undefined && "there is no Chromium" }, async () => {
  const { path, remove } = await bundle('export { createBrowserCodeTool } from "@cloudflare/codemode/browser";', ["--platform=browser"]);
  try {
    pages.extra.set("/browser.js", await readFile(path));
  } finally {
    await remove();
  }
  const script = `import { createBrowserCodeTool } from "/browser.js";
import { CodemodeExecutor } from "/src/codemode/index.js";
const executor = new CodemodeExecutor({ url: ${JSON.stringify(daemon.tcp)} });
const tool = (execute) => ({ description: "", inputSchema: { type: "object" }, execute });
const tools = { "get-user": tool(async ({ id }) => ({ name: "user " + id })), add: tool(async ({ a, b }) => a + b), secret: { ...tool(async () => "told"), needsApproval: true } };
const { execute } = createBrowserCodeTool({ tools, executor });`;
  const got = await pages.page(posting(script, `(async () => [await execute({ code: ${JSON.stringify(program.replace("getUser", "get_user"))} }), await execute({ code: "codemode.secret()" }).catch((e) => e.message)])()`));
  assert.deepEqual(JSON.parse(got), [answer, 'Code execution failed: Tool "secret" not found']);
});

// The durable runtime: approvals, pauses, replay, steps, snippets, in a Durable Object.
test("root: createCodemodeRuntime in workerd", async () => {
  const { path, remove } = await bundle('export * from "@cloudflare/codemode";', ["--platform=neutral", "--main-fields=module,main", "--external:cloudflare:*", "--external:node:*"]);
  let workerd;
  try {
    workerd = await startWorkerd(await readFile(new URL("support/durable.mjs", import.meta.url), "utf8"), {
      port: await freePort(),
      modules: { "codemode.js": path },
      flags: '"nodejs_compat", "enable_ctx_exports", "experimental"',
      more: 'bindings = [(name = "HOST", durableObjectNamespace = "Host")], durableObjectNamespaces = [(className = "Host", uniqueKey = "host", enableSql = true)], durableObjectStorage = (localDisk = "disk"),',
    });
    const ask = async (step, more = {}) => JSON.parse(await workerd.ask({ url: daemon.tcp, step, ...more }));

    const paused = await ask("execute", { code: "async () => { console.log('begun'); const n = await codemode.step('dice', async () => Math.random()); const r = await db.read({ id: 1 }); const w = await db.write({ id: 1, value: n }); return { r, w, same: n === w.value }; }" });
    assert.equal(paused.status, "paused", JSON.stringify(paused));
    assert.deepEqual(paused.pending.map(({ connector, method }) => [connector, method]), [["db", "write"]]);
    assert.deepEqual(await ask("calls"), ["read"]);

    const approved = await ask("approve", { executionId: paused.executionId });
    assert.deepEqual([approved.status, approved.result], ["completed", { r: { id: 1, at: "start" }, w: approved.result.w, same: true }], JSON.stringify(approved));
    assert.deepEqual(approved.logs, ["begun"]);
    assert.deepEqual(await ask("calls"), ["read", "write"]); // what was done before the pause was replayed, not done again

    await ask("save", { executionId: (await ask("execute", { code: "async () => (await db.read({ id: 5 })).id * 2" })).executionId, name: "twice" });
    const snippet = await ask("execute", { code: "async () => [await codemode.run('twice'), (await codemode.search('read')).results.length > 0]" });
    assert.deepEqual(snippet.result, [10, true], JSON.stringify(snippet));

    const rejected = await ask("execute", { code: "async () => db.write({ id: 2, value: 0 })" });
    assert.equal(await ask("reject", { executionId: rejected.executionId, seq: rejected.pending[0].seq }), true);
    const failed = await ask("execute", { code: "async () => { console.log('l'); await db.fail({}); }" });
    assert.deepEqual([failed.status, failed.error], ["error", "Code execution failed: the database said no\n\nConsole output:\nl"]);
    const swallowed = await ask("execute", { code: "async () => { try { await db.write({ id: 3 }); } catch {} return db.read({ id: 3 }).catch((e) => e.message); }" });
    assert.equal(swallowed.status, "paused");
    assert.deepEqual(await ask("calls"), ["read", "write", "read", "read"]);
  } catch (error) {
    throw workerd ? Object.assign(error, { message: `${error.message}\n${workerd.errors}` }) : error;
  } finally {
    await Promise.all([workerd?.stop(), remove()]);
  }
});
