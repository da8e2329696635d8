package e2e

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	browserlog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/ipc/executor"
	"github.com/executord/executord/ipc/protocol"
	"github.com/executord/executord/ipc/testbin"
)

var screenshots = flag.String("screenshots", "", "a folder for pictures of the live page")

// window is the live page of a service in a real browser.
type window struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // violations of the page's policy, and exceptions of its script
}

// desk is a client of the operator's socket, which is beside that of callers.
func (s *service) desk() *admin.Client {
	s.tb.Helper()
	c, err := admin.NewClient(s.deskAddress())
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(c.Close)
	return c
}

func (s *service) deskAddress() string {
	return "unix:" + filepath.Join(filepath.Dir(strings.TrimPrefix(s.address, "unix:")), "admin.sock")
}

// page runs executorctl page, and returns the URL that it prints.
func (s *service) page() string {
	s.tb.Helper()
	cmd := exec.Command(testbin.Executorctl(s.tb), "page", "--address", s.deskAddress())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			s.tb.Errorf("executorctl page ended with %v", err)
		}
	})
	said := bufio.NewScanner(out)
	if !said.Scan() || !strings.HasPrefix(said.Text(), "http://127.0.0.1:") {
		s.tb.Fatalf("executorctl page said %q", said.Text())
	}
	return said.Text()
}

// forward leads a port to the operator's socket, as ssh -L does, and returns the URL of the page behind it.
func (s *service) forward() string {
	s.tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("unix", strings.TrimPrefix(s.deskAddress(), "unix:"))
				if err != nil {
					return
				}
				defer far.Close()
				go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
				_, _ = io.Copy(near, far)
			}()
		}
	}()
	return fmt.Sprintf("http://localhost:%d/", l.Addr().(*net.TCPAddr).Port)
}

// look opens a browser at url.
func look(t *testing.T, url string) *window {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("there is no Chromium in PATH to open the page with")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocated, end := chromedp.NewExecAllocator(t.Context(), options...)
	w := &window{t: t}
	var leave context.CancelFunc
	w.ctx, leave = chromedp.NewContext(allocated)
	t.Cleanup(func() { leave(); end() })
	if err := chromedp.Listen(w.ctx, w.hear); err != nil {
		t.Fatal(err)
	}
	w.do(chromedp.EmulateViewport(1440, 1400), chromedp.Navigate(url))
	return w
}

// hear notes what must not happen.
func (w *window) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *browserlog.EventEntryAdded:
		if e.Entry.Source == "security" || e.Entry.Source == "javascript" {
			w.faults = append(w.faults, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		w.faults = append(w.faults, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	}
}

func (w *window) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faults)
}

func (w *window) do(steps ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	if err := chromedp.Do(w.ctx, steps...); err != nil {
		w.t.Fatal(err)
	}
}

