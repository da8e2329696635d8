package codemode

import "strings"

// A recogniser of ECMAScript modules (ECMA-262, 2026): it finds where the statements of a text begin and end and what sort
// they are, and refuses what is no module. It builds no tree. Early errors that engines find as well are left to them; those
// that decide how a text is read (a return outside of functions, names declared twice at the top) are found here. It is the
// twin of packaging/npm/src/codemode/syntax.js, which takes more: what engines take, both divide alike, but for names declared
// twice at the top.

const (
	// maxHeads bounds what might be heads of arrow functions inside each other: each is read twice where it is none.
	maxHeads = 100
	// maxNesting bounds the stack.
	maxNesting = 4000
)

var (
	reserved = set("break case catch class const continue debugger default delete do else enum export extends false finally for function " +
		"if import in instanceof new null return super switch this throw true try typeof var void while with implements interface let " +
		"package private protected public static yield await")
	assignments = set("= += -= *= /= %= **= <<= >>= >>>= &= |= ^= &&= ||= ??=")
	prefixes    = set("+ - ! ~ ++ -- typeof void delete")
	precedence  = map[string]int{
		"??": 1, "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "===": 6, "!==": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
		"instanceof": 7, "in": 7, "<<": 8, ">>": 8, ">>>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10, "**": 11,
	}
)

// sort says what a statement or an expression is, as far as it matters here.
type sort uint8

const (
	other sort = iota
	expressionStatement
	functionDeclaration
	defaultExport
	classDeclaration
	arrowFunction
	namedVariable
	memberAccess
	patternLike // an array or object literal, which may turn out to be a pattern
)

// statement is one of the text. Of an expression statement and a default export, value is what stands there, without
// parentheses around the statement's own; a function and a class have a name unless they need none. semicolon is where one
// ends an expression statement, negative where none does.
type statement struct {
	sort       sort
	start, end int
	name       string
	semicolon  int
	value      span
}

// span is an expression, or what is exported by default.
type span struct {
	sort       sort
	start, end int
	name       string
}

// place is where a parser is: the token that comes next, and what is around it.
type place struct {
	kind       tokenKind
	value      string
	tokenStart int
	tokenEnd   int
	last       int  // where the token before this one ends
	newline    bool // before this one
	escaped    bool // it is a name written with an escape

	awaits     bool // in an async function or at the top
	yields     bool
	inFunction bool
	blocks     int // that are open
	heads      int // of what may be arrow functions, inside each other
	nesting    int
}

type parser struct {
	text string
	place

	functions map[string]bool // names declared at the top
	variables map[string]bool // by var, at the top or in blocks
	noArrow   map[int]bool    // places that begin no arrow function
}

// syntaxFault is what a parser panics with: the text is no module.
type syntaxFault struct{}

// tooDeep is what it panics with when a text asks for too much of it.
type tooDeep struct{}

// statementsOf are the statements of a module; ok is false where the text is none, or is nested too deep.
func statementsOf(text string) (list []statement, ok bool) {
	defer func() {
		switch fault := recover(); fault.(type) {
		case nil:
		case syntaxFault, tooDeep:
			list, ok = nil, false
		default:
			panic(fault)
		}
	}()
	p := &parser{text: text, functions: map[string]bool{}, variables: map[string]bool{}, noArrow: map[int]bool{}}
	p.awaits = true
	if strings.HasPrefix(text, "#!") {
		p.tokenEnd = lineLength(text)
	}
	for p.next(); p.kind != tokenEnd; {
		list = append(list, p.item())
	}
	return list, true
}

func (p *parser) fail() { panic(syntaxFault{}) }

func (p *parser) is(value string) bool {
	return p.value == value && (p.kind == tokenPunctuator || p.kind == tokenName && !p.escaped)
}

// isAny tells whether the token is one of these.
func (p *parser) isAny(values ...string) bool {
	for _, v := range values {
		if p.is(v) {
			return true
		}
	}
	return false
}

func (p *parser) eat(value string) bool {
	if !p.is(value) {
		return false
	}
	p.next()
	return true
}

func (p *parser) need(value string) {
	if !p.eat(value) {
		p.fail()
	}
}

// peek tells what test says of the token after this one.
func (p *parser) peek(test func() bool) bool {
	here := p.place
	p.next()
	found := test()
	p.place = here
	return found
}

// deeper is to be called where the grammar may call itself, and its result at the end.
func (p *parser) deeper() func() {
	if p.nesting++; p.nesting > maxNesting {
		panic(tooDeep{})
	}
	return func() { p.nesting-- }
}

