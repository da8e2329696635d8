package codemode

func (p *parser) spanFrom(s sort, start int) span { return span{sort: s, start: start, end: p.last} }

// expression reads one, commas included. noIn keeps the operator in for the head of a for.
func (p *parser) expression(noIn bool) span {
	start := p.tokenStart
	value := p.assign(noIn)
	for p.eat(",") {
		p.assign(noIn)
		value = p.spanFrom(other, start)
	}
	return value
}

func (p *parser) assign(noIn bool) span {
	defer p.deeper()()
	start := p.tokenStart
	if p.yields && p.is("yield") {
		if p.next(); !p.newline && !p.isEnd() {
			p.eat("*")
			p.assign(noIn)
		}
		return p.spanFrom(other, start)
	}
	if found, ok := p.arrow(noIn); ok {
		return found
	}
	value := p.conditional(noIn)
	if p.kind != tokenPunctuator || !assignments[p.value] {
		return value
	}
	pattern := value.sort == patternLike && p.is("=") && value.start == start
	if value.sort != namedVariable && value.sort != memberAccess && !pattern {
		p.fail()
	}
	p.next()
	p.assign(noIn)
	return p.spanFrom(other, start)
}

// isEnd tells whether nothing of an expression can come.
func (p *parser) isEnd() bool {
	return p.kind == tokenEnd || p.kind == tokenPunctuator && p.isAny(")", "]", "}", ",", ";", ":") || p.isAny("in", "of")
}

// arrow is an arrow function; ok is false, and nothing read, where there is none.
func (p *parser) arrow(noIn bool) (found span, ok bool) {
	if p.is("async") {
		from, here := p.tokenStart, p.place
		if p.next(); !p.newline && (p.is("(") || p.kind == tokenName) {
			if found, ok = p.arrowFrom(from, true, noIn); ok {
				return found, true
			}
		}
		p.place = here
	}
	if p.kind == tokenName || p.is("(") {
		return p.arrowFrom(p.tokenStart, false, noIn)
	}
	return span{}, false
}

func (p *parser) arrowFrom(start int, async, noIn bool) (span, bool) {
	arrowNext := func() bool { return p.is("=>") && !p.newline }
	if p.kind == tokenName && (reserved[p.value] || !p.peek(arrowNext)) || p.noArrow[p.tokenStart] {
		return span{}, false
	}
	here := p.place
	if p.heads++; p.heads > maxHeads {
		panic(tooDeep{})
	}
	if !p.head(async) || !arrowNext() {
		p.noArrow[here.tokenStart] = true
		p.place = here
		return span{}, false
	}
	p.heads = here.heads
	p.next()
	p.inside(async, false, func() {
		if p.is("{") {
			p.block()
		} else {
			p.assign(noIn)
		}
	})
	return p.spanFrom(arrowFunction, start), true
}

// head reads what may be the parameters of an arrow function, and tells whether it is.
func (p *parser) head(async bool) (ok bool) {
	defer func() {
		switch fault := recover(); fault.(type) {
		case nil:
		case syntaxFault:
			ok = false
		default:
			panic(fault)
		}
	}()
	p.inside(async, false, func() {
		if p.kind == tokenName {
			p.identifier()
		} else {
			p.parameters()
		}
	})
	return true
}

func (p *parser) conditional(noIn bool) span {
	start := p.tokenStart
	value := p.binary(0, noIn)
	if !p.eat("?") {
		return value
	}
	p.assign(false)
	p.need(":")
	p.assign(noIn)
	return p.spanFrom(other, start)
}

// binary reads operators that bind closer than least.
func (p *parser) binary(least int, noIn bool) span {
	defer p.deeper()()
	start := p.tokenStart
	value := p.unary()
	for {
		level := 0
		if p.kind == tokenPunctuator || p.is("in") && !noIn || p.is("instanceof") {
			level = precedence[p.value]
		}
		if level <= least {
			return value
		}
		p.next()
		if level == precedence["**"] {
			level-- // from right to left
		}
		p.binary(level, noIn)
		value = p.spanFrom(other, start)
	}
}

