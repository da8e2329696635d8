// A recogniser of ECMAScript modules (ECMA-262, 2026): it finds where the statements of a text begin and end and what
// sort they are, and builds no tree. What an engine takes it divides as the engine does, into tokens, brackets and
// statements. It takes much more: patterns and parameters are read as expressions, and words, operators and commas may stand
// nearly anywhere, since what is wrong with those an engine finds, whatever is written around them. Of what is right in a
// function but not in a module it finds a return outside of functions; names declared twice at the top it lets pass.

const blank = /(?:\s|\/\/.*|\/\*[^]*?\*\/|^#!.*)*/y;
// A string or a number, a name or a word of the language, or else a punctuator.
const token = /(0[xX]\w+|(?:(?!0\d)\d[\d_]*\.?|\.\d)(?:[eE][-+]|\w)*|"(?:\\(?:\r\n|[^])|[^"\\\n\r])*"|'(?:\\(?:\r\n|[^])|[^'\\\n\r])*')|((?!\d)(?:\\u\{\w+\}|[$#\\\u200c\u200d\p{IDC}])+)|(?!\/\*)(?:\?\.(?!\d)|=>|\.+|\+\+|--|\?\?=?|(?:[-+/%^=!]|[*&|<>]+)=*|\S|$)/uy;
// A dot is no end of a line.
const regexp = /\/(?:\\.|\[(?:\\.|(?![\]\\]).)*\]|(?![/\\[]).)+\/\w*/y;
const templatePart = /(?:\\[^]|\$(?!\{)|[^\\$`])*(?:`|\$\{)/y;

/** Words that are no names, and begin no operand but in the ways that operand knows. */
export const reserved = /^(break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|finally|for|function|if|in|instanceof|new|return|switch|throw|try|typeof|var|void|while|with|implements|interface|let|package|private|protected|public|static|yield|await)$/;
const prefix = /^([-+!~.]+|typeof|void|delete|await|new|yield)$/;
const operator = /^(?!=>|\+\+|--)([-+*/%&|^<>=]|!=|\?\?|in$|instanceof$)/;
const assignment = /(^|[^=!<>]|<<|>>)=$/;

// What is being read. A text is read at once, so there is never more than one.
let text;
let end; // of what was read of it
let scope; // undefined outside of functions, else whether that one is async
let returns; // whether there was a return outside of functions

// The token that comes next, and where the one before it ends.
let value;
let start;
let last;
let newline; // whether there is one in between
let isLiteral; // undefined unless it is a string or a number
let isWord; // undefined unless it is a name or a word of the language

// What was read last.
let called; // whether it is a call
let unit; // of an arrow function or of what was in parentheses: where it begins and ends, and its value

/**
 * The statements of a module: {start, end, value, exported, name}. Expressions have a value and default exports have
 * exported: {start, end, kind} of what stands there, without parentheses around it; kind is "arrow", or "function" or "class"
 * of one that has no name. Declarations of functions have a name. It is undefined where the text is no module, but would be one within a
 * function: it returns. Throws where it is neither.
 */
export function statementsOf(module) {
  text = module;
  end = 0;
  scope = returns = undefined;
  unit = [];
  next();
  const list = [];
  while (value) {
    const from = start;
    const found = statement() ?? {};
    found.start = from;
    found.end = last;
    list.push(found);
  }
  return returns ? undefined : list;
}

function fail() {
  throw new SyntaxError();
}

function read(pattern) {
  pattern.lastIndex = end;
  const found = pattern.exec(text) ?? fail();
  end = pattern.lastIndex;
  return found;
}

function next() {
  last = end;
  newline = !/^.*$/.test(read(blank)[0]);
  start = end;
  [value, isLiteral, isWord] = read(token);
}

const is = (wanted) => value === wanted;
const isOneOf = (pattern) => pattern.test(value);
const isName = () => isWord && !isOneOf(reserved);
const isEnd = () => isOneOf(/^[)\]},;:]?$/);
const isChange = () => is("++") || is("--");
const isFunction = () => is("function") || (is("async") && peek(() => is("function") && !newline));
const kindOfDefinition = () => (is("class") ? "class" : isFunction() && "function");

function eat(wanted) {
  const found = is(wanted);
  if (found) next();
  return found;
}

function need(wanted) {
  eat(wanted) || fail();
}

// peek tells whether the token after the next one passes a test.
function peek(test) {
  const before = last;
  next();
  const found = test();
  end = before;
  next();
  return found;
}

function semicolon() {
  if (!eat(";") && !is("}") && value && !newline) fail();
}