func (p *parser) semicolon() {
	if !p.eat(";") && !p.is("}") && p.kind != tokenEnd && !p.newline {
		p.fail()
	}
}

// isName tells whether the token may name a variable.
func (p *parser) isName() bool { return p.kind == tokenName && !reserved[p.value] }

func (p *parser) identifier() string {
	if !p.isName() {
		p.fail()
	}
	value := p.value
	p.next()
	return value
}

// item is a statement at the top.
func (p *parser) item() statement {
	start := p.tokenStart
	var s statement
	switch {
	case p.is("export"):
		s = p.exported()
	case p.is("import") && p.peek(func() bool { return !p.is("(") && !p.is(".") }):
		p.imported()
	default:
		s = p.statement()
	}
	s.start, s.end = start, p.last
	return s
}

func (p *parser) statement() statement {
	defer p.deeper()()
	if p.kind == tokenPunctuator {
		if p.is("{") {
			p.block()
			return statement{}
		}
		if p.eat(";") {
			return statement{}
		}
	}
	if p.kind == tokenName && !p.escaped {
		if s, ok := p.keyword(); ok {
			return s
		}
		if p.isName() && p.peek(func() bool { return p.is(":") }) {
			p.next()
			p.next()
			p.statement()
			return statement{}
		}
	}
	value := p.expression(false)
	end := p.last
	p.semicolon()
	s := statement{sort: expressionStatement, value: value, semicolon: -1}
	if p.last > end && p.text[p.last-1] == ';' {
		s.semicolon = p.last - 1
	}
	return s
}

// keyword reads a statement that a word begins; ok is false, and nothing read, when none does.
func (p *parser) keyword() (s statement, ok bool) {
	switch p.value {
	case "function":
		return p.declaration(false), true
	case "class":
		if p.class() == "" {
			p.fail()
		}
	case "var", "let", "const":
		p.declare(p.value, false)
	case "if":
		p.next()
		p.parenthesised()
		p.statement()
		if p.eat("else") {
			p.statement()
		}
	case "for":
		p.loop()
	case "while":
		p.next()
		p.parenthesised()
		p.statement()
	case "do":
		p.next()
		p.statement()
		p.need("while")
		p.parenthesised()
		p.eat(";")
	case "switch":
		p.switched()
	case "try":
		p.tried()
	case "throw":
		if p.next(); p.newline {
			p.fail()
		}
		p.expression(false)
		p.semicolon()
	case "return":
		p.returned()
	case "break", "continue":
		p.jump()
	case "debugger":
		p.next()
		p.semicolon()
	default:
		return p.softKeyword()
	}
	return statement{}, true
}

// softKeyword is keyword for words that may be names too.
func (p *parser) softKeyword() (s statement, ok bool) {
	if p.is("async") && p.peek(func() bool { return p.is("function") && !p.newline }) {
		return p.declaration(false), true
	}
	if p.isUsing() {
		p.declare("lexical", false)
		return statement{}, true
	}
	return statement{}, false
}

func (p *parser) isUsing() bool {
	named := func() bool {
		return p.kind == tokenName && !p.newline && !p.isAny("in", "of", "instanceof")
	}
	if p.is("using") {
		return p.peek(named)
	}
	return p.is("await") && p.peek(func() bool { return p.is("using") && !p.newline && p.peek(named) })
}

func (p *parser) block() {
	p.need("{")
	p.blocks++
	for !p.is("}") {
		p.statement()
	}
	p.blocks--
	p.next()
}

// declaration reads a function; where it is exported by default it needs no name.
func (p *parser) declaration(optional bool) statement {
	async := p.eat("async")
	p.need("function")
	generator := p.eat("*")
	name := ""
	if !optional || !p.is("(") {
		name = p.identifier()
	}
	p.body(async, generator)
	if name != "" && !p.inFunction && p.blocks == 0 {
		if p.functions[name] || p.variables[name] {
			p.fail()
		}
		p.functions[name] = true
	}
	return statement{sort: functionDeclaration, name: name}
}

// body is the parameters and the body of a function.
func (p *parser) body(async, generator bool) {
	p.inside(async, generator, func() {
		p.parameters()
		p.block()
	})
}

