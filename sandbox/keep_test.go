package sandbox_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
	"github.com/executord/executord/ipc/worker"
)

// invoke sends a call of a handle. Its answer is collect's.
func (p *proc) invoke(handle uint64, method, args string, limits func(*worker.Limits)) (id uint64) {
	p.t.Helper()
	p.nextID++
	l := defaultLimits()
	if limits != nil {
		limits(&l)
	}
	if err := p.conn.Send(worker.Invoke{ID: p.nextID, Handle: handle, Method: method, Args: []byte(args), Limits: l}); err != nil {
		p.t.Fatal(err)
	}
	return p.nextID
}

func (p *proc) call(handle uint64, args string, j job) end {
	p.t.Helper()
	return p.collect(p.invoke(handle, "", args, j.limits), j)
}

func (p *proc) release(handles ...uint64) {
	p.t.Helper()
	if err := p.conn.Send(worker.Release{Handles: handles}); err != nil {
		p.t.Fatal(err)
	}
}

// restored waits until the worker takes a program again.
func (p *proc) restored() {
	p.t.Helper()
	if p.await(func(m worker.Message) bool { _, ok := m.(worker.Ready); return ok }) == nil {
		p.t.Fatalf("the worker ended: %s", p.stderr.String())
	}
}

// keep runs a program that retains so many handles.
func (p *proc) keep(handles uint64, code string, j job) end {
	p.t.Helper()
	j.code, j.retain = code, "R"
	e := p.run(j)
	if e.err != nil || !e.result.Retained || e.result.Handles != handles {
		p.t.Fatalf("got %s, %v, retained %t with %d handles, want %d; stderr %s", e.value, e.err, e.result.Retained, e.result.Handles, handles, p.stderr.String())
	}
	return e
}

func TestHandlesInValues(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		code, want string
		handles    uint64
	}{
		{"return () => 1", `{"@handle":"R.1"}`, 1},
		{"const f = () => 1; return {f, list: [f, {deep: async function () {}}], map: new Map([['k', class {}]])}", `{"f":{"@handle":"R.1"},"list":[{"@handle":"R.1"},{"deep":{"@handle":"R.2"}}],"map":{"@map":[["k",{"@handle":"R.3"}]]}}`, 3},
		{"return {gen: (function* () {})(), agen: (async function* () {})(), own: { [Symbol.asyncIterator]() { return { next() {} } } }, keys: new Map().keys()}", `{"gen":{"@handle":["R.1","iterator"]},"agen":{"@handle":["R.2","iterator"]},"own":{"@handle":["R.3","iterator"]},"keys":{"@handle":["R.4","iterator"]}}`, 4},
		{"return [new Blob(['abc']).stream(), new URL('a:b')]", `[{"@handle":["R.1","stream"]},{"@url":"a:b"}]`, 1},
		{"return {'@f': () => 1}", `{"@object":{"@f":{"@handle":"R.1"}}}`, 1},
	} {
		e := p.keep(c.handles, c.code, job{})
		if e.value != c.want {
			t.Errorf("%s gives\n%s, want\n%s", c.code, e.value, c.want)
		}
		p.release()
		p.restored()
	}
	// What has nothing to call ends as ever, and so does what fails.
	for code, want := range map[string]protocol.Type{
		"return 1": "", "throw new Error('no')": protocol.Exception, "return [() => 1, Symbol()]": protocol.ResultUnserializable,
		"return {a: () => 1, then: 1, b: {then: () => 1}}": protocol.ResultUnserializable, "const f = () => 1; return [f, {then: f}]": protocol.ResultUnserializable,
		"return [() => 1, {get [Symbol.asyncIterator]() { throw 1 }}]": protocol.ResultUnserializable, "return new Proxy(() => 1, {})": protocol.ResultUnserializable,
	} {
		e := p.run(job{code: code, retain: "R"})
		if e.result.Retained || typeOf(e.err) != want {
			t.Errorf("%s: %s, %v, retained %t", code, e.value, e.err, e.result.Retained)
		}
		p.restored()
	}
	if e := p.run(job{code: "return () => 1"}); typeOf(e.err) != protocol.ResultUnserializable {
		t.Errorf("a function that nobody retains: %s, %v", e.value, e.err)
	}
}

