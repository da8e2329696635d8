// Finds the form of a submitted text and plans how it becomes an ES module. Called once per execution, in an isolate where
// no guest code ever runs. It reads the text, it never evaluates it.

import { exportsOf } from "./commonjs.js";
import { functionForm, moduleForm, probe, scriptForm, scriptOrFunctionForm } from "./forms.js";
import { javascript, NotAFunction } from "./parser.js";
import { hasTypes, learnTypeScript, typescript } from "./typescript.js";

const makers = { module: moduleForm, function: functionForm, script: scriptForm };

const typescriptSuffix = ".ts";
const needsTypeScript = { needs: "typescript" };

/**
 * Returns the plan for code as JSON text: see forms.js; with `error` {message, at, hint?, typescript?} when the code cannot
 * be read. form may end in ".ts" for TypeScript: then the plan makes a module that is TypeScript too. For the form
 * "commonjs" it returns what commonjs.js finds. A plan that begins with needs: "typescript" is to be asked for again after
 * analyze(PLUGIN, "learn").
 */
export default function analyze(code, form) {
  if (form === "learn") return learnTypeScript(code);
  if (form.endsWith(typescriptSuffix) && !typescript()) return JSON.stringify(needsTypeScript);
  if (form === "commonjs") return JSON.stringify(exportsOf(code));
  if (!form.endsWith(typescriptSuffix)) return JSON.stringify(planFor(code, form, javascript));
  return JSON.stringify(planFor(code, form.slice(0, -typescriptSuffix.length), typescript()));
}

const planFor = (code, form, readers) => (form === "auto" ? auto(code, readers) : asked(code, form, readers));

function asked(code, form, readers) {
  const result = attempt(() => makers[form](code, readers));
  if (result.plan) return result.plan;
  const types = form === "function" && readers !== javascript ? attempt(() => scriptOrFunctionForm(code, readers)).plan : undefined;
  if (types?.form === "function") return types; // one function behind declarations of types
  return failure(code, form, result.error, readers, otherForm(code, form, readers));
}

// Each form in the order in which a text is most likely to be meant. Only a text that exports is a module by itself.
function auto(code, readers) {
  const script = attempt(() => scriptOrFunctionForm(code, readers));
  if (script.plan) return script.plan;
  const module = script.error.reader?.metExport ? attempt(() => moduleForm(code, readers)) : undefined;
  if (module?.plan?.exports) return module.plan;
  const fn = attempt(() => functionForm(code, readers));
  if (fn.plan) return fn.plan;
  const [form, error] = likeliest(script.error, module?.error, fn.error);
  return failure(code, form, error, readers);
}

// Of several readings that fail, the one that understood most of the text is what was meant.
function likeliest(script, module, fn) {
  if (module && module.pos > script.pos) return ["module", module];
  if (fn.reader?.metFunction && fn.pos >= script.pos) return ["function", fn];
  return ["script", script];
}

function otherForm(code, form, readers) {
  const planIn = (other) => attempt(() => makers[other](code, readers)).plan;
  if (form !== "module" && planIn("module")?.exports) return "module";
  if (form !== "function" && planIn("function")) return "function";
  if (form !== "script" && planIn("script")) return "script";
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

// True for what can be read as TypeScript and has something in it that only TypeScript has.
function isTypeScript(code, form) {
  const readers = typescript();
  if (planFor(code, form, readers).error !== undefined) return false;
  return Object.values(readers).some((Reader) => hasTypes(attempt(() => new Reader(code).parse()).plan));
}

function failure(code, form, error, readers, hint) {
  const message = error.message.replace(/ \(\d+:\d+\)$/, "");
  // The engine knows no types, so for TypeScript the words are the analyzer's.
  const asked = readers === javascript ? probe(code, form, error) : undefined;
  if (asked && !typescript()) return needsTypeScript;
  return {
    form,
    imports: [],
    ...(asked ?? { edits: [], tail: "" }),
    error: { message, at: error.pos, hint, probe: asked !== undefined, typescript: asked !== undefined && isTypeScript(code, form) },
  };
}