// eval is the value of an expression in the page.
func eval[T any](w *window, expression string) T {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		w.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for a condition in the page, which is looked at whenever the page changes.
func (w *window) until(condition string) {
	w.t.Helper()
	if !eval[bool](w, fmt.Sprintf(`new Promise((resolve) => {
		const holds = () => { if (!(%s)) return false; watch.disconnect(); resolve(true); return true; };
		const watch = new MutationObserver(holds);
		watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
		if (!holds()) setTimeout(() => { watch.disconnect(); resolve(false); }, 60000);
	})`, condition)) {
		w.t.Fatalf("the page does not come to %s; it shows:\n%s\nand heard %q", condition, eval[string](w, "document.body.innerText"), w.heard())
	}
}

// shows waits until an element has a text in it.
func (w *window) shows(selector, text string) {
	w.t.Helper()
	w.until(fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q)", selector, text))
}

// figure waits until one of the figures at the top has a value.
func (w *window) figure(name, value string) {
	w.t.Helper()
	w.until(fmt.Sprintf(`[...document.querySelectorAll("#figures > div")].some((box) => box.children[0].textContent === %q && box.children[1].textContent === %q)`, name, value))
}

// picture keeps a picture of the window, where somebody wants to look at it.
func (w *window) picture(name string) {
	w.t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// harmless fails the test where the page's policy was violated, or its script failed.
func (w *window) harmless() {
	w.t.Helper()
	if f := w.heard(); len(f) > 0 {
		w.t.Errorf("the browser complains: %q", f)
	}
}

// markup is what hostile programs would like to see run.
func markup(what string) string {
	return `<img src=x onerror="document.documentElement.dataset.hacked='` + what + `'">`
}

// TestPageShowsWhatProgramsDo: the live page in a browser, over a real service, while programs wait, run and end.
func TestPageShowsWhatProgramsDo(t *testing.T) {
	s := start(t, testbin.Worker(t), "--workers=1", "--spare-workers=0")
	w := look(t, s.page())
	w.shows("#state", "Ready")
	w.figure("Running", "0")
	w.shows("#settings", "spare-workers")
	w.shows("#workers tbody", "idle")
	c := s.dial()
	defer c.Close()

	t.Run("running and waiting", func(t *testing.T) {
		release, ended := make(chan struct{}), make(chan *protocol.Outcome, 3)
		for i := range 3 {
			r := executor.Request{Execute: protocol.Execute{Code: "await gate.pass()", Name: fmt.Sprintf("gate-%d.js", i)}}
			r.Provide(executor.Provider{Name: "gate", Tools: map[string]executor.Tool{"pass": executor.Func(func() { <-release })}})
			go func() { ended <- run(t, c, r) }()
		}
		w.figure("Running", "1")
		w.figure("Waiting", "2")
		w.shows("#live tbody", "gate-2.js")
		w.shows("#workers tbody", "running")
		w.until(`/waiting: now 2, at most 2.*running: now 1/.test(document.querySelector("#load .plot svg").getAttribute("aria-label"))`)
		close(release)
		for range 3 {
			if o := <-ended; o.Error != nil {
				t.Error(o.Error)
			}
		}
		w.figure("Ended well", "4") // the self-check of the service is one
		w.figure("Waiting", "0")
		w.until(`document.querySelector("#live tbody").rows.length === 0`)
		w.until(`/p50: now [0-9.]+ m?s; p95/.test(document.querySelector("#latency .plot svg").getAttribute("aria-label").replace(/, at most[^;]*/g, ""))`)
		w.until(`/3 with a value/.test(document.querySelector("#endings .plot svg").getAttribute("aria-label"))`)
		w.until(`document.querySelectorAll("#endings .plot rect.good").length > 0`)
	})

	t.Run("what ended badly", func(t *testing.T) {
		code := "console.log(`" + markup("log") + "`); console.log('two\\nlines \\u202e');" +
			"try { await tools[`" + markup("tool") + "`]() } catch (e) { throw new Error(e.message + `" + markup("message") + "`) }"
		r := executor.Request{Execute: protocol.Execute{Code: code, Name: "hostile.js", Execution: markup("id")[:60]}}
		r.Provide(executor.Provider{Name: "tools", Tools: map[string]executor.Tool{"known": executor.Func(func() {})}})
		if o := run(t, c, r); o.Error == nil {
			t.Fatal("the program has to fail")
		}
		w.figure("Ended badly", "1")
		w.shows("#outcomes", "exception")
		w.shows("#bad tbody", markup("tool"))
		w.shows("#bad tbody", markup("message"))
		w.shows("#news tbody", markup("id")[:60])
		w.do(chromedp.Click(chromedp.CSS("#bad tbody button")))
		w.shows("#execution-logs", markup("log"))
		w.shows("#execution-logs", "two\nlines \ufffd")
		w.shows("#execution-message", markup("tool"))
		w.shows("#execution-facts", "hostile.js")
		w.shows("#execution-limits", "heapMiB")
		w.picture("execution")
		if eval[bool](w, `document.querySelector("img") !== null || "hacked" in document.documentElement.dataset`) {
			t.Error("a program's text has become markup")
		}
		w.do(chromedp.KeyEvent("\x1b"))
		w.until(`!document.querySelector("#execution").open`)
	})

	t.Run("what it reads", func(t *testing.T) { // besides the stream of events, which goes on
		if asked := eval[[]string](w, `[...new Set(performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname.split("/").slice(2).join("/")))].sort()`); !slices.Equal(asked, []string{
			"page.css", "page.js", "v1/executions", "v1/executions/" + eval[string](w, `document.querySelector("#bad button").dataset.execution`), "v1/settings", "v1/status", "v1/workers",
		}) {
			t.Errorf("the page asks for %q", asked)
		}
	})

	t.Run("for everybody", func(t *testing.T) { w.readable() })
	w.harmless()

	t.Run("its policy", func(t *testing.T) { // after which the page has complaints
		if !eval[bool](w, `(() => { try { document.querySelector("h1").innerHTML = "<b>x</b>"; return false; } catch { return true; } })()`) {
			t.Error("text can become markup")
		}
		eval[bool](w, `document.head.append(Object.assign(document.createElement("style"), { textContent: "h1 { color: red }" })), true`)
		if !within(10*time.Second, func() bool { return strings.Contains(strings.Join(w.heard(), "\n"), "style-src") }) {
			t.Errorf("a violation is not heard: %q", w.heard())
		}
	})
}

// contrasts are the texts of the page whose contrast with what is behind them is below 4.5 (WCAG 2.2, 1.4.3).
const contrasts = `(() => {
	const light = (color) => color.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const parse = (text) => text.match(/[\d.]+/g).map(Number);
	const behind = (element) => { for (; element; element = element.parentElement) { const [r, g, b, a = 1] = parse(getComputedStyle(element).backgroundColor); if (a === 1) return [r, g, b]; } return [255, 255, 255]; };
	const list = [];
	for (const element of document.querySelectorAll("body *")) {
		if (!element.checkVisibility() || ![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const [a, b] = [light(parse(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) list.push(element.tagName + "." + element.className + " " + ratio.toFixed(2));
	}
	return list;
})()`

// readable looks at the page in both themes, in narrow and wide windows, and as a screen reader is told of it.
func (w *window) readable() {
	w.t.Helper()
	grounds := map[string]bool{}
	for _, theme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		}); err != nil {
			w.t.Fatal(err)
		}
		grounds[eval[string](w, "getComputedStyle(document.body).backgroundColor")] = true
		if faint := eval[[]string](w, contrasts); len(faint) > 0 {
			w.t.Errorf("in the %s theme texts are hard to read: %q", theme, faint)
		}
		for _, width := range []int64{360, 1440} {
			w.do(chromedp.EmulateViewport(width, 1400))
			if over := eval[int64](w, "document.documentElement.scrollWidth"); over > width {
				w.t.Errorf("in a window of %d the page is %d wide", width, over)
			}
			w.picture(fmt.Sprintf("%s-%d", theme, width))
		}
	}
	if len(grounds) != 2 {
		w.t.Errorf("light and dark look the same: %v", grounds)
	}
	tree, err := chromedp.Call(w.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		w.t.Fatal(err)
	}
	seen := map[string]int{}
	for _, n := range tree.Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		seen[role]++
		named := n.Name != nil && strings.Trim(string(n.Name.Value), `" `) != ""
		if !named && slices.Contains([]string{"button", "image", "img", "table", "region", "dialog", "columnheader", "rowheader"}, role) {
			w.t.Errorf("a %s has no name", role)
		}
	}
	if seen["button"] < 2 || seen["image"]+seen["img"] < 3 || seen["table"] < 4 || seen["status"] != 1 || seen["main"] != 1 {
		w.t.Errorf("a screen reader is told of %v", seen)
	}
}

