package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/executord/executord/daemon/peercred"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/ipc/protocol"
)

// Access says who besides root and the service's own user may do what.
type Access struct {
	Groups  []uint32 // whose members may operate
	Readers []uint32 // users who may read, and no more than that although they are in one of Groups
}

// caller is the other end of a connection, found once for each.
type caller struct {
	may  Right // empty for nothing
	name string
	err  error
}

type callerKey struct{}

// ownUID is the user that the service runs as.
var ownUID = uint32(os.Getuid())

// judge decides what a peer may do.
func (a Access) judge(p peercred.Credentials) Right {
	inGroup := slices.ContainsFunc(p.Groups, func(g uint32) bool { return slices.Contains(a.Groups, g) })
	switch {
	case p.UID == 0, p.UID == ownUID:
		return Operate
	case slices.Contains(a.Readers, p.UID):
		return Read
	case inGroup:
		return Operate
	}
	return ""
}

// meet is the http.Server's ConnContext.
func (a *App) meet(ctx context.Context, c net.Conn) context.Context {
	who := caller{err: fmt.Errorf("a %T has no peer that can be told", c)}
	if c, ok := c.(*net.UnixConn); ok {
		p, err := peercred.Of(c)
		who = caller{may: a.cfg.Access.judge(p), name: nameOf(p.UID), err: err}
	}
	return context.WithValue(ctx, callerKey{}, who)
}

// nameOf is how an operator is named in events, logs and reasons.
func nameOf(uid uint32) string {
	if u, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		return fmt.Sprintf("%s (uid %d)", u.Username, uid)
	}
	return fmt.Sprintf("uid %d", uid)
}

// admit returns who is calling, or why the call is refused.
func admit(r *http.Request, need Right) (caller, *protocol.Error) {
	who, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		who.err = errors.New("the HTTP server does not tell")
	}
	switch {
	case who.err != nil:
		return who, protocol.Errorf(protocol.Unauthorized, "cannot tell who is calling: %s", who.err)
	case !ownHost(r.Host):
		return who, protocol.Errorf(protocol.Unauthorized, "the Host header is not a name of this machine")
	case !ownOrigin(r):
		return who, protocol.Errorf(protocol.Unauthorized, "requests of other web pages are not taken")
	case who.may == "":
		return who, protocol.Errorf(protocol.Unauthorized, "%s may not use the admin socket: its group may", who.name)
	case need == Operate && who.may != Operate:
		return who, protocol.Errorf(protocol.Unauthorized, "%s may look, and no more", who.name)
	}
	return who, nil
}

// ownHost keeps web pages from reaching the socket under a name of theirs, where it is forwarded to a port.
func ownHost(hostport string) bool {
	host, err := server.HostOnly(hostport)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") || host == hostName {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// ownOrigin tells that no page of another origin made a request. A browser says so in Origin with all that may change
// something, and in Sec-Fetch-Site with everything (W3C Fetch Metadata).
func ownOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return true
	}
	from, err := url.Parse(origins[0])
	return len(origins) == 1 && err == nil && from.Host != "" && strings.EqualFold(from.Host, r.Host)
}
