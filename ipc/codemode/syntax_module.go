package codemode

// exported reads an export. What is exported by name has to be declared, which only the end of the text could tell; a text
// with such exports is refused later whatever it is, so nothing hangs on it.
func (p *parser) exported() statement {
	p.next()
	switch {
	case p.eat("default"):
		return p.exportedDefault()
	case p.eat("*"):
		if p.eat("as") {
			p.next()
		}
		p.need("from")
		p.source()
	case p.is("{"):
		local := p.specifiers()
		switch {
		case p.eat("from"):
			p.source()
		case local:
			p.semicolon()
		default:
			p.fail()
		}
	case p.isAny("var", "let", "const", "class", "function", "async"):
		p.statement()
	default:
		p.fail()
	}
	return statement{}
}

func (p *parser) exportedDefault() statement {
	start := p.tokenStart
	value := span{start: start}
	switch {
	case p.is("function"), p.is("async") && p.peek(func() bool { return p.is("function") && !p.newline }):
		value.sort, value.name = functionDeclaration, p.declaration(true).name
	case p.is("class"):
		value.sort, value.name = classDeclaration, p.class()
	default:
		value = p.assign(false)
		p.semicolon()
		return statement{sort: defaultExport, value: value}
	}
	value.end = p.last
	return statement{sort: defaultExport, value: value}
}

// specifiers reads the braces of an import or export, and tells whether all in it are names of variables.
func (p *parser) specifiers() bool {
	local := true
	p.need("{")
	for !p.is("}") {
		local = local && p.isName()
		p.specifier()
		if p.eat("as") {
			p.specifier()
		}
		p.comma("}")
	}
	p.next()
	return local
}

func (p *parser) specifier() {
	if p.kind != tokenName && p.kind != tokenString {
		p.fail()
	}
	p.next()
}

func (p *parser) imported() {
	p.next()
	if p.kind == tokenString {
		p.source()
		return
	}
	if !p.is("{") && !p.is("*") {
		p.identifier()
		if !p.eat(",") {
			p.need("from")
			p.source()
			return
		}
	}
	if p.eat("*") {
		p.need("as")
		p.identifier()
	} else {
		p.specifiers()
	}
	p.need("from")
	p.source()
}

func (p *parser) source() {
	if p.kind != tokenString {
		p.fail()
	}
	p.next()
	if p.eat("with") {
		p.literal()
	}
	p.semicolon()
}