func typeOf(e *protocol.Error) protocol.Type {
	if e == nil {
		return ""
	}
	return e.Type
}

func TestInvocationsKeepState(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(4, `
		let n = 0;
		const counter = { value: 0, up(by = 1) { return this.value += by } };
		return { next: (step = 1) => n += step, counter, wait: async (ms) => { await new Promise(r => setTimeout(r, ms)); console.log('waited', ms); return tools.echo(ms) }, same: f => f === counter.up }`, job{})
	for range 3 {
		p.call(1, "[2]", job{})
	}
	for _, c := range []struct {
		handle     uint64
		args, want string
	}{
		{1, "[]", "7"},
		{1, `["x"]`, `"7x"`},
		{2, `[5]`, "5"},
		{2, `[5]`, "10"}, // this is the object that had it
		{3, "[3]", "3"},
		{4, `[{"@handle":"R.2"}]`, "true"},
		{4, `[{"@handle":"R.1"}]`, "false"},
	} {
		e := p.call(c.handle, c.args, job{answer: echo})
		if e.value != c.want || e.err != nil || !e.result.Retained || e.result.Handles != 4 {
			t.Errorf("handle %d of %s: %s, %v, %+v", c.handle, c.args, e.value, e.err, e.result)
		}
		if c.handle == 3 && (!slices.Equal(e.logs, []string{"log waited 3"}) || e.calls != 1 || e.result.ToolCalls != 1) {
			t.Errorf("logs %q, %d calls", e.logs, e.calls)
		}
	}
	for _, args := range []string{`[{"@handle":"R.99"}]`, `[{"@handle":"S.1"}]`, `[{"@handle":"R.1x"}]`, `[{"@date":"x"}]`} {
		if e := p.call(4, args, job{}); typeOf(e.err) != protocol.InvalidParams || e.err.Field != "args" || !e.result.Retained {
			t.Errorf("arguments %s: %s, %v", args, e.value, e.err)
		}
	}
	p.release()
	p.restored()
	if e := p.run(job{code: "return typeof n"}); e.value != `"undefined"` {
		t.Errorf("the next program finds %s", e.value)
	}
}

func TestInvocationsEndByThemselves(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(6, `return { fail: () => { throw new TypeError('no') }, good: () => 1, bad: () => Symbol(), more: () => [() => 'inner'], big: () => 'x'.repeat(5000), lazy: () => { tools.echo(1); (async () => { await tools.echo(2) })(); return 1 } }`, job{})
	for _, c := range []struct {
		handle uint64
		want   protocol.Type
	}{{1, protocol.Exception}, {3, protocol.ResultUnserializable}, {5, protocol.ResultTooLarge}, {6, ""}} {
		e := p.call(c.handle, "[]", job{limits: func(l *worker.Limits) { l.ResultBytes = 1000 }})
		if typeOf(e.err) != c.want || !e.result.Retained {
			t.Errorf("handle %d: %s, %v, retained %t", c.handle, e.value, e.err, e.result.Retained)
		}
		if c.handle == 6 && !strings.Contains(strings.Join(e.logs, ""), "tools.echo") {
			t.Errorf("no word of the call that nobody awaited: %q", e.logs)
		}
	}
	// Nor does the next one hear of what the calls before left behind.
	if e := p.call(4, "[]", job{}); e.value != `[{"@handle":"R.7"}]` || e.result.Handles != 7 || len(e.logs) != 0 {
		t.Errorf("a function in the value of an invocation: %s, %+v, %q", e.value, e.result, e.logs)
	}
	if e := p.call(7, "[]", job{}); e.value != `"inner"` {
		t.Errorf("got %s, %v", e.value, e.err)
	}
}

