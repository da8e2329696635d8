// Finds the form of a submitted text and plans how it becomes an ES module. Called once per execution, in an isolate where
// no guest code ever runs. It reads the text, it never evaluates it.

import { functionForm, moduleForm, probe, scriptForm, scriptOrFunctionForm } from "./forms.js";
import { NotAFunction } from "./parser.js";

const makers = { module: moduleForm, function: functionForm, script: scriptForm };

/** Returns the plan for code as JSON text: see forms.js; with `error` {message, at, hint?} when the code cannot be read. */
export default function analyze(code, form) {
  return JSON.stringify(form === "auto" ? auto(code) : asked(code, form));
}

function asked(code, form) {
  const result = attempt(() => makers[form](code));
  return result.plan ?? failure(code, form, result.error, otherForm(code, form));
}

// Each form in the order in which a text is most likely to be meant. Only a text that exports is a module by itself.
function auto(code) {
  const script = attempt(() => scriptOrFunctionForm(code));
  if (script.plan) return script.plan;
  const module = script.error.reader?.metExport ? attempt(() => moduleForm(code)) : undefined;
  if (module?.plan?.exports) return module.plan;
  const fn = attempt(() => functionForm(code));
  if (fn.plan) return fn.plan;
  const [form, error] = likeliest(script.error, module?.error, fn.error);
  return failure(code, form, error);
}

// Of several readings that fail, the one that understood most of the text is what was meant.
function likeliest(script, module, fn) {
  if (module && module.pos > script.pos) return ["module", module];
  if (fn.reader?.metFunction && fn.pos >= script.pos) return ["function", fn];
  return ["script", script];
}

function otherForm(code, form) {
  const planFor = (other) => attempt(() => makers[other](code)).plan;
  if (form !== "module" && planFor("module")?.exports) return "module";
  if (form !== "function" && planFor("function")) return "function";
  if (form !== "script" && planFor("script")) return "script";
  return undefined;
}

function attempt(make) {
  try {
    return { plan: make() };
  } catch (error) {
    return { error: readable(error) };
  }
}

// acorn reports an exhausted stack as a syntax error where it stood; anything without a place is an exhausted stack too.
function readable(error) {
  const at = typeof error.pos === "number" ? error.pos : 0;
  const isDeep = !(error instanceof SyntaxError || error instanceof NotAFunction) || /stack space/.test(error.message);
  if (!isDeep) return error;
  return Object.assign(new RangeError("the text is nested too deeply"), { pos: at, reader: error.reader });
}

function failure(code, form, error, hint) {
  const message = error.message.replace(/ \(\d+:\d+\)$/, "");
  const asked = probe(code, form, error);
  return {
    form,
    imports: [],
    ...(asked ?? { edits: [], tail: "" }),
    error: { message, at: error.pos, hint, probe: asked !== undefined },
  };
}