// statement gives what statementsOf says of it.
function statement() {
  if (isOneOf(/^(if|while|switch|try|catch|finally)$/)) {
    next();
    if (is("(")) items();
    statement();
    if (eat("else") || isOneOf(/^(catch|finally)$/)) statement();
  } else if (eat("for")) {
    eat("await");
    need("(");
    while (!eat(")")) isOneOf(/^(var|let|const|of|;)$/) ? next() : expression();
    statement();
  } else if (eat("do")) {
    statement();
    need("while");
    items();
    eat(";");
  } else if (eat("case") || eat("default")) {
    if (!is(":")) expression();
    need(":");
  } else if (isOneOf(/^(return|throw|break|continue|debugger)$/)) {
    returns ||= is("return") && scope === undefined;
    next();
    if (!newline && !isEnd()) expression();
    semicolon();
  } else if (eat("var") || eat("let") || eat("const")) {
    expression();
    semicolon();
  } else if (is("import") && !peek(() => isOneOf(/^[(.]$/))) names();
  else if (eat("export")) {
    if (eat("default")) return { exported: simple(assign).value };
    isOneOf(/^[*{]$/) ? names() : statement();
  } else if (is("{")) block();
  else if (!eat(";")) return simple(expression);
}

// simple is a declaration of a function or a class, or what parse reads, or a label or a using. It gives the value and the
// name of that, as far as there are such.
function simple(parse) {
  const from = start;
  const kind = kindOfDefinition();
  if (kind) {
    const name = definition();
    if (parse === assign) return { value: placeOf(from, name ? "" : kind) };
    return { name: (name || fail()) && kind === "function" && name };
  }
  const mayDeclare = is("using") || is("await");
  parse();
  let value = valueOf(from);
  if (mayDeclare && isWord && !newline) value = expression();
  if (eat(":")) value = void statement();
  else semicolon();
  return { value };
}

// names is what stands after import, and after export if that is no declaration.
function names() {
  do is("{") ? members(true) : next();
  while (value && !newline && !is(";"));
  eat(";");
}

const placeOf = (from, kind) => ({ kind, start: from, end: last });

// valueOf is what was read from a place on, without the parentheses around it.
function valueOf(from) {
  const [begins, ends, inside] = unit;
  return begins === from && ends === last ? inside : placeOf(from);
}

function block() {
  need("{");
  while (!eat("}")) statement();
}

// inside reads what is in a function.
function inside(async, parse) {
  const around = scope;
  scope = async;
  parse();
  scope = around;
}

function body(async) {
  inside(async, () => {
    items();
    block();
  });
}

// definition is a function or a class. It gives its name, which may be empty.
function definition() {
  const async = eat("async");
  next();
  eat("*");
  const name = isOneOf(/^([({]|extends)$/) ? "" : value;
  if (name) isName() ? next() : fail();
  if (eat("extends")) operand();
  is("(") ? body(async) : members(true);
  return name;
}

// members are those of an object literal, or of what needs no commas between them and may have several words before each.
function members(isLoose) {
  need("{");
  while (!eat("}")) {
    if (eat(",") || (isLoose && eat(";"))) continue;
    const isShort = isWord;
    let async = false;
    let keys = 0;
    for (; isWord || isLiteral || isOneOf(/^[*[]$/); keys++) {
      async ||= is("async");
      is("[") ? items() : next();
    }
    if (is("(")) body(async);
    else if (isLoose && is("{")) inside(false, block);
    else if ((isLoose || keys < 2) && (eat(":") || eat("=") || is("..."))) assign();
    else if (isLoose ? !keys : keys > 1 || !isShort) fail();
    if (!isLoose && !is(",") && !is("}")) fail();
  }
}

// items is what stands in round or square brackets. It gives the value of that.
function items() {
  const close = is("(") ? ")" : "]";
  if (!eat("(")) need("[");
  const from = start;
  while (!is(close)) {
    if (eat(",")) continue;
    assign();
    if (!is(",") && !is(close)) fail();
  }
  const inside = valueOf(from);
  next();
  return inside;
}

function expression() {
  do assign();
  while (eat(","));
}

// assign is operands with operators between them.
function assign() {
  for (;;) {
    let changes = false;
    while (isOneOf(prefix)) {
      changes ||= isChange();
      if (is("await") && scope === false) fail();
      const mayEnd = is("yield");
      next();
      if (mayEnd && (newline || (!eat("*") && isEnd()))) return;
    }
    if (operand()) return;
    if (called && (changes || isOneOf(assignment))) fail(); // engines find that no sooner than it runs
    if (eat("?")) {
      assign();
      need(":");
    } else if (isOneOf(operator)) next();
    else return;
  }
}

// operand tells whether it was an arrow function, after which no operator comes.
function operand() {
  const from = start;
  const isAsync = is("async") && peek(() => !newline && (is("(") || (!is(")") && peek(() => is("=>")))));
  if (isAsync) next();
  const mayBeHead = is("(") || (isName() && !isFunction());
  if (is("(")) {
    const inside = items();
    if (!isAsync) unit = [from, last, inside];
  } else if (mayBeHead || isLiteral) next();
  else if (kindOfDefinition()) definition();
  else if (is("[")) items();
  else if (is("{")) members();
  else if (is("`")) template();
  else if (value[0] === "/") {
    end = start;
    read(regexp);
    next();
  } else fail();
  if (mayBeHead && !newline && eat("=>")) {
    inside(isAsync, () => is("{") ? block() : assign());
    unit = [from, last, placeOf(from, "arrow")];
    return true;
  }
  called = isAsync;
  for (;;) {
    const call = is("(");
    if (call || is("[")) items();
    else if (is("`")) template();
    else if (eat(".")) isWord ? next() : fail();
    else if (eat("?.")) isWord && next();
    else break;
    called = call;
  }
  if (isChange() && !newline) called ? fail() : next();
}

// template reads on from a backtick that is the next token.
function template() {
  while (read(templatePart)[0].endsWith("{")) {
    next();
    expression();
    if (!is("}")) fail();
  }
  next();
}