func TestIteratorsArePulled(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(4, `
		const log = [];
		async function* count(n) { try { for (let i = 0; i < n; i++) { log.push(i); yield i } return 'end' } finally { log.push('over') } }
		return { numbers: count(3), stream: ReadableStream.from(['a', 'b', 'c']), sync: (function* () { yield Promise.resolve(1) })(), log: () => log }`, job{})
	pull := func(handle uint64, method, args, want string) {
		t.Helper()
		e := p.collect(p.invoke(handle, method, args, nil), job{})
		if e.value != want {
			t.Errorf("%s of %d: %s, %v, want %s", method, handle, e.value, e.err, want)
		}
	}
	pull(1, "next", "[]", `{"done":false,"value":0}`)
	pull(1, "next", "[]", `{"done":false,"value":1}`)
	pull(4, "", "[]", `[0,1]`) // no further than it was asked
	pull(1, "return", `["stop"]`, `{"done":true,"value":"stop"}`)
	pull(4, "", "[]", `[0,1,"over"]`)
	pull(1, "next", "[]", `{"done":true,"value":{"@undefined":true}}`)
	pull(2, "next", "[]", `{"done":false,"value":"a"}`)
	pull(2, "return", "[]", `{"done":true,"value":{"@undefined":true}}`)
	pull(2, "next", "[]", `{"done":true,"value":{"@undefined":true}}`)
	pull(3, "next", "[]", `{"done":false,"value":1}`)
	for _, c := range [][2]any{{uint64(3), "throw"}, {uint64(1), ""}, {uint64(4), "next"}} {
		e := p.collect(p.invoke(c[0].(uint64), c[1].(string), `["given"]`, nil), job{})
		if typeOf(e.err) != protocol.Exception || !e.result.Retained {
			t.Errorf("%q of %d: %s, %v", c[1], c[0], e.value, e.err)
		}
	}
}

func TestInvocationsSideBySide(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(2, `
		let open, gate = new Promise(r => open = r);
		return { work: async name => {
			console.log(name, 1);
			const got = await tools.echo(name);
			console.log(name, 2);
			await new Promise(r => setTimeout(r, 1));
			console.log(name, 3);
			setTimeout(() => console.log(name, 'timer'), 0);
			await gate;
			console.log(name, 4, got);
			await tools.echo(name);
			return name;
		}, open: () => open() }`, job{})
	names := map[uint64]string{}
	for _, name := range []string{"a", "b", "c"} {
		names[p.invoke(1, "", fmt.Sprintf("[%q]", name), nil)] = name
	}
	logs, calls, values := map[string][]string{}, map[string]int{}, map[string]string{}
	opened := false
	p.await(func(m worker.Message) bool {
		switch m := m.(type) {
		case worker.Log:
			logs[names[m.ID]] = append(logs[names[m.ID]], m.Text)
		case worker.ToolCall:
			var args []string
			json.Unmarshal(m.Args, &args)
			if len(args) != 1 || args[0] != names[m.ID] {
				t.Errorf("a call of %s was made by %q", m.Args, names[m.ID])
			}
			calls[names[m.ID]]++
			p.answer(m, job{answer: echo})
		case worker.Result:
			values[names[m.ID]] = string(m.Value) + string(m.Error)
		}
		all := 0
		for _, list := range logs {
			all += len(list)
		}
		if all == 12 && !opened {
			opened = true
			names[p.invoke(2, "", "[]", nil)] = "open"
		}
		return len(values) == 4
	})
	for _, name := range []string{"a", "b", "c"} {
		want := []string{name + " 1", name + " 2", name + " 3", name + " timer", name + " 4 " + name}
		if !slices.Equal(logs[name], want) || calls[name] != 2 || values[name] != fmt.Sprintf("%q", name) {
			t.Errorf("%s printed %q, made %d calls and gave %s", name, logs[name], calls[name], values[name])
		}
	}
	if len(logs["open"]) != 0 || values["open"] != `{"@undefined":true}` {
		t.Errorf("what opened printed %q and gave %s", logs["open"], values["open"])
	}
}

