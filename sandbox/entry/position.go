package entry

// Map translates a place in Source to one in the submitted text; lines and columns count from 1, columns in UTF-16
// units. A place inside text that was put in becomes the place that it stands for; one after the end of the submitted
// text becomes its end. The result always lies inside the submitted text.
func (p *Program) Map(line, column int) (int, int) {
	line, column = max(line, 1), max(column, 1)
	if line > len(p.text.lines) {
		return p.text.position(p.text.units)
	}
	shift := 0 // units put into the line before the place
	for _, in := range p.inserts[line] {
		start := in.column + shift
		if column-1 < start {
			break
		}
		if column-1 < start+in.length {
			return p.text.position(in.from)
		}
		shift += in.length
	}
	return line, min(column-shift, p.text.lineUnits(line)+1)
}

// SourceLine returns one line of the submitted text, from 1, without its end and cut to a bound; "" when there is no
// such line.
func (p *Program) SourceLine(line int) string { return p.text.sourceLine(line) }
