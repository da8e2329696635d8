// The live page of the admin app: it asks the JSON API what `executorctl top` asks, and shows it. It changes nothing, and
// asks for nothing but GET. Texts of programs and callers are hostile: whatever is shown goes through show() into a text
// node, and the page's Content-Security-Policy has no other way in (Trusted Types, none of them). URLs are relative, for
// the page may be served below a path.

const every = 2000; // milliseconds from one look to the next
const patience = 10_000; // for one answer
const span = 600_000; // that the charts show at most
const leastSpan = 60_000;
const mostSamples = 2 * span / every; // news make some come early
const recent = 30_000; // of executions whose times make one point of the chart
const mostNews = 60;
const mostRows = 100;
const bin = 10_000; // of the chart of endings

// All kinds of events; each is a type of server-sent event of its own (package events).
const kinds = [
  "worker_started", "worker_ready", "worker_failed", "worker_crashed", "worker_stopped", "worker_retired", "execution_failed",
  "overload_began", "overload_ended", "maintenance_began", "maintenance_ended", "service_ready", "drain_began", "reloaded",
  "reload_failed", "auth_failed", "retained_lost",
];

const urgent = ["maintenance_began", "maintenance_ended", "service_ready", "drain_began", "reloaded", "reload_failed"];

// ---- Elements

const find = (id) => document.getElementById(id);

/** Text without what could change how its surroundings read: control characters and those that turn the direction. */
const harmless = (text) => String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");

function show(element, text) {
  const shown = harmless(text);
  if (element.textContent !== shown) element.textContent = shown;
  return element;
}

function make(name, look = "", text = "", ...children) {
  const element = document.createElement(name);
  if (look !== "") element.className = look;
  if (text !== "") show(element, text);
  element.append(...children);
  return element;
}

