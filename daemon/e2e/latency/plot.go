package latency

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Places in the plot, in units of SVG.
const (
	plotLeft   = 190 // where the bars begin
	plotRight  = 760 // and where the scale ends
	plotWidth  = 960
	plotTop    = 70
	plotHeight = 26 // of a row
)

// Plot is the record as an SVG picture: a bar up to the p50 and a whisker to the p99 for each row, on a logarithmic scale,
// and a mark at the p50 of another record, which may be nil.
func (r *Record) Plot(before *Record) string {
	s := r.scale(before)
	bottom := plotTop + plotHeight*len(r.Rows)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#fff"/>
<text x="12" y="20" font-size="15">Latencies of %s: p50, whisker to p99, ms%s</text>
<text x="12" y="38" font-size="10" fill="#555">%s</text>
`, plotWidth, bottom+34, html.EscapeString(r.Commit), html.EscapeString(against(before)), html.EscapeString(r.conditions()))
	for power := s.low; power <= s.high; power++ {
		x := s.x(math.Pow10(power))
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle" fill="#555">%g</text>`+"\n",
			x, plotTop-6, bottom, x, bottom+18, math.Pow10(power))
	}
	for i := range r.Rows {
		r.Rows[i].bar(&b, s, plotTop+plotHeight*i, before.row(r.Rows[i].Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// against explains the mark and the ratio.
func against(before *Record) string {
	if before == nil {
		return ""
	}
	return fmt.Sprintf("; orange: p50 of %s, × its ratio", before.Commit)
}

// bar draws a row whose upper edge is at y; then may be nil.
func (row *Row) bar(b *strings.Builder, s scale, y int, then *Row) {
	p50, p99, middle := s.x(row.P50Ms), s.x(row.P99Ms), y+plotHeight/2
	label := fmt.Sprintf("%.3f / %.3f", row.P50Ms, row.P99Ms)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLeft-8, middle+4, html.EscapeString(row.Name))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4878a8"/>`, plotLeft, y+4, p50-plotLeft, plotHeight-8)
	fmt.Fprintf(b, `<path d="M%.1f %dH%.1fM%.1f %dV%d" stroke="#222"/>`, p50, middle, p99, p99, middle-5, middle+5)
	if then != nil {
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#e07b00" stroke-width="3"/>`, s.x(then.P50Ms), y+2, y+plotHeight-2)
		label += " ×" + ratio(row.P50Ms, then.P50Ms)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", plotRight+12, middle+4, label)
}

// scale spans the powers of ten from low to high, in milliseconds.
type scale struct{ low, high int }

// scale is the one that all there is to draw fits on. What is not above zero is at its beginning.
func (r *Record) scale(before *Record) scale {
	least, most := math.Inf(1), 0.0
	take := func(ms float64) {
		if ms > 0 {
			least, most = min(least, ms), max(most, ms)
		}
	}
	for i := range r.Rows {
		take(r.Rows[i].P50Ms)
		take(r.Rows[i].P99Ms)
		if then := before.row(r.Rows[i].Name); then != nil {
			take(then.P50Ms)
		}
	}
	if most == 0 {
		return scale{0, 1}
	}
	low := int(math.Floor(math.Log10(least)))
	return scale{low, max(low+1, int(math.Ceil(math.Log10(most))))}
}

// x is the place of a latency.
func (s scale) x(ms float64) float64 {
	at := 0.0
	if ms > 0 {
		at = (math.Log10(ms) - float64(s.low)) / float64(s.high-s.low)
	}
	return plotLeft + min(max(at, 0), 1)*(plotRight-plotLeft)
}