// TestPageShowsTheServicesLife: maintenance, the drain, an end and a new beginning, while the page stays open.
func TestPageShowsTheServicesLife(t *testing.T) {
	for name, url := range map[string]func(*service) string{"executorctl page": (*service).page, "a forwarded socket": (*service).forward} {
		t.Run(name, func(t *testing.T) { watchLife(t, url) })
	}
}

func watchLife(t *testing.T, url func(*service) string) {
	s := start(t, testbin.Worker(t), "--workers=1", "--spare-workers=0", "--drain-grace=60s")
	w := look(t, url(s))
	w.shows("#state", "Ready")
	desk := s.desk()
	if _, err := desk.EnterMaintenance(t.Context(), admin.EnterMaintenance{Reason: "new disks " + markup("reason")}); err != nil {
		t.Fatal(err)
	}
	w.shows("#state", "In maintenance")
	w.shows("#state", "new disks "+markup("reason"))
	w.shows("#news tbody", "maintenance began")
	if _, err := desk.LeaveMaintenance(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.shows("#state", "Ready")

	c := s.dial()
	defer c.Close()
	release, ended := make(chan struct{}), make(chan *protocol.Outcome, 1)
	r := executor.Request{Execute: protocol.Execute{Code: "await gate.pass()"}}
	r.Provide(executor.Provider{Name: "gate", Tools: map[string]executor.Tool{"pass": executor.Func(func() { <-release })}})
	go func() { ended <- run(t, c, r) }()
	w.figure("Running", "1")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.shows("#state", "Draining")
	w.picture("draining")
	close(release)
	if o := <-ended; o.Error != nil {
		t.Error(o.Error)
	}
	w.shows("#state", "Cannot reach the service since")
	w.picture("unreachable")
	_ = s.cmd.Wait()
	s.begin()
	w.shows("#state", "Ready · restarted at")
	w.figure("Ended well", "1")
	w.shows("#news tbody", "service ready")
	c = s.dial()
	defer c.Close()
	run(t, c, executor.Request{Execute: protocol.Execute{Code: "null.x", Name: "after.js"}})
	w.figure("Ended badly", "1")
	w.shows("#bad tbody", "after.js")
	w.shows("#news tbody", "execution failed")
	if eval[bool](w, `"hacked" in document.documentElement.dataset`) {
		t.Error("an operator's text has become markup")
	}
	w.harmless()
}