function draw(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/**
 * Makes the children of parent those of items. An item that has the key of an earlier one keeps its element, and with it
 * the focus and the selection that may be in it.
 */
function keep(parent, items, key, create, update) {
  const old = new Map([...parent.children].map((element) => [element.dataset.key, element]));
  let at = null;
  for (const item of items) {
    const name = String(key(item));
    const element = old.get(name) ?? create(item);
    element.dataset.key = name;
    old.delete(name);
    update(element, item);
    const next = at === null ? parent.firstChild : at.nextSibling;
    if (next !== element) parent.insertBefore(element, next);
    at = element;
  }
  for (const element of old.values()) element.remove();
}

/** Fills a table; columns have show(item), and may have look(item) and opens, for an execution that can be looked into. */
function table(id, items, key, columns) {
  keep(find(id).tBodies[0], items, key, () => {
    const row = make("tr");
    columns.forEach((column, i) => {
      const cell = make(i === 0 ? "th" : "td");
      if (i === 0) cell.scope = "row";
      if (column.opens) cell.append(make("button"));
      row.append(cell);
    });
    return row;
  }, (row, item) => columns.forEach((column, i) => {
    const cell = row.cells[i];
    cell.className = column.look?.(item) ?? "";
    show(column.opens ? cell.firstChild : cell, column.show(item));
    if (column.opens) cell.firstChild.dataset.execution = item.id;
  }));
}

/** Names and values; those without a value are left out. */
function facts(list, pairs) {
  const given = pairs.filter(([, value]) => value !== undefined && value !== null && value !== "");
  list.replaceChildren(...given.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", String(value))]));
}

// ---- Words

function time(ms) {
  if (!(ms >= 0)) return "–";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const size = (bytes) => (bytes < 2 ** 20 ? `${Math.round(bytes / 1024)} KiB` : `${Math.round(bytes / 2 ** 20)} MiB`);
const clock = (date) => new Date(date).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** How a state or an ending is: good, warn, bad. */
function tone(state) {
  if (["ok", "ready", "idle", "running", "retained"].includes(state)) return "good";
  if (["queued", "starting", "restoring", "leaving", "booting", "checking", "opening", "maintenance", "drain_delay", "draining", "hurrying", "closing"].includes(state)) return "warn";
  return "bad";
}

const stateWords = {
  booting: "Starting", checking: "Starting: one program is being run as a check", opening: "Starting: listeners are being opened", ready: "Ready",
  maintenance: "In maintenance: nothing new is taken, what is under way goes on",
  drain_delay: "Draining: callers are being turned away, everything is still served",
  draining: "Draining: nothing new is taken, what runs has its grace", hurrying: "Draining: what runs is being cancelled",
  closing: "Stopping", stopped: "Stopped", failed: "Failed",
};

// ---- What is known

const known = {
  status: null, workers: [], live: [], bad: [], settings: [], news: [],
  samples: [], // {at, waiting, running, p50, p95, ok, bad, away}, oldest first; a sample without figures is a gap
  ended: new Map(), // id of an execution: {at, ms}
  since: null, // when the service could not be reached any more
  fault: "",
  restarted: null,
};

/** Now, by the service's clock, which times of the service are to be compared with. */
let skew = 0;
const now = () => Date.now() + skew;

async function ask(path) {
  const answer = await fetch(`v1/${path}`, { signal: AbortSignal.timeout(patience), cache: "no-store", credentials: "omit", redirect: "error" });
  if (answer.ok) return answer.json();
  let words = `it answered with status ${answer.status}`;
  try {
    words = (await answer.json()).error.message;
  } catch { /* no answer of the app */ }
  throw new Error(words);
}

function percentile(sorted, share) {
  return sorted.length === 0 ? undefined : sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)];
}

function learnTimes(ended) {
  for (const x of ended) if (x.began) known.ended.set(x.id, { at: Date.parse(x.since), ms: x.queueMs + x.totalMs });
  for (const [id, { at }] of known.ended) if (at < now() - recent) known.ended.delete(id);
  return [...known.ended.values()].map(({ ms }) => ms).sort((a, b) => a - b);
}

/** What was counted since the last look; after a restart that is all there is, and at the first look nothing. */
function counted(status, before) {
  const of = (totals) => ({
    ok: totals.outcomes.ok ?? 0, bad: totals.executions - (totals.outcomes.ok ?? 0), away: totals.overloaded + totals.queueTimeouts,
  });
  const all = of(status.totals);
  if (before === null) return { ok: 0, bad: 0, away: 0 };
  const base = before.events.instance === status.events.instance ? of(before.totals) : { ok: 0, bad: 0, away: 0 };
  return Object.fromEntries(Object.entries(all).map(([name, n]) => [name, Math.max(0, n - base[name])]));
}

function remember(sample) {
  known.samples.push({ at: Date.now(), ...sample });
  while (known.samples.length > mostSamples || known.samples[0].at < Date.now() - span - every) known.samples.shift();
}

let settingsDue = true;

async function look() {
  const [status, workers, live, bad, ended] = await Promise.all([
    ask("status"), ask("workers"), ask(`executions?state=queued,running,retained&limit=${mostRows}`), ask("executions?outcome=failed&limit=30"),
    ask("executions?state=ended&limit=256"),
  ]);
  skew = Date.parse(status.started) + status.uptimeMs - Date.now();
  const before = known.status;
  const other = before !== null && before.events.instance !== status.events.instance;
  if (other) {
    known.restarted = Date.now();
    known.ended.clear();
  }
  const times = learnTimes(ended.executions);
  remember({
    waiting: status.queue.waiting, running: status.queue.running, p50: percentile(times, 0.5), p95: percentile(times, 0.95), ...counted(status, before),
  });
  Object.assign(known, { status, workers: workers.workers, live: live.executions, bad: bad.executions, since: null, fault: "" });
  if (other || settingsDue) {
    known.settings = (await ask("settings")).settings;
    settingsDue = false;
  }
}

// ---- Events

const stream = { source: null, instance: "", last: 0 };

/** Opens the stream where there is none: after the last event that was seen, or the last few of a service that is new. */
function listen() {
  if (stream.source !== null || known.status === null || known.since !== null || document.hidden) return;
  const { instance, last } = known.status.events;
  if (instance !== stream.instance) Object.assign(stream, { instance, last: Math.max(0, last - mostNews) });
  const source = new EventSource(`v1/events?after=${stream.last}`);
  stream.source = source;
  for (const kind of kinds) source.addEventListener(kind, (message) => hear(source, message));
  source.addEventListener("missed", (message) => {
    const { missed, restarted } = JSON.parse(message.data);
    if (stream.source === source) tell({ key: `missed ${Date.now()}`, time: now(), kind: "missed", detail: restarted ? "the service was restarted" : `${missed} events are not kept any more` });
  });
  // The browser comes again by itself after a lost connection, with the id of the last event, but not after a refusal.
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) hush(source); };
}