// An isolate that was stopped is not used again, whoever stopped it; the worker is.
func TestStoppedInvocationsEndTheIsolate(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	for _, c := range []struct {
		code   string
		limits func(*worker.Limits)
		want   protocol.Type
	}{
		{"for (;;);", func(l *worker.Limits) { l.CPU = 100 * time.Millisecond }, protocol.CPUTimeout},
		{"return new Promise(r => setTimeout(r, 60000))", func(l *worker.Limits) { l.Wall = 100 * time.Millisecond }, protocol.WallTimeout},
		{"return tools.never()", func(l *worker.Limits) { l.Total = 100 * time.Millisecond }, protocol.TotalTimeout},
		{"return new Promise(() => {})", func(l *worker.Limits) { l.Wall = 100 * time.Millisecond }, protocol.WallTimeout}, // another may settle it
		{"const a = []; for (;;) a.push(new Array(1e5).fill(1.5))", nil, protocol.MemoryLimit},
		{"for (let i = 0; i < 3; i++) tools.echo(1)", func(l *worker.Limits) { l.ToolCalls = 2 }, protocol.ToolLimit},
		{"console.log('here'); return tools.never()", nil, protocol.Cancelled},
	} {
		p.keep(1, "return () => { "+c.code+" }", job{})
		id := p.invoke(1, "", "[]", c.limits)
		if c.want == protocol.Cancelled {
			p.await(func(m worker.Message) bool { _, ok := m.(worker.Log); return ok })
			p.conn.Send(worker.Cancel{ID: id, Reason: "enough"})
		}
		e := p.collect(id, job{})
		if typeOf(e.err) != c.want || e.result.Retained {
			t.Errorf("%s: %s, %v, retained %t, last word %+v", c.code, e.value, e.err, e.result.Retained, e.last)
		}
		p.restored()
	}
	if e := p.run(job{code: "1+1"}); e.value != "2" {
		t.Error(e.value, e.err)
	}
}

func TestWhatIsLeftBehindByAnInvocation(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(3, `
		let left, rejection = 'none', n = 0;
		return {
			leave: () => { left = tools.never(); left.catch(e => rejection = e.message); setInterval(() => { n++; console.log('tick') }, 1); return 1 },
			look: async () => { await new Promise(r => setTimeout(r, 20)); return [rejection, n > 0] },
			count: () => n }`, job{})
	if e := p.call(1, "[]", job{}); e.value != "1" || len(e.logs) != 1 {
		t.Fatal(e.value, e.err, e.logs)
	}
	time.Sleep(50 * time.Millisecond)
	if e := p.call(3, "[]", job{}); e.value != "0" { // nothing runs between invocations
		t.Errorf("%s ticks between invocations", e.value)
	}
	e := p.call(2, "[]", job{})
	if e.value != `["the call was given up, since what made it has ended",true]` || !slices.Contains(e.logs, "log tick") {
		t.Errorf("got %s, %v, %q", e.value, e.err, e.logs)
	}
}

func TestHandlesAreReleased(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(1, `
		const big = () => { const data = new Uint8Array(1 << 20); return () => data.length };
		return () => big()`, job{limits: func(l *worker.Limits) { l.BufferBytes = 8 << 20 }})
	for n := uint64(2); n < 100; n++ { // many times what there is room for
		if e := p.call(1, "[]", job{}); e.value != fmt.Sprintf(`{"@handle":"R.%d"}`, n) {
			t.Fatalf("after %d: %s, %v", n, e.value, e.err)
		}
		if e := p.call(n, "[]", job{}); e.value != "1048576" {
			t.Fatal(e.value, e.err)
		}
		p.release(n)
	}
	p.release()
	p.restored()
}

