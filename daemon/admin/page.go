package admin

import (
	"crypto/subtle"
	"embed"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// pageFiles are the live page: an HTML file, a style sheet and a script, as they are served.
//
//go:embed page
var pageFiles embed.FS

// pageHeaders keep the page to its own files and to the API (Content Security Policy Level 3, Trusted Types). Nothing that
// it shows can become markup or script, and no other page may frame it, read it or learn its URL.
var pageHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

// pageFile is the handler of one file of the page.
func pageFile(name string, kind Text) func(*App, *call) (any, error) {
	text, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic(err) // the binary is not whole
	}
	return func(*App, *call) (any, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for key, value := range pageHeaders {
				w.Header().Set(key, value)
			}
			answerText(w, http.StatusOK, kind, text)
		}), nil
	}
}

// PageHandler is the live page below /secret/, for a browser, which cannot reach a unix socket: it asks the app for what is
// asked of it. Whoever connects to a loopback port is nobody in particular, so that the secret is all that lets them in,
// and what they may do is look: only GET is passed on. The app still sees the Host header, and refuses names of web sites.
// The secret goes into a path, not into a cookie, which a browser would show to every other port of the machine.
func (c *Client) PageHandler(secret string) http.Handler {
	pass := &httputil.ReverseProxy{
		Transport: c.http.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: hostName})
			r.Out.Host = r.In.Host
		},
		ErrorLog: log.New(io.Discard, "", 0), // that a stream ended is no news
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			answerError(w, &statusError{http.StatusBadGateway, protocol.Errorf(protocol.Internal, "the service does not answer")})
		},
	}
	below := http.StripPrefix("/"+secret, pass)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, inside := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case !inside || subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1:
			answerError(w, missing("", "there is nothing here: executorctl page printed the whole URL"))
		case r.Method != http.MethodGet:
			answerError(w, &statusError{http.StatusMethodNotAllowed, protocol.Errorf(protocol.UnknownMethod, "this is for looking, and no more")})
		default:
			below.ServeHTTP(w, r)
		}
	})
}