function hush(source) {
  source?.close();
  if (stream.source === source) stream.source = null;
}

function hear(source, message) {
  if (stream.source !== source) return;
  const event = JSON.parse(message.data);
  const [instance] = message.lastEventId.split("-");
  Object.assign(stream, { instance, last: event.id });
  tell({ ...event, key: message.lastEventId });
  settingsDue ||= event.kind === "reloaded" || event.kind === "reload_failed";
  if (urgent.includes(event.kind)) soon();
}

function tell(item) {
  if (known.news.some(({ key }) => key === item.key)) return;
  known.news.unshift(item);
  known.news.length = Math.min(known.news.length, mostNews);
}

function eventWords(e) {
  const took = e.tookMs ? time(e.tookMs) : "";
  return [
    e.worker, e.execution, e.callerId && `(${e.callerId})`, e.identity, e.type, e.reason, e.detail, e.who && `by ${e.who}`, took,
    e.count && `${e.count} turned away`, e.omitted && `${e.omitted} more of these left out`,
  ].filter(Boolean).join(" · ");
}

const eventTone = (kind) => (/failed|crashed|overload_began|missed/.test(kind) ? "bad" : /drain|maintenance_began|stopped/.test(kind) ? "warn" : "");

// ---- Charts

const wide = 600, high = 100; // units of a chart's own