func (p *parser) unary() span {
	defer p.deeper()()
	start := p.tokenStart
	switch {
	case (p.kind == tokenPunctuator || p.kind == tokenName && !p.escaped) && prefixes[p.value]:
		changes := p.isAny("++", "--")
		p.next()
		if value := p.unary(); changes && value.sort != namedVariable && value.sort != memberAccess {
			p.fail()
		}
		return p.spanFrom(other, start)
	case p.is("await"):
		if !p.awaits {
			p.fail()
		}
		p.next()
		p.unary()
		return p.spanFrom(other, start)
	case p.kind == tokenPrivate: // #x in object
		if p.next(); !p.is("in") {
			p.fail()
		}
		return p.spanFrom(other, start)
	}
	value := p.leftSide(true)
	if !p.newline && p.isAny("++", "--") {
		if value.sort != namedVariable && value.sort != memberAccess {
			p.fail()
		}
		p.next()
		return p.spanFrom(other, start)
	}
	return value
}

// leftSide is a member, a call, or what is simpler. Without calls it is what new takes.
func (p *parser) leftSide(calls bool) span {
	start := p.tokenStart
	whole := p.primary()
	for optional := false; ; {
		s := memberAccess
		switch {
		case p.is("?."):
			if !calls {
				p.fail()
			}
			p.next()
			optional = true
			switch {
			case p.is("("):
				p.arguments()
			case p.eat("["):
				p.index()
			default:
				p.member()
			}
		case p.eat("."):
			p.member()
		case p.eat("["):
			p.index()
		case p.kind == tokenTemplate:
			if optional {
				p.fail()
			}
			p.template()
			s = other
		case calls && p.is("("):
			p.arguments()
			s = other
		default:
			return whole
		}
		if optional {
			s = other
		}
		whole = p.spanFrom(s, start)
	}
}

func (p *parser) member() {
	if p.kind != tokenName && p.kind != tokenPrivate {
		p.fail()
	}
	p.next()
}

func (p *parser) index() {
	p.expression(false)
	p.need("]")
}

func (p *parser) arguments() {
	p.need("(")
	for !p.is(")") {
		p.eat("...")
		p.assign(false)
		p.comma(")")
	}
	p.next()
}

func (p *parser) primary() span {
	start, s := p.tokenStart, other
	switch {
	case p.is("["), p.is("{"):
		s = patternLike
	case p.kind == tokenName && (p.escaped || !reserved[p.value]):
		s = namedVariable
	}
	switch {
	case p.kind == tokenNumber, p.kind == tokenString:
		p.next()
	case p.kind == tokenTemplate:
		p.template()
	case p.eat("("):
		value := p.expression(false)
		p.need(")")
		return value
	case p.is("["):
		p.list()
	case p.is("{"):
		p.literal()
	case p.is("/"), p.is("/="):
		p.regexpToken()
	case p.kind == tokenName:
		p.word()
	default:
		p.fail()
	}
	return p.spanFrom(s, start)
}

// word reads what a word begins.
func (p *parser) word() {
	if p.escaped {
		p.identifier()
		return
	}
	switch p.value {
	case "this", "null", "true", "false":
		p.next()
	case "function":
		p.functionValue(false)
	case "class":
		p.class()
	case "new":
		p.created()
	case "import":
		p.importValue()
	case "super":
		if p.next(); !p.inFunction || !p.isAny("(", ".", "[") {
			p.fail()
		}
	default:
		if p.is("async") && p.peek(func() bool { return p.is("function") && !p.newline }) {
			p.next()
			p.functionValue(true)
			return
		}
		p.identifier()
	}
}

func (p *parser) functionValue(async bool) {
	p.need("function")
	generator := p.eat("*")
	if !p.is("(") {
		// Its name belongs to itself: await and yield are read as inside of it.
		p.identifier()
	}
	p.body(async, generator)
}