func (p *parser) inside(async, generator bool, parse func()) {
	awaits, yields, inFunction := p.awaits, p.yields, p.inFunction
	p.awaits, p.yields, p.inFunction = async, generator, true
	parse()
	p.awaits, p.yields, p.inFunction = awaits, yields, inFunction
}

func (p *parser) parameters() {
	p.need("(")
	for !p.is(")") {
		rest := p.eat("...")
		p.target("")
		if rest || !p.eat(",") {
			break
		}
	}
	p.need(")")
}

// target is a binding, with a default if there is one. how is the word of the declaration, empty for parameters.
func (p *parser) target(how string) {
	p.binding(how)
	if p.eat("=") {
		p.assign(false)
	}
}

func (p *parser) binding(how string) {
	defer p.deeper()()
	switch {
	case p.eat("["):
		for !p.is("]") {
			if p.eat(",") {
				continue
			}
			if p.eat("...") {
				p.binding(how)
			} else {
				p.target(how)
			}
			p.comma("]")
		}
		p.next()
	case p.eat("{"):
		for !p.is("}") {
			if p.eat("...") {
				p.binding(how)
			} else {
				p.property(how)
			}
			p.comma("}")
		}
		p.next()
	default:
		if name := p.identifier(); how == "var" {
			p.declaredVar(name)
		}
	}
}

// comma reads the comma between the parts of what ends with end.
func (p *parser) comma(end string) {
	if !p.is(end) {
		p.need(",")
	}
}

func (p *parser) property(how string) {
	shorthand, may := p.value, p.isName()
	p.key()
	if p.eat(":") {
		p.target(how)
		return
	}
	if !may {
		p.fail()
	}
	if how == "var" {
		p.declaredVar(shorthand)
	}
	if p.eat("=") {
		p.assign(false)
	}
}

func (p *parser) declaredVar(name string) {
	if p.inFunction {
		return
	}
	if p.functions[name] {
		p.fail()
	}
	p.variables[name] = true
}

func (p *parser) key() {
	if p.eat("[") {
		p.assign(false)
		p.need("]")
		return
	}
	switch p.kind {
	case tokenName, tokenString, tokenNumber, tokenPrivate:
		p.next()
	default:
		p.fail()
	}
}

// declare reads a declaration. In the head of a for it may lack values, and has no semicolon.
func (p *parser) declare(how string, head bool) {
	p.eat("await") // using
	p.next()
	for more := true; more; more = p.eat(",") {
		pattern := p.is("[") || p.is("{")
		p.binding(how)
		if p.eat("=") {
			p.assign(head)
		} else if !head && (pattern || how == "const") {
			p.fail()
		}
	}
	if !head {
		p.semicolon()
	}
}

func (p *parser) parenthesised() {
	p.need("(")
	p.expression(false)
	p.need(")")
}

func (p *parser) loop() {
	if p.next(); p.is("await") {
		if !p.awaits {
			p.fail()
		}
		p.next()
	}
	p.need("(")
	if !p.is(";") {
		switch {
		case p.isAny("var", "let", "const"):
			p.declare(p.value, true)
		case p.isUsing():
			p.declare("lexical", true)
		default:
			p.expression(true)
		}
	}
	switch {
	case p.eat("of"):
		p.assign(false)
	case p.eat("in"):
		p.expression(false)
	default:
		p.need(";")
		if !p.is(";") {
			p.expression(false)
		}
		p.need(";")
		if !p.is(")") {
			p.expression(false)
		}
	}
	p.need(")")
	p.statement()
}

func (p *parser) switched() {
	p.next()
	p.parenthesised()
	p.need("{")
	p.blocks++
	for !p.is("}") {
		if p.eat("case") {
			p.expression(false)
		} else {
			p.need("default")
		}
		p.need(":")
		for !p.isAny("case", "default", "}") {
			p.statement()
		}
	}
	p.blocks--
	p.next()
}

func (p *parser) tried() {
	p.next()
	p.block()
	caught := p.eat("catch")
	if caught {
		if p.eat("(") {
			p.binding("")
			p.need(")")
		}
		p.block()
	}
	if p.eat("finally") {
		p.block()
	} else if !caught {
		p.fail()
	}
}

func (p *parser) returned() {
	if !p.inFunction {
		p.fail()
	}
	if p.next(); !p.is(";") && !p.is("}") && p.kind != tokenEnd && !p.newline {
		p.expression(false)
	}
	p.semicolon()
}

func (p *parser) jump() {
	if p.next(); p.kind == tokenName && !p.newline {
		p.identifier()
	}
	p.semicolon()
}
