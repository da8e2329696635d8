package guesttest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// network answers the fetches of a program as a host would. What it answers is in the address, whose host does not
// matter:
//
//	/echo                     the request as JSON
//	/give?b=…&b=…             a body of these pieces; status=, type= and header=name:value (any number) shape the head
//	/give?…&open=1            the same, and the body does not end
//	/give?…&later=…&later=…   other pieces from the second request of this address on
//	/redirect?to=…&status=…   a redirect
//	/fail                     a failure of the network
//	/refuse                   a refusal of a policy
//	/hang                     nothing
type network struct {
	bodies map[string]*pieces // by number of the exchange
	seen   map[string]int     // requests of an address
}

// pieces are what is left of a body.
type pieces struct {
	list []string
	open bool // no end follows
}

// fetch takes a call of the library: fetch.N(request) or read.N().
func (h *host) fetch(id uint64, path []string, args []byte) bool {
	if h.network.bodies == nil {
		h.network = network{bodies: map[string]*pieces{}, seen: map[string]int{}}
	}
	if path[0] == "read" {
		h.waiting[id] = path[1]
		h.read(id, h.network.bodies[path[1]])
		return true
	}
	var text []json.RawMessage
	if err := json.Unmarshal(args, &text); err != nil || len(text) != 1 {
		panic(fmt.Sprintf("a fetch of %s", args))
	}
	request, err := protocol.DecodeFetchRequest(text[0], protocol.ValueBounds)
	if err == nil {
		err = request.Check()
	}
	if err != nil {
		h.refuseFetch(id, err.Error(), "")
		return true
	}
	h.calls = append(h.calls, fmt.Sprintf("%s %s", request.Method, request.URL))
	h.waiting[id] = path[1]
	h.answerFetch(id, path[1], request)
	return true
}

func (h *host) answerFetch(id uint64, number string, r *protocol.FetchRequest) {
	u, _ := url.Parse(r.URL)
	q := u.Query()
	h.network.seen[r.URL]++
	head := protocol.FetchHead{Status: 200, StatusText: "OK"}
	if n, err := strconv.Atoi(q.Get("status")); err == nil {
		head.Status = n
	}
	for _, line := range q["header"] {
		name, value, _ := strings.Cut(line, ":")
		head.Headers = append(head.Headers, protocol.Header{Name: name, Value: value})
	}
	if t := q.Get("type"); t != "" {
		head.Headers = append(head.Headers, protocol.Header{Name: "content-type", Value: t})
	}
	body := &pieces{list: q["b"], open: q.Has("open")}
	switch u.Path {
	case "/echo":
		body.list = []string{string(echo(r))}
	case "/give":
		if q.Has("later") && h.network.seen[r.URL] > 1 {
			body.list = q["later"]
		}
	case "/redirect":
		head.Headers = append(head.Headers, protocol.Header{Name: "location", Value: q.Get("to")})
	case "/fail":
		h.refuseFetch(id, "fetch: the exchange failed", "NETWORK")
		return
	case "/refuse":
		h.refuseFetch(id, "fetch: that is not allowed", "EGRESS")
		return
	case "/hang":
		return
	default:
		head.Status = 404
	}
	h.network.bodies[number] = body
	h.pending = append(h.pending, answer{id, true, protocol.AppendFetchHead(nil, &head, r.Method != "HEAD")})
}

// echo is the request as JSON for people.
func echo(r *protocol.FetchRequest) []byte {
	headers := [][2]string{}
	for _, h := range r.Headers {
		headers = append(headers, [2]string{h.Name, h.Value})
	}
	text, _ := json.Marshal(map[string]any{"method": r.Method, "url": r.URL, "headers": headers, "body": string(r.Body)})
	return text
}

func (h *host) refuseFetch(id uint64, message, code string) {
	text := protocol.AppendThrownError(nil, &protocol.ThrownError{Name: "TypeError", Message: message, Code: code})
	h.pending = append(h.pending, answer{id, false, text})
}

func (h *host) read(id uint64, p *pieces) {
	switch {
	case p == nil:
		h.refuseFetch(id, "there is no such body", "")
	case len(p.list) > 0:
		h.pending = append(h.pending, answer{id, true, protocol.AppendBytes(nil, []byte(p.list[0]))})
		p.list = p.list[1:]
	case !p.open:
		h.pending = append(h.pending, answer{id, true, []byte("null")})
	}
}

// cancelFetch gives up an exchange: what waits for it fails.
func (h *host) cancelFetch(number string) {
	h.calls = append(h.calls, "given up: "+number)
	delete(h.network.bodies, number)
	for id, n := range h.waiting {
		if n == number {
			h.refuseFetch(id, "given up", "")
		}
	}
}