// A release holds from when it comes: not for the call before it, and for the one after.
func TestReleasesAreInOrder(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(3, "return [() => 1, () => 2, () => 3]", job{})
	before := p.invoke(1, "", "[]", nil)
	p.release(1)
	if e := p.collect(before, job{}); e.value != "1" {
		t.Errorf("the call before: %s, %v", e.value, e.err)
	}
	if e := p.call(1, "[]", job{}); typeOf(e.err) != protocol.HandleUnknown || !e.result.Retained {
		t.Errorf("the call after: %s, %v, retained %t", e.value, e.err, e.result.Retained)
	}
	p.release(3)
	if e := p.call(2, `[{"@handle":"R.3"}]`, job{}); typeOf(e.err) != protocol.InvalidParams {
		t.Errorf("as an argument: %s, %v", e.value, e.err)
	}
	if e := p.call(2, "[]", job{}); e.value != "2" {
		t.Errorf("the other: %s, %v", e.value, e.err)
	}
}

// What is released while another invocation is under way is free at once.
func TestReleasesDuringACall(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(2, `
		const big = () => { const data = new Uint8Array(1 << 20); return () => data.length };
		return [() => big(), () => tools.never()]`, job{limits: func(l *worker.Limits) { l.BufferBytes = 8 << 20 }})
	long := p.invoke(2, "", "[]", nil)
	for n := uint64(3); n < 100; n++ {
		if e := p.call(1, "[]", job{}); e.value != fmt.Sprintf(`{"@handle":"R.%d"}`, n) {
			t.Fatalf("after %d: %s, %v", n, e.value, e.err)
		}
		p.release(n)
	}
	p.conn.Send(worker.Cancel{ID: long, Reason: "enough"})
	if e := p.collect(long, job{}); typeOf(e.err) != protocol.Cancelled {
		t.Errorf("the long one: %s, %v", e.value, e.err)
	}
}

// Buffers over their limit end the invocation, and with it the isolate, as a full heap does.
func TestInvocationsAreHeldToTheBuffersLimit(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(1, "const all = []; return n => { for (let i = 0; i < n; i++) all.push(new Uint8Array(1 << 20)); return all.length }", job{limits: func(l *worker.Limits) { l.BufferBytes = 8 << 20 }})
	if e := p.call(1, "[4]", job{}); e.value != "4" {
		t.Fatal(e.value, e.err)
	}
	if e := p.call(1, "[20]", job{}); typeOf(e.err) != protocol.MemoryLimit || e.result.Retained {
		t.Errorf("got %s, %v, retained %t, last word %+v", e.value, e.err, e.result.Retained, e.last)
	}
	p.restored()
}

// Refused arguments let nothing of the program run: there is no invocation that it would belong to.
func TestRefusedArgumentsRunNothing(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(2, "let n = 0; return [() => { tools.never().catch(() => { n++ }) }, () => n]", job{})
	p.call(1, "[]", job{})
	if e := p.call(1, `[{"@date":"x"}]`, job{}); typeOf(e.err) != protocol.InvalidParams {
		t.Errorf("got %s, %v", e.value, e.err)
	}
	if e := p.call(2, "[]", job{}); e.value != "0" { // this is called before what was given up is told
		t.Errorf("%s handlers ran", e.value)
	}
	if e := p.call(2, "[]", job{}); e.value != "1" {
		t.Errorf("%s handlers ran", e.value)
	}
}

// What was warned of when an invocation ended is no news of the next.
func TestCallsThatWereGivenUpSayNothing(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(2, "return [() => { for (let i = 0; i < 3; i++) tools.never() }, () => new Promise(r => setTimeout(r, 10, 1))]", job{})
	if e := p.call(1, "[]", job{}); len(e.logs) != 1 {
		t.Errorf("printed %q", e.logs)
	}
	if e := p.call(2, "[]", job{}); e.value != "1" || len(e.logs) != 0 {
		t.Errorf("got %s, %v, printed %q", e.value, e.err, e.logs)
	}
}