/** The parts of a chart that stay: a key with figures, the plot, and the times below. */
function chart(id, series) {
  const figure = find(id);
  const key = make("ul", "key");
  const svg = draw("svg", { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img" });
  const most = make("span", "most"), least = make("span", "least", "0");
  for (const y of [0, high / 2, high]) svg.append(draw("path", { class: "grid", d: `M0 ${y}H${wide}` }));
  const body = svg.appendChild(draw("g", {}));
  const figures = series.map(({ name, look, mark }) => {
    const sign = draw("svg", { viewBox: "0 0 20 8", "aria-hidden": "true" });
    sign.append(mark === "bar" ? draw("rect", { class: `bar ${look}`, width: 20, height: 8 }) : draw("path", { class: `line ${look}`, d: "M0 4H20" }));
    const value = make("span");
    key.append(make("li", "", "", sign, `${name} `, value));
    return value;
  });
  figure.append(key, make("div", "plot", "", svg, most, least), make("div", "times faint", "", make("span", "from"), make("span", "", "now")));
  return { svg, body, most, figures };
}

/** The time that the charts show: what is known, in whole minutes. */
let shown = leastSpan;

function scale() {
  const age = Date.now() - (known.samples[0]?.at ?? Date.now());
  shown = Math.min(span, Math.max(1, Math.ceil(age / leastSpan)) * leastSpan);
  for (const from of document.querySelectorAll(".times .from")) show(from, `${shown / 60_000} min ago`);
}

const x = (at) => (wide * Math.max(0, 1 - (Date.now() - at) / shown)).toFixed(1);

/** A number that is good to read at the top of an axis. */
function top(most) {
  const step = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 5, 10].map((n) => n * step).find((n) => n >= most) ?? 1;
}

function lines(to, series, words) {
  const most = top(Math.max(0, ...known.samples.flatMap((sample) => series.map(({ name }) => sample[name] ?? 0))));
  to.body.replaceChildren(...series.map(({ name, look }) => {
    let path = "", down = false;
    for (const sample of known.samples) {
      const value = sample[name];
      if (value !== undefined) path += `${down ? "L" : "M"}${x(sample.at)} ${(high * (1 - value / most)).toFixed(1)}`;
      if (value !== undefined && !down) path += "h0.1"; // a point alone is seen too
      down = value !== undefined;
    }
    return draw("path", { class: `line ${look}`, d: path });
  }));
  show(to.most, words(most));
  const last = known.samples.at(-1) ?? {};
  const say = (value) => (value === undefined ? "–" : words(value));
  series.forEach(({ name }, i) => show(to.figures[i], say(last[name])));
  to.svg.setAttribute("aria-label", series.map(({ name }) => {
    const values = known.samples.map((sample) => sample[name]).filter((value) => value !== undefined);
    return `${name}: now ${say(last[name])}, at most ${say(values.length ? Math.max(...values) : undefined)} of late`;
  }).join("; "));
}

function bars(to, series) {
  const bins = new Map();
  for (const sample of known.samples) {
    const at = Math.floor(sample.at / bin) * bin;
    const into = bins.get(at) ?? bins.set(at, Object.fromEntries(series.map(({ name }) => [name, 0]))).get(at);
    for (const { name } of series) into[name] += sample[name] ?? 0;
  }
  const most = top(Math.max(0, ...[...bins.values()].map((into) => sum(Object.values(into)))));
  to.body.replaceChildren(...[...bins].flatMap(([at, into]) => {
    const left = x(at), width = (0.9 * (x(Math.min(at + bin, Date.now())) - left)).toFixed(1);
    let y = high;
    return series.filter(({ name }) => into[name] > 0).map(({ name, look }) => {
      const height = high * into[name] / most;
      y -= height;
      return draw("rect", { class: `bar ${look}`, x: left, y: y.toFixed(2), width, height: height.toFixed(2) });
    });
  }));
  show(to.most, most);
  const total = (name) => sum(known.samples.map((sample) => sample[name] ?? 0));
  series.forEach(({ name }, i) => show(to.figures[i], total(name)));
  to.svg.setAttribute("aria-label", `of late ${series.map(({ name, words }) => `${total(name)} ${words}`).join(", ")}`);
}

const loadSeries = [{ name: "waiting", look: "two" }, { name: "running", look: "one" }];
const latencySeries = [{ name: "p50", look: "one" }, { name: "p95", look: "two" }];
const endingSeries = [
  { name: "ok", words: "with a value", look: "good", mark: "bar" }, { name: "bad", words: "badly", look: "bad", mark: "bar" },
  { name: "away", words: "turned away", look: "warn", mark: "bar" },
];
const charts = {
  load: chart("load", loadSeries),
  latency: chart("latency", latencySeries),
  endings: chart("endings", endingSeries.map((series) => ({ ...series, name: series.words }))),
};
const outcomes = find("outcomes").appendChild(make("ul", "counts"));
const noOutcomes = find("outcomes").appendChild(make("p", "faint", "None yet."));

function countBars(counts) {
  const list = Object.entries(counts).filter(([, n]) => n > 0).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const most = Math.max(1, ...list.map(([, n]) => n));
  noOutcomes.hidden = list.length > 0;
  keep(outcomes, list, ([type]) => type, ([type]) => {
    const svg = draw("svg", { viewBox: `0 0 100 10`, preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.append(draw("rect", { class: `bar ${tone(type)}`, height: 10 }));
    return make("li", "", "", make("span", "", type), svg, make("span", "number"));
  }, (item, [, n]) => {
    item.children[1].firstChild.setAttribute("width", (100 * n / most).toFixed(2));
    show(item.children[2], n);
  });
}

// ---- Tables

const ago = (date) => `${time(Math.max(0, now() - Date.parse(date)))} ago`;
const brief = () => "brief", number = () => "number", wordy = () => "wide";
const opener = { opens: true, show: (e) => e.id, look: brief };

const badColumns = [
  opener, { show: (e) => e.outcome, look: () => "brief bad" }, { show: (e) => ago(e.since), look: brief }, { show: (e) => e.identity, look: brief },
  { show: (e) => e.name, look: () => "code" }, { show: (e) => [e.reason, e.message].filter(Boolean).join(": "), look: wordy },
];
const liveColumns = [
  opener, { show: (e) => e.state, look: (e) => `brief ${tone(e.state)}` }, { show: (e) => time(Math.max(0, now() - Date.parse(e.since))), look: brief },
  { show: (e) => e.identity, look: brief }, { show: (e) => e.name, look: () => "code" }, { show: (e) => e.worker, look: brief },
  { show: (e) => time(e.cpuMs), look: number }, { show: (e) => e.toolCalls, look: number },
];
const workerColumns = [
  { show: (w) => w.name, look: brief }, { show: (w) => (w.due ? `${w.state}, to be replaced` : w.state), look: (w) => `brief ${tone(w.state)}` },
  { show: (w) => w.execution, look: brief }, { show: (w) => time(w.ageMs), look: number }, { show: (w) => w.executions, look: number },
  { show: (w) => size(w.rssBytes), look: number }, { show: (w) => w.pid, look: number },
];
const newsColumns = [
  { show: (e) => clock(e.time), look: brief }, { show: (e) => e.kind.replaceAll("_", " "), look: (e) => `brief ${eventTone(e.kind)}` }, { show: eventWords, look: wordy },
];
const settingColumns = [
  { show: (s) => s.name, look: brief },
  {
    show: (s) => (s.value === "" ? "–" : s.unit && s.unit !== "duration" ? `${s.value} ${s.unit}` : s.value) + (s.afterRestart === undefined ? "" : `, after a restart ${s.afterRestart}`),
    look: (s) => (s.source === "default" ? "code faint" : "code"),
  },
  { show: (s) => (s.file ? `${s.file}, line ${s.line}` : s.source) + (s.changedSinceBoot ? ", changed since the start" : ""), look: brief },
  { show: (s) => s.help, look: () => "wide faint" },
];

// ---- The page

function head() {
  const { status, since, restarted } = known;
  const state = find("state");
  let words = "Asking the service…", kind = "";
  if (since !== null) {
    words = `Cannot reach the service since ${clock(since)}: ${known.fault}. What is below is of before. It is asked again every ${every / 1000} s.`;
    kind = "bad";
  } else if (status !== null) {
    const { name, reason, who } = status.state;
    words = [stateWords[name] ?? name, reason, who && `by ${who}`, name !== "ready" && `since ${clock(status.state.since)}`].filter(Boolean).join(" · ");
    if (restarted !== null) words += ` · restarted at ${clock(restarted)}`;
    kind = tone(name);
  }
  state.className = `state ${kind}`;
  show(state, paused ? `Paused: nothing changes until it goes on · ${words}` : words);
  document.title = `${since === null ? (status?.state.name ?? "") : "unreachable"} · executord`;
  if (status === null) return;
  show(find("about"), `${status.version} · up ${time(status.uptimeMs)} · process ${status.pid} · isolation: ${status.isolation.join(", ")}`);
  keep(find("warnings"), status.warnings, (text) => text, () => make("li"), show);
}

function figures({ queue, workers, sessions, totals }) {
  const states = ["starting", "idle", "running", "retained", "restoring", "leaving"].filter((name) => workers[name] > 0);
  const ok = totals.outcomes.ok ?? 0;
  keep(find("figures"), [
    ["Waiting", queue.waiting], ["Running", queue.running], ["Workers", sum(states.map((name) => workers[name])), states.map((name) => `${workers[name]} ${name}`).join(", ")],
    ["Sessions", sessions], ["Ended well", ok], ["Ended badly", totals.executions - ok], ["Turned away", totals.overloaded + totals.queueTimeouts],
    ["Workers crashed", totals.workersCrashed],
  ], ([name]) => name, ([name]) => make("div", "", "", make("dt", "", name), make("dd"), make("dd")), (box, [, value, more = ""]) => {
    show(box.children[1], value);
    show(box.children[2], more);
    box.children[2].hidden = more === "";
  });
}

function render() {
  head();
  scale();
  lines(charts.load, loadSeries, String);
  lines(charts.latency, latencySeries, time);
  bars(charts.endings, endingSeries);
  table("news", known.news, (e) => e.key, newsColumns);
  if (known.status === null) return;
  figures(known.status);
  countBars(known.status.totals.outcomes);
  table("bad", known.bad, (e) => e.id, badColumns);
  table("live", known.live, (e) => e.id, liveColumns);
  table("workers", known.workers, (w) => w.name, workerColumns);
  table("settings", known.settings, (s) => s.name, settingColumns);
}

// ---- One execution

const box = find("execution");
let wanted = "";

function retention(r) {
  if (r === undefined) return undefined;
  if (r.why !== undefined) return `since ${clock(r.since)}, and ended: ${r.why}`;
  return `since ${clock(r.since)}, used ${clock(r.used)}, until ${clock(r.until)} · ${r.handles} handles, ${r.calls} calls`;
}

async function open(id) {
  wanted = id;
  show(find("execution-title"), `Execution ${id}`);
  show(find("execution-message"), "");
  for (const part of ["facts", "limits", "logs"]) find(`execution-${part}`).replaceChildren();
  box.showModal();
  let e;
  try {
    e = await ask(`executions/${encodeURIComponent(id)}`);
  } catch (error) {
    if (wanted === id) show(find("execution-message"), `Cannot show it: ${error.message}`);
    return;
  }
  if (wanted !== id) return; // another was opened meanwhile
  show(find("execution-message"), e.message ?? "");
  facts(find("execution-facts"), [
    ["Ending", e.outcome ?? e.state], ["Retained", retention(e.retained)], ["Call into", e.of], ["Reason", e.reason], ["Ended by", e.endedBy], ["Program", e.name], ["Caller", e.identity],
    ["Caller's id", e.callerId], ["Session", e.session], ["Worker", e.worker], ["Came", clock(e.came)], ["Waited", time(e.queueMs)],
    ["Took", time(e.totalMs)], ["Own time", time(e.wallMs)], ["CPU", time(e.cpuMs)], ["Heap at most", size(e.peakHeapBytes)],
    ["Tool calls", e.toolCalls], ["Fetches", e.fetches],
  ]);
  find("execution-logs").replaceChildren(...(e.logs ?? []).map((line) => make("li", "", `${time(line.time)} ${line.level}: ${line.text}`)));
  facts(find("execution-limits"), Object.entries(e.limits ?? {}));
}

document.addEventListener("click", (event) => {
  const id = event.target.closest?.("[data-execution]")?.dataset.execution;
  if (id !== undefined) void open(id);
});
find("execution-close").addEventListener("click", () => box.close());

// ---- The loop

let paused = false;
let due = false; // the next look is to come soon
let hurry = () => {};

function soon() {
  due = true;
  hurry();
}

/** Waits for the next look; less long where there is reason for one, but long enough to leave the service in peace. */
async function rest() {
  await new Promise((resolve) => setTimeout(resolve, every / 4));
  if (due) return;
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, 3 * every / 4);
    hurry = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

find("pause").addEventListener("click", () => {
  paused = !paused;
  show(find("pause"), paused ? "Go on" : "Pause");
  head();
  soon();
});

// A browser opens few connections to one host, and a stream has one of them to itself: tabs that nobody sees let it go.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) hush(stream.source);
  soon();
});

for (;;) {
  due = false;
  if (!paused) {
    try {
      await look();
    } catch (error) {
      known.since ??= Date.now();
      known.fault = error.name === "TypeError" ? "nobody answers" : error.name === "TimeoutError" ? "it does not answer" : error.message;
      remember({});
    }
    listen();
    render();
  }
  await rest();
}