func (p *parser) created() {
	defer p.deeper()()
	if p.next(); p.eat(".") {
		if !p.inFunction || !p.is("target") {
			p.fail()
		}
		p.next()
		return
	}
	switch {
	case p.is("new"):
		p.created()
	case p.is("import"):
		p.fail()
	default:
		p.leftSide(false)
	}
	if p.is("(") {
		p.arguments()
	}
}

func (p *parser) importValue() {
	if p.next(); p.eat(".") {
		if !p.is("meta") {
			p.fail()
		}
		p.next()
		return
	}
	p.need("(")
	p.assign(false)
	if p.eat(",") && !p.is(")") {
		p.assign(false)
		p.eat(",")
	}
	p.need(")")
}

func (p *parser) list() {
	p.next()
	for !p.is("]") {
		if p.eat(",") {
			continue
		}
		p.eat("...")
		p.assign(false)
		p.comma("]")
	}
	p.next()
}

func (p *parser) literal() {
	p.need("{")
	for !p.is("}") {
		if p.kind == tokenPrivate {
			p.fail()
		}
		if p.eat("...") {
			p.assign(false)
		} else {
			p.literalMember()
		}
		p.comma("}")
	}
	p.next()
}

func (p *parser) literalMember() {
	found := p.memberName()
	switch {
	case found == isMethod:
	case p.eat(":"):
		p.assign(false)
	case found != isVariable:
		p.fail()
	case p.eat("="):
		p.assign(false) // only where the literal turns out to be a pattern
	}
}

func (p *parser) isKey() bool {
	switch p.kind {
	case tokenName, tokenString, tokenNumber, tokenPrivate:
		return true
	}
	return p.is("[")
}

// memberKind is what memberName read.
type memberKind uint8

const (
	isMethod   memberKind = iota // all of it
	isVariable                   // a name that may be that of a variable too
	isOtherKey
)

func (p *parser) memberName() memberKind {
	async := p.is("async") && p.peek(func() bool { return !p.newline && (p.isKey() || p.is("*")) })
	if async {
		p.next()
	}
	generator := p.eat("*")
	accessor := !async && !generator && p.isAny("get", "set") && p.peek(p.isKey)
	if accessor {
		p.next()
	}
	found := isOtherKey
	if p.isName() {
		found = isVariable
	}
	p.key()
	if p.is("(") {
		p.body(async, generator)
		return isMethod
	}
	if async || generator || accessor {
		p.fail()
	}
	return found
}

// class reads a class and gives its name, empty for none.
func (p *parser) class() (name string) {
	p.need("class")
	if p.kind == tokenName && !p.is("extends") {
		name = p.identifier()
	}
	if p.eat("extends") {
		p.leftSide(true)
	}
	p.need("{")
	for !p.eat("}") {
		if !p.eat(";") {
			p.classMember()
		}
	}
	return name
}

func (p *parser) classMember() {
	if p.is("static") && p.peek(func() bool { return !p.isAny("(", "=", ";", "}") }) {
		if p.next(); p.is("{") {
			p.inside(false, false, p.block)
			return
		}
	}
	if p.memberName() == isMethod {
		return
	}
	if p.eat("=") {
		p.inside(false, false, func() { p.assign(false) })
	}
	p.semicolon()
}

// template reads on from a backtick that is the next token.
func (p *parser) template() {
	for at := p.tokenStart + 1; at < len(p.text); {
		switch {
		case p.text[at] == '\\':
			at += 2
		case p.text[at] == '`':
			p.tokenEnd = at + 1
			p.next()
			return
		case p.text[at] == '$' && at+1 < len(p.text) && p.text[at+1] == '{':
			p.tokenEnd = at + 2
			p.next()
			p.expression(false)
			if !p.is("}") {
				p.fail()
			}
			at = p.tokenStart + 1
		default:
			at++
		}
	}
	p.fail()
}