// A body belongs to the invocation that asked for it. What reads it in another does not wait for ever.
func TestBodiesAreOfTheirInvocation(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	head := string(protocol.AppendFetchHead(nil, &protocol.FetchHead{Status: 200}, true))
	p.keep(2, `
		let got;
		return [
			async () => { got = await fetch("https://a.test/"); await tools.wait(1); return got.status },
			() => got.text().catch(e => e.constructor.name) ]`, job{head: head})
	for _, ended := range []bool{true, false} { // before it is read to its end, and while it is
		var call worker.ToolCall
		first := p.invoke(1, "", "[]", nil)
		read := false
		p.await(func(m worker.Message) bool {
			switch m := m.(type) {
			case worker.Fetch:
				p.conn.Send(worker.ToolResult{ID: m.ID, Call: m.Call, OK: true, Value: []byte(head)})
			case worker.FetchRead:
				read = true
				p.conn.Send(worker.ToolResult{ID: m.ID, Call: m.Call, OK: true, Value: protocol.AppendBytes(nil, []byte("some of it"))})
			case worker.ToolCall:
				call = m
			}
			return read && call.Call != 0
		})
		second := uint64(0)
		if !ended {
			second = p.invoke(2, "", "[]", nil)
			p.await(func(m worker.Message) bool { _, ok := m.(worker.FetchRead); return ok })
		}
		p.answer(call, job{answer: echo})
		if e := p.collect(first, job{}); e.value != "200" {
			t.Fatal(e.value, e.err)
		}
		if ended {
			second = p.invoke(2, "", "[]", nil)
		}
		if e := p.collect(second, job{}); e.value != `"TypeError"` {
			t.Errorf("ended before: %t: %s, %v", ended, e.value, e.err)
		}
	}
}

// A rejection that nobody handles is told by the invocation whose code it was of.
func TestRejectionsAreOfTheirInvocation(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.keep(2, `
		let open, gate = new Promise(r => open = r);
		return [async name => { await gate; Promise.reject(new Error(name)); await tools.echo(1) }, () => open()]`, job{})
	names, logs := map[uint64]string{}, map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		names[p.invoke(1, "", fmt.Sprintf("[%q]", name), nil)] = name
	}
	p.invoke(2, "", "[]", nil)
	results := 0
	p.await(func(m worker.Message) bool {
		switch m := m.(type) {
		case worker.Log:
			logs[names[m.ID]] += m.Text
		case worker.ToolCall:
			p.answer(m, job{answer: echo})
		case worker.Result:
			results++
		}
		return results == 4
	})
	for _, name := range names {
		if !strings.Contains(logs[name], "Error: "+name) || strings.Count(logs[name], "Error: ") != 1 {
			t.Errorf("%s printed %q", name, logs[name])
		}
	}
}

func TestOnlyWhatIsRetainedIsInvoked(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	p.invoke(1, "", "[]", nil)
	if status := p.exit(); status != worker.ExitProtocol {
		t.Errorf("status %d", status)
	}
}

func TestHandlesAreBounded(t *testing.T) {
	p := ready(t, testbin.Worker(t))
	e := p.run(job{code: fmt.Sprintf("return Array.from({length: %d}, () => () => 1)", worker.MaxHandles+1), retain: "R"})
	if typeOf(e.err) != protocol.ResultUnserializable || e.result.Retained {
		t.Errorf("%.100s, %v", e.value, e.err)
	}
	p.restored()
	p.keep(worker.MaxHandles, fmt.Sprintf("return Array.from({length: %d}, () => () => 1)", worker.MaxHandles), job{})
}
