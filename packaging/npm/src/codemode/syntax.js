// A recogniser of ECMAScript modules (ECMA-262, 2026): it finds where the statements of a text begin and end and what sort
// they are, and refuses what is no module. It builds no tree. Early errors that engines find as well are left to them; those
// that decide how a text is read (a return outside of functions, names declared twice at the top) are found here.

const blank = /(?:\s+|\/\/.*|\/\*[^]*?\*\/)*/y;
const punctuator = />>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--|[+\-*/%&|^]=|<<|>>|\*\*|[{}()[\];,<>+\-*/%&|^!~?:=.]/y;
const escape = "\\\\u(?:[\\da-fA-F]{4}|\\{[\\da-fA-F]+\\})";
const name = new RegExp(`#?(?:[$_\\p{ID_Start}]|${escape})(?:[$\\u200c\\u200d\\p{ID_Continue}]|${escape})*`, "yu");
const number = /0[xX][\da-fA-F]+(?:_[\da-fA-F]+)*n?|0[oO][0-7]+(?:_[0-7]+)*n?|0[bB][01]+(?:_[01]+)*n?|(?:0|[1-9]\d*(?:_\d+)*)n|(?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:[eE][+-]?\d+(?:_\d+)*)?/y;
const string = /"[^"\\\n\r]*(?:\\(?:\r\n|[^])[^"\\\n\r]*)*"|'[^'\\\n\r]*(?:\\(?:\r\n|[^])[^'\\\n\r]*)*'/y;
const regexp = /\/(?![*/])(?:[^/\\[\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029]|\[(?:[^\]\\\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029])*\])+\/[$\w]*/y;
const lineEnd = /[\n\r\u2028\u2029]/;
const startOfName = /[$_\\\p{ID_Start}]/u;

/** What might be the head of an arrow function is read twice where it is none, and heads may be inside of heads. */
const maxHeads = 100;

const words = (text) => new Set(text.split(" "));
const reserved = words("break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null return super switch this throw true try typeof var void while with implements interface let package private protected public static yield await");
const assignments = words("= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??=");
const prefixes = words("+ - ! ~ ++ -- typeof void delete");
const precedence = new Map(Object.entries({
  "??": 1, "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "===": 6, "!==": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
  instanceof: 7, in: 7, "<<": 8, ">>": 8, ">>>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
}));

/**
 * The statements of a module: {kind, start, end}, kind being "expression", "function", "default" or "other". Expressions
 * and defaults have value: {kind, start, end, name} of what stands there, without parentheses around it; functions have a name.
 * Throws where the text is no module.
 */
export function statementsOf(module) {
  text = module;
  [tokenEnd, awaits, yields, inFunction, blocks, heads] = [0, true, false, false, 0, 0];
  for (const names of [functions, variables, noArrow]) names.clear();
  if (text.startsWith("#!")) tokenEnd = match(/.*/y, 0).length;
  try {
    next();
    const list = [];
    while (tokenKind !== "end") list.push(item());
    return list;
  } finally {
    text = "";
  }
}

// What is being read. A text is read at once, so there is never more than one.
let text = "";

// The token that comes next: its kind is "name", "private", "number", "string", "template", "end", or "" for punctuators. last
// is where the token before it ends.
let tokenKind = "";
let tokenValue = "";
let tokenStart = 0;
let tokenEnd = 0;
let last = 0;
let newline = false; // before it
let escaped = false; // it is a name written with an escape

let awaits = true; // in an async function or at the top
let yields = false;
let inFunction = false;
let blocks = 0; // that are open
let heads = 0; // of what may be arrow functions, inside each other

const functions = new Set(); // names declared at the top
const variables = new Set(); // by var, at the top or in blocks
const noArrow = new Set(); // places of "(" that begin no arrow function

function fail() {
  throw new SyntaxError("this is no module");
}

const unescaped = (text) => text.replace(/\\u(?:\{(\w+)\}|(\w{4}))/g, (_, a, b) => String.fromCodePoint(parseInt(a ?? b, 16)));

function match(pattern, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function next() {
  last = tokenEnd;
  const space = match(blank, tokenEnd);
  newline = lineEnd.test(space);
  tokenStart = tokenEnd + space.length;
  if (text.startsWith("/*", tokenStart)) fail(); // no token begins so; looking again at each would take the square of the length
  token();
}

function token() {
  const start = tokenStart;
  const take = (kind, value) => {
    tokenKind = kind;
    tokenValue = value;
    tokenEnd = start + value.length;
  };
  if (start >= text.length) return take("end", "");
  const first = text[start];
  if (first === "`") return take("template", "`");
  if (first === '"' || first === "'") return take("string", match(string, start) ?? fail());
  if ((first >= "0" && first <= "9") || (first === "." && text[start + 1] >= "0" && text[start + 1] <= "9")) {
    take("number", match(number, start) ?? fail());
    const after = String.fromCodePoint(text.codePointAt(tokenEnd) ?? 0x20);
    return startOfName.test(after) || (after >= "0" && after <= "9") ? fail() : undefined;
  }
  const word = match(name, start);
  if (word === undefined) return take("", match(punctuator, start) ?? fail());
  take(word[0] === "#" ? "private" : "name", word);
  escaped = word.includes("\\");
  if (escaped) tokenValue = unescaped(word);
}

function is(value) {
  return tokenValue === value && (tokenKind === "" || (tokenKind === "name" && !escaped));
}

function eat(value) {
  if (!is(value)) return false;
  next();
  return true;
}

function need(value) {
  if (!eat(value)) fail();
}

// save keeps a place to come back to.
function save() {
  return [tokenKind, tokenValue, tokenStart, tokenEnd, last, newline, escaped, awaits, yields, inFunction, blocks, heads];
}

function back(place) {
  [tokenKind, tokenValue, tokenStart, tokenEnd, last, newline, escaped, awaits, yields, inFunction, blocks, heads] = place;
}

function peek(test) {
  const place = save();
  next();
  const found = test();
  back(place);
  return found;
}

function semicolon() {
  if (!eat(";") && !is("}") && tokenKind !== "end" && !newline) fail();
}

function identifier() {
  if (tokenKind !== "name" || reserved.has(tokenValue)) fail();
  const value = tokenValue;
  next();
  return value;
}

function item() {
  const start = tokenStart;
  const found = is("export") ? exported() : is("import") && peek(() => !is("(") && !is(".")) ? imported() : statement();
  return { kind: "other", ...found, start, end: last };
}

function statement() {
  if (tokenKind === "") {
    if (is("{")) return block();
    if (eat(";")) return undefined;
  }
  if (tokenKind === "name" && !escaped) {
    const parse = Object.hasOwn(statements, tokenValue) ? statements[tokenValue] : undefined;
    if (parse !== undefined) return parse();
    if (is("async") && peek(() => is("function") && !newline)) return declaration();
    if (isUsing()) return variablesOf("lexical");
    if (!reserved.has(tokenValue) && peek(() => is(":"))) {
      next();
      next();
      return void statement();
    }
  }
  const start = tokenStart;
  const value = expression();
  const end = last;
  semicolon();
  return { kind: "expression", value, from: start, semicolon: last > end && text[last - 1] === ";" ? last - 1 : -1 };
}

function isUsing() {
  const named = () => tokenKind === "name" && !newline && !is("in") && !is("of") && !is("instanceof");
  if (is("using")) return peek(named);
  return is("await") && peek(() => is("using") && !newline && peek(named));
}

function block() {
  need("{");
  blocks++;
  while (!is("}")) statement();
  blocks--;
  next();
}

function declaration(optional = false) {
  const async = eat("async");
  need("function");
  const generator = eat("*");
  const id = optional && is("(") ? undefined : identifier();
  body(async, generator);
  if (id !== undefined && !inFunction && blocks === 0) {
    if (functions.has(id) || variables.has(id)) fail();
    functions.add(id);
  }
  return { kind: "function", name: id };
}

// body is the parameters and the body of a function.
function body(async, generator) {
  inside(async, generator, () => {
    parameters();
    block();
  });
}

function inside(async, generator, parse) {
  const around = [awaits, yields, inFunction];
  [awaits, yields, inFunction] = [async, generator, true];
  parse();
  [awaits, yields, inFunction] = around;
}

function parameters() {
  need("(");
  while (!is(")")) {
    const rest = eat("...");
    target();
    if (rest || !eat(",")) break;
  }
  need(")");
}

// target is a binding, with a default if there is one.
function target(declare) {
  binding(declare);
  if (eat("=")) assign();
}

function binding(declare) {
  if (eat("[")) {
    while (!is("]")) {
      if (eat(",")) continue;
      if (eat("...")) binding(declare);
      else target(declare);
      if (!is("]")) need(",");
    }
    return next();
  }
  if (!eat("{")) {
    const id = identifier();
    return declare === "var" ? declaredVar(id) : undefined;
  }
  while (!is("}")) {
    if (eat("...")) binding(declare);
    else property(declare);
    if (!is("}")) need(",");
  }
  next();
}

function property(declare) {
  const shorthand = tokenKind === "name" && !reserved.has(tokenValue) ? tokenValue : undefined;
  key();
  if (eat(":")) return target(declare);
  if (shorthand === undefined) fail();
  if (declare === "var") declaredVar(shorthand);
  if (eat("=")) assign();
}

function declaredVar(id) {
  if (inFunction) return;
  if (functions.has(id)) fail();
  variables.add(id);
}

function key() {
  if (eat("[")) {
    assign();
    return need("]");
  }
  if (tokenKind !== "name" && tokenKind !== "string" && tokenKind !== "number" && tokenKind !== "private") fail();
  next();
}

// variablesOf reads a declaration. In the head of a for it may lack values, and has no semicolon.
function variablesOf(how, head = false) {
  eat("await"); // using
  next();
  const constant = how === "const";
  do {
    const pattern = is("[") || is("{");
    binding(how);
    if (eat("=")) assign(head);
    else if (!head && (pattern || constant)) fail();
  } while (eat(","));
  if (!head) semicolon();
}

function parenthesised() {
  need("(");
  expression();
  need(")");
}

function forLoop() {
  next();
  if (is("await")) {
    if (!awaits) fail();
    next();
  }
  need("(");
  if (!is(";")) {
    if (is("var") || is("let") || is("const")) variablesOf(tokenValue, true);
    else if (isUsing()) variablesOf("lexical", true);
    else expression(true);
  }
  if (eat("of")) assign();
  else if (eat("in")) expression();
  else {
    need(";");
    if (!is(";")) expression();
    need(";");
    if (!is(")")) expression();
  }
  need(")");
  statement();
}

function switched() {
  next();
  parenthesised();
  need("{");
  blocks++;
  while (!is("}")) {
    if (eat("case")) expression();
    else need("default");
    need(":");
    while (!is("case") && !is("default") && !is("}")) statement();
  }
  blocks--;
  next();
}

function tried() {
  next();
  block();
  const caught = eat("catch");
  if (caught) {
    if (eat("(")) {
      binding();
      need(")");
    }
    block();
  }
  if (eat("finally")) block();
  else if (!caught) fail();
}

function jump() {
  next();
  if (tokenKind === "name" && !newline) identifier();
  semicolon();
}

function exported() {
  next();
  if (eat("default")) return defaulted();
  if (eat("*")) {
    if (eat("as")) next();
    need("from");
    return source();
  }
  if (is("{")) {
    const local = specifiers();
    if (eat("from")) return source();
    // What is exported has to be declared, which only the end of the text can tell; a text with exports is refused later
    // whatever it is, so nothing hangs on it.
    return local ? semicolon() : fail();
  }
  if (!["var", "let", "const", "class", "function", "async"].some((word) => is(word))) fail();
  statement();
}

function defaulted() {
  const start = tokenStart;
  let value;
  if (is("function") || (is("async") && peek(() => is("function") && !newline))) value = declaration(true);
  else if (is("class")) value = { kind: "class", name: classOf() };
  else {
    value = assign();
    semicolon();
    return { kind: "default", value };
  }
  return { kind: "default", value: { ...value, start, end: last } };
}

function specifiers() {
  let local = true;
  need("{");
  while (!is("}")) {
    local &&= tokenKind === "name" && !reserved.has(tokenValue);
    specifier();
    if (eat("as")) specifier();
    if (!is("}")) need(",");
  }
  next();
  return local;
}

function specifier() {
  if (tokenKind !== "name" && tokenKind !== "string") fail();
  next();
}

function imported() {
  next();
  if (tokenKind === "string") return source();
  if (!is("{") && !is("*")) {
    identifier();
    if (!eat(",")) {
      need("from");
      return source();
    }
  }
  if (eat("*")) {
    need("as");
    identifier();
  } else specifiers();
  need("from");
  source();
}

function source() {
  if (tokenKind !== "string") fail();
  next();
  if (eat("with")) literal();
  semicolon();
}

function expression(noIn = false) {
  const start = tokenStart;
  let value = assign(noIn);
  while (eat(",")) {
    assign(noIn);
    value = { kind: "sequence", start, end: last };
  }
  return value;
}

function assign(noIn = false) {
  const start = tokenStart;
  if (yields && is("yield")) {
    next();
    if (!newline && !isEnd()) {
      eat("*");
      assign(noIn);
    }
    return { kind: "other", start, end: last };
  }
  const found = arrow(noIn);
  if (found !== undefined) return found;
  const value = conditional(noIn);
  if (tokenKind !== "" || !assignments.has(tokenValue)) return value;
  if (value.kind !== "name" && value.kind !== "member" && !(value.kind === "pattern" && is("=") && value.start === start)) fail();
  next();
  assign(noIn);
  return { kind: "other", start, end: last };
}

function isEnd() {
  return tokenKind === "end" || (tokenKind === "" && [")", "]", "}", ",", ";", ":"].includes(tokenValue)) || is("in") || is("of");
}

// arrow is an arrow function, or undefined and nothing read.
function arrow(noIn) {
  if (tokenKind === "name" && !escaped && tokenValue === "async") {
    const from = tokenStart;
    const place = save();
    next();
    if (!newline && (is("(") || tokenKind === "name")) {
      const found = arrowFrom(from, true, noIn);
      if (found !== undefined) return found;
    }
    back(place);
  }
  if (tokenKind === "name" || is("(")) return arrowFrom(tokenStart, false, noIn);
  return undefined;
}

function arrowFrom(start, async, noIn) {
  if (tokenKind === "name" && (reserved.has(tokenValue) || !peek(() => is("=>") && !newline))) return undefined;
  if (noArrow.has(tokenStart)) return undefined;
  const place = save();
  const from = tokenStart;
  const around = heads;
  let head = false;
  if (++heads > maxHeads) throw new RangeError("arrow functions are nested too deep");
  try {
    inside(async, false, () => (tokenKind === "name" ? identifier() : parameters()));
    head = is("=>") && !newline;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (!head) {
    noArrow.add(from);
    back(place);
    return undefined;
  }
  heads = around;
  next();
  inside(async, false, () => (is("{") ? block() : assign(noIn)));
  return { kind: "arrow", start, end: last };
}

function conditional(noIn) {
  const start = tokenStart;
  const value = binary(0, noIn);
  if (!eat("?")) return value;
  assign();
  need(":");
  assign(noIn);
  return { kind: "binary", start, end: last };
}

function binary(least, noIn) {
  const start = tokenStart;
  let value = unary();
  for (;;) {
    const level = tokenKind === "" || ((is("in") && !noIn) || is("instanceof")) ? precedence.get(tokenValue) : undefined;
    if (level === undefined || level <= least) return value;
    next();
    binary(level === 11 ? 10 : level, noIn);
    value = { kind: "binary", start, end: last };
  }
}

function unary() {
  const start = tokenStart;
  if ((tokenKind === "" || (tokenKind === "name" && !escaped)) && prefixes.has(tokenValue)) {
    const changes = is("++") || is("--");
    next();
    const { kind } = unary();
    if (changes && kind !== "name" && kind !== "member") fail();
    return { kind: "binary", start, end: last };
  }
  if (is("await")) {
    if (!awaits) fail();
    next();
    unary();
    return { kind: "binary", start, end: last };
  }
  if (tokenKind === "private") {
    next(); // #x in object
    return is("in") ? { kind: "other", start, end: last } : fail();
  }
  const value = leftSide();
  if (!newline && (is("++") || is("--"))) {
    if (value.kind !== "name" && value.kind !== "member") fail();
    next();
    return { kind: "binary", start, end: last };
  }
  return value;
}

// leftSide is a member, a call, or what is simpler. Without calls it is what new takes.
function leftSide(calls = true) {
  const start = tokenStart;
  const value = primary();
  let whole = value;
  for (let optional = false; ; ) {
    let kind = "member";
    if (eat("?.")) {
      if (!calls) fail();
      optional = true;
      if (is("(")) callArguments();
      else if (eat("[")) index();
      else member();
    } else if (eat(".")) member();
    else if (eat("[")) index();
    else {
      kind = "other";
      if (tokenKind === "template") optional ? fail() : template();
      else if (calls && is("(")) callArguments();
      else return whole;
    }
    whole = { kind: optional ? "other" : kind, start, end: last };
  }
}

function member() {
  if (tokenKind !== "name" && tokenKind !== "private") fail();
  next();
}

function index() {
  expression();
  need("]");
}

function callArguments() {
  need("(");
  while (!is(")")) {
    eat("...");
    assign();
    if (!is(")")) need(",");
  }
  next();
}

function primary() {
  const start = tokenStart;
  const kind = is("[") || is("{") ? "pattern" : tokenKind === "name" && (escaped || !reserved.has(tokenValue)) ? "name" : "other";
  const inner = primaryValue();
  return inner ?? { kind, start, end: last };
}

function primaryValue() {
  if (tokenKind === "number" || tokenKind === "string") return next();
  if (tokenKind === "template") return template();
  if (is("(")) {
    next();
    const value = expression();
    need(")");
    return value;
  }
  if (is("[")) return list();
  if (is("{")) return literal();
  if (is("/") || is("/=")) {
    tokenEnd = tokenStart + (match(regexp, tokenStart) ?? fail()).length;
    return next();
  }
  if (tokenKind !== "name") fail();
  return word();
}

function word() {
  if (escaped) return void identifier();
  switch (tokenValue) {
    case "this": case "null": case "true": case "false":
      return next();
    case "function":
      return functionValue(false);
    case "class":
      return void classOf();
    case "new":
      return created();
    case "import":
      return importValue();
    case "super":
      if (!inFunction) fail();
      next();
      return is("(") || is(".") || is("[") ? undefined : fail();
    case "async":
      if (peek(() => is("function") && !newline)) {
        next();
        return functionValue(true);
      }
  }
  identifier();
}

function functionValue(async) {
  need("function");
  const generator = eat("*");
  if (!is("(")) {
    // Its name belongs to itself: await and yield are read as inside of it.
    if (tokenKind !== "name" || reserved.has(tokenValue)) fail();
    next();
  }
  body(async, generator);
}

function created() {
  next();
  if (eat(".")) return inFunction && is("target") ? next() : fail();
  if (is("new")) created();
  else if (is("import")) fail();
  else leftSide(false);
  if (is("(")) callArguments();
}

function importValue() {
  next();
  if (eat(".")) return is("meta") ? next() : fail();
  if (!is("(")) fail();
  next();
  assign();
  if (eat(",") && !is(")")) {
    assign();
    eat(",");
  }
  need(")");
}

function list() {
  next();
  while (!is("]")) {
    if (eat(",")) continue;
    eat("...");
    assign();
    if (!is("]")) need(",");
  }
  next();
}

function literal() {
  need("{");
  while (!is("}")) {
    if (tokenKind === "private") fail();
    if (eat("...")) assign();
    else literalMember();
    if (!is("}")) need(",");
  }
  next();
}

function literalMember() {
  const found = memberName();
  if (found === "method") return;
  if (eat(":")) return void assign();
  if (found !== "name") fail();
  if (eat("=")) assign(); // only where the literal turns out to be a pattern
}

function isKey() {
  return ["name", "string", "number", "private"].includes(tokenKind) || is("[");
}

// memberName reads a whole "method", or only what may be the "name" of a variable too, or another "key".
function memberName() {
  const async = is("async") && peek(() => !newline && (isKey() || is("*")));
  if (async) next();
  const generator = eat("*");
  const accessor = !async && !generator && (is("get") || is("set")) && peek(() => isKey());
  if (accessor) next();
  const found = tokenKind === "name" && !reserved.has(tokenValue) ? "name" : "key";
  key();
  if (is("(")) {
    body(async, generator);
    return "method";
  }
  return async || generator || accessor ? fail() : found;
}

function classOf() {
  need("class");
  const id = tokenKind === "name" && !is("extends") ? identifier() : undefined;
  if (eat("extends")) leftSide();
  need("{");
  while (!eat("}")) {
    if (!eat(";")) classMember();
  }
  return id;
}

function classMember() {
  if (is("static") && peek(() => !is("(") && !is("=") && !is(";") && !is("}"))) {
    next();
    if (is("{")) return inside(false, false, () => block());
  }
  if (memberName() === "method") return;
  if (eat("=")) inside(false, false, () => assign());
  semicolon();
}

// template reads on from a backtick that is the next token.
function template() {
  for (let at = tokenStart + 1; ; ) {
    if (at >= text.length) fail();
    if (text[at] === "\\") at += 2;
    else if (text[at] === "`") {
      tokenEnd = at + 1;
      return next();
    } else if (text[at] === "$" && text[at + 1] === "{") {
      tokenEnd = at + 2;
      next();
      expression();
      if (!is("}")) fail();
      at = tokenStart + 1;
    } else at++;
  }
}

/** Statements by the word that they begin with. */
const statements = {
  function() {
    return declaration();
  },
  class() {
    if (classOf() === undefined) fail();
  },
  var() {
    variablesOf("var");
  },
  let() {
    variablesOf("let");
  },
  const() {
    variablesOf("const");
  },
  if() {
    next();
    parenthesised();
    statement();
    if (eat("else")) statement();
  },
  for() {
    forLoop();
  },
  while() {
    next();
    parenthesised();
    statement();
  },
  do() {
    next();
    statement();
    need("while");
    parenthesised();
    eat(";");
  },
  switch() {
    switched();
  },
  try() {
    tried();
  },
  throw() {
    next();
    if (newline) fail();
    expression();
    semicolon();
  },
  return() {
    if (!inFunction) fail();
    next();
    if (!is(";") && !is("}") && tokenKind !== "end" && !newline) expression();
    semicolon();
  },
  break() {
    jump();
  },
  continue() {
    jump();
  },
  debugger() {
    next();
    semicolon();
  },
};
