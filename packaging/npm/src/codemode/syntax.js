// A recogniser of ECMAScript modules (ECMA-262, 2026): it finds where the statements of a text begin and end and what sort
// they are, and builds no tree. It takes more than ECMAScript does: patterns and parameters are read as expressions, any
// operator may stand between any operands, and any digits in a number, since what is wrong with those an engine finds,
// whatever is written around them. Where tokens, brackets and statements end, and what would be right in a function but not
// in a module (a return outside of functions, names declared twice at the top), is exact.

const blank = /(?:\s+|\/\/.*|\/\*[^]*?\*\/)*/y;
const punctuator = />>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--|[+\-*/%&|^]=|<<|>>|\*\*|[{}()[\];,<>+\-*/%&|^!~?:=.]/y;
const escape = "\\\\u(?:[\\da-fA-F]{4}|\\{[\\da-fA-F]+\\})";
const name = new RegExp(`#?(?:[$_\\p{ID_Start}]|${escape})(?:[$\\u200c\\u200d\\p{ID_Continue}]|${escape})*`, "yu");
const number = /(?:0[xob][\da-f_]+n?|(?!0[\d_])(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:e[+-]?\d[\d_]*)?n?)(?![\w$\\]|\p{ID_Start})/iyu;
const string = /"[^"\\\n\r]*(?:\\(?:\r\n|[^])[^"\\\n\r]*)*"|'[^'\\\n\r]*(?:\\(?:\r\n|[^])[^'\\\n\r]*)*'/y;
const regexp = /\/(?![*/])(?:[^/\\[\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029]|\[(?:[^\]\\\n\r\u2028\u2029]|\\[^\n\r\u2028\u2029])*\])+\/[$\w]*/y;
const kinds = Object.entries({ name, string, number, template: /`/y, punctuator, end: /$/y });

export const words = (text) => new Set(text.split(" "));
export const reserved = words("break case catch class const continue debugger default delete do else enum export extends false finally for function if import in instanceof new null return super switch this throw true try typeof var void while with implements interface let package private protected public static yield await");
const operators = words("= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??= ?? || && | ^ & == != === !== < > <= >= instanceof in << >> >>> + - * / % **");
const prefixes = words("+ - ! ~ ++ -- typeof void delete await");

/**
 * The statements of a module: {kind, start, end}, kind being "expression", "function", "default" or "other". Expressions
 * and defaults have value: {kind, start, end, name} of what stands there, without parentheses around it; functions have a name.
 * Throws where the text is no module.
 */
export function statementsOf(module) {
  text = module;
  [tokenEnd, awaits, inFunction, declares, blocks] = [0, true, false, false, 0];
  for (const found of [functions, variables, arrows, parentheses]) found.clear();
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

// The token that comes next: its kind is a key of kinds; last is where the token before it ends.
let tokenKind = "";
let tokenValue = "";
let tokenStart = 0;
let tokenEnd = 0;
let last = 0;
let newline = false; // before it

let awaits = true; // in an async function or at the top
let inFunction = false;
let declares = false; // names that stand here are declared by var
let called = false; // what was read last is a call
let blocks = 0; // that are open

const functions = new Set(); // names declared at the top
const variables = new Set(); // by var, at the top or in blocks
const arrows = new Map(); // ends of arrow functions by their starts
const parentheses = new Map(); // by their starts: their ends, and where what is in them begins and ends

function fail() {
  throw new SyntaxError("this is no module");
}

function match(pattern, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function next() {
  last = tokenEnd;
  const space = match(blank, tokenEnd);
  newline = /[\n\r\u2028\u2029]/.test(space);
  tokenStart = tokenEnd + space.length;
  if (text.startsWith("/*", tokenStart)) fail(); // no token begins so; looking again at each would take the square of the length
  for (const [kind, pattern] of kinds) {
    tokenValue = match(pattern, tokenStart);
    if (tokenValue === undefined) continue;
    tokenKind = kind;
    tokenEnd = tokenStart + tokenValue.length;
    return;
  }
  fail();
}

const is = (value) => tokenValue === value;
const isOneOf = (pattern) => pattern.test(tokenValue);

function eat(value) {
  const found = is(value);
  if (found) next();
  return found;
}

function need(value) {
  if (!eat(value)) fail();
}

function peek(test) {
  const place = [tokenKind, tokenValue, tokenStart, tokenEnd, last, newline];
  next();
  const found = test();
  [tokenKind, tokenValue, tokenStart, tokenEnd, last, newline] = place;
  return found;
}

function semicolon() {
  if (!eat(";") && !is("}") && tokenKind !== "end" && !newline) fail();
}

function item() {
  const start = tokenStart;
  const found = eat("export") ? exported() : is("import") && peek(() => !isOneOf(/^[(.]$/)) ? source() : statement();
  return { kind: "other", ...found, start, end: last };
}

// exported goes on after that word. A text with exports is refused later whatever it is, unless they are the default.
function exported() {
  if (eat("default")) return defaulted();
  if (is("*")) return source();
  if (!eat("{")) return void statement();
  while (!eat("}")) skip();
  return eat("from") ? source() : semicolon();
}

function defaulted() {
  const start = tokenStart;
  let value;
  if (is("function") || isAsyncFunction()) value = declaration(true);
  else if (is("class")) value = { kind: "class", name: classOf() };
  else {
    assign();
    value = valueOf(start, last);
    semicolon();
    return { kind: "default", value };
  }
  return { kind: "default", value: { ...value, start, end: last } };
}

// source goes on to the name of a module.
function source() {
  while (tokenKind !== "string") skip();
  next();
  if (eat("with")) items("}", member);
  semicolon();
}

function skip() {
  if (tokenKind === "end") fail();
  next();
}

function statement() {
  switch (tokenValue) {
    case "{":
      return block();
    case ";":
      return next();
    case "function":
      return declaration();
    case "class":
      return void classOf();
    case "var": case "let": case "const":
      return declared();
    case "if": case "while":
      next();
      items(")");
      statement();
      return eat("else") ? void statement() : undefined;
    case "for":
      return loop();
    case "do":
      next();
      statement();
      need("while");
      items(")");
      return void eat(";");
    case "switch":
      return switched();
    case "try":
      return tried();
    case "return":
      if (!inFunction) fail();
    case "throw": case "break": case "continue": case "debugger":
      next();
      if (!newline && !isEnd()) expression();
      return semicolon();
  }
  if (isAsyncFunction()) return declaration();
  if (isUsing()) return declared();
  if (tokenKind === "name" && !reserved.has(tokenValue) && peek(() => is(":"))) {
    next();
    next();
    return void statement();
  }
  const start = tokenStart;
  expression();
  const value = valueOf(start, last);
  const end = last;
  semicolon();
  return { kind: "expression", value, semicolon: last > end && text[last - 1] === ";" ? last - 1 : -1 };
}

// valueOf is an expression without the parentheses around it.
function valueOf(start, end) {
  const [close, innerStart, innerEnd] = parentheses.get(start) ?? [];
  if (close === end) return valueOf(innerStart, innerEnd);
  return { kind: arrows.get(start) === end ? "arrow" : "other", start, end };
}

const isAsyncFunction = () => is("async") && peek(() => is("function") && !newline);

function isUsing() {
  const named = () => tokenKind === "name" && !newline && !isOneOf(/^(in|of|instanceof)$/);
  return is("using") ? peek(named) : is("await") && peek(() => is("using") && named() && peek(named));
}

const isEnd = () => isOneOf(/^[)\]},;:]?$/);

function block() {
  need("{");
  blocks++;
  while (!is("}")) statement();
  blocks--;
  next();
}

function switched() {
  next();
  items(")");
  need("{");
  blocks++;
  while (!is("}")) {
    if (eat("case")) expression();
    else if (!eat("default")) {
      statement();
      continue;
    }
    need(":");
  }
  blocks--;
  next();
}

function tried() {
  next();
  block();
  if (eat("catch")) {
    if (is("(")) items(")");
    block();
  }
  if (eat("finally")) block();
}

function loop() {
  next();
  eat("await");
  need("(");
  while (!eat(")")) {
    if (isOneOf(/^(var|let|const)$/) || isUsing()) declared(true);
    else if (!eat(";") && !eat("of") && !eat("in")) expression(true);
  }
  statement();
}

// declared reads the declaration of variables; in the head of a for it has no semicolon.
function declared(head = false) {
  eat("await"); // using
  declares = is("var");
  next();
  expression(head);
  declares = false;
  if (!head) semicolon();
}

function declaredVar(id) {
  if (!declares || inFunction) return;
  if (functions.has(id)) fail();
  variables.add(id);
}

function declaration(nameless = false) {
  const name = functionOf();
  if (name === undefined && !nameless) fail();
  if (name !== undefined && !inFunction && blocks === 0) {
    if (functions.has(name) || variables.has(name)) fail();
    functions.add(name);
  }
  return { kind: "function", name };
}

// functionOf gives the name of a function, if it has one.
function functionOf() {
  const async = eat("async");
  need("function");
  eat("*");
  const id = is("(") ? undefined : identifier();
  body(async);
  return id;
}

function identifier() {
  if (tokenKind !== "name" || reserved.has(tokenValue)) fail();
  const value = tokenValue;
  next();
  return value;
}

// body is the parameters and the body of a function.
function body(async) {
  inside(async, () => {
    items(")");
    block();
  });
}

function inside(async, parse) {
  const around = [awaits, inFunction, declares];
  [awaits, inFunction, declares] = [async, true, false];
  parse();
  [awaits, inFunction, declares] = around;
}

// items is what stands in brackets, between commas. It gives where that ends.
function items(close, each = assign) {
  if (!isOneOf(/^[([{]$/)) fail();
  next();
  while (!is(close)) {
    if (eat(",")) continue;
    if (eat("...")) assign();
    else each();
    if (!is(close) && !is(",")) fail();
  }
  const end = last;
  next();
  return end;
}

function expression(noIn = false) {
  do assign(noIn);
  while (eat(","));
}

// assign is operands with operators between them.
function assign(noIn = false) {
  const around = declares;
  for (;;) {
    let changes = false;
    while (prefixes.has(tokenValue)) {
      if (is("await") && !awaits) fail();
      changes = isChange();
      next();
    }
    if (eat("yield")) {
      if (newline || isEnd()) break;
      eat("*");
    } else if (operand(noIn)) break;
    else if (called && (changes || isOneOf(/(^|[^=!<>]|<<|>>)=$/))) fail(); // engines find that no sooner than it runs
    else if (eat("?")) {
      declares = false;
      assign();
      need(":");
    } else if (operators.has(tokenValue) && !(noIn && is("in"))) {
      declares = false;
      next();
    } else break;
  }
  declares = around;
}

// operand tells whether it was an arrow function, after which no operator comes.
function operand(noIn) {
  const start = tokenStart;
  const isName = () => tokenKind === "name" && !reserved.has(tokenValue);
  const async = is("async") && peek(() => !newline && (is("(") || (isName() && peek(() => is("=>")))));
  if (async) next();
  if (is("(")) {
    const from = peek(() => tokenStart);
    const to = items(")");
    if (!async) parentheses.set(start, [last, from, to]);
  } else if (isName() && !isAsyncFunction()) {
    declaredVar(tokenValue);
    next();
  } else return value();
  if (!is("=>") || newline) return rest(async);
  next();
  inside(async, () => (is("{") ? block() : assign(noIn)));
  arrows.set(start, last);
  return true;
}

// value is an operand that begins no arrow function.
function value() {
  if (is("function") || is("async")) functionOf();
  else if (is("class")) classOf();
  else if (is("[")) items("]");
  else if (is("{")) items("}", member);
  else if (is("`")) template();
  else if (eat("new")) {
    if (!eat(".")) return operand();
    next();
  } else {
    if (is("/") || is("/=")) tokenEnd = tokenStart + (match(regexp, tokenStart) ?? fail()).length;
    else if (!/^(string|number)$/.test(tokenKind) && !isOneOf(/^(this|null|true|false|super|import)$/)) fail();
    next();
  }
  return rest();
}

// rest is what follows a value, which may be a call: members, calls, templates.
function rest(wasCall = false) {
  called = wasCall;
  for (;;) {
    const chained = eat("?.");
    const call = is("(");
    if (call) items(")");
    else if (eat("[")) {
      const around = declares;
      declares = false;
      expression();
      declares = around;
      need("]");
    } else if (is("`")) template();
    else if (chained || eat(".")) tokenKind === "name" ? next() : fail();
    else break;
    called = call;
  }
  if (!newline && isChange()) called ? fail() : next();
}

const isChange = () => is("++") || is("--");

// key gives the name of a member, where it may be that of a variable.
function key() {
  const id = tokenValue;
  if (is("[")) items("]");
  else if (isKey()) next();
  else fail();
  return id;
}

const isKey = () => /^(name|string|number)$/.test(tokenKind) || is("[");

// method tells whether a member is one: of what is none it reads the key only.
function method() {
  const async = is("async") && peek(() => !newline && (isKey() || is("*")));
  if (async) next();
  eat("*");
  if ((is("get") || is("set")) && peek(isKey)) next();
  const id = key();
  if (is("(")) body(async);
  else return id;
}

function member() {
  const id = method();
  if (id === undefined) return;
  if (eat(":")) return assign();
  declaredVar(id);
  if (eat("=")) assign(); // where the literal turns out to be a pattern
}

function classOf() {
  need("class");
  const id = is("{") || is("extends") ? undefined : identifier();
  if (eat("extends")) operand();
  need("{");
  while (!eat("}")) if (!eat(";")) classMember();
  return id;
}

function classMember() {
  if (is("static") && peek(() => !isOneOf(/^[(=;}]$/))) {
    next();
    if (is("{")) return inside(false, block);
  }
  if (method() === undefined) return;
  if (eat("=")) inside(false, assign);
  semicolon();
}

// template reads on from a backtick that is the next token.
function template() {
  for (let at = tokenStart + 1; ; at++) {
    if (at >= text.length) fail();
    if (text[at] === "\\") at++;
    else if (text[at] === "`") {
      tokenEnd = at + 1;
      return next();
    } else if (text.startsWith("${", at)) {
      tokenEnd = at + 2;
      next();
      expression();
      if (!is("}")) fail();
      at = tokenStart;
    }
  }
}
