package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/executord/executord/daemon/admin"
	"github.com/executord/executord/daemon/pool"
	"github.com/executord/executord/daemon/server"
	"github.com/executord/executord/daemon/settings"
	"github.com/executord/executord/ipc/client"
	"github.com/executord/executord/ipc/executor"
)

// operator is the service as its operator sees it; an admin.Service.
type operator struct {
	*Daemon
	server *server.Server
}

// State is what the service is doing, since it does so.
func (o operator) State() admin.State {
	t := o.entered.Load()
	s := admin.State{Name: string(t.To), Since: t.Time, Reason: t.Reason, Who: t.Who}
	s.Ready = t.To.Ready()
	return s
}

func (o operator) Maintenance() admin.Maintenance {
	m := o.Daemon.Maintenance()
	if m == nil {
		return admin.Maintenance{}
	}
	return admin.Maintenance{Active: true, Reason: m.Reason, Who: m.Who, Since: &m.Since, Persistent: m.Kept}
}

func (o operator) EnterMaintenance(who string, m admin.EnterMaintenance) error {
	return o.Daemon.EnterMaintenance(m.Reason, who, m.Persistent)
}

func (o operator) Reload(who string) (admin.Reload, error) {
	if err := o.Daemon.Reload(who); err != nil {
		return admin.Reload{}, err
	}
	r := o.LastReload()
	if r == nil {
		return admin.Reload{}, errors.New("the service is starting; it reads the settings again when it is ready")
	}
	return admin.Reload{Applied: r.Changes.Applied, NeedRestart: r.Changes.NeedRestart}, nil
}

func (o operator) sessions() []admin.Session {
	var list []admin.Session
	for _, x := range o.server.Sessions() {
		list = append(list, admin.Session{
			ID: x.ID, Identity: x.Identity, State: string(x.State), Since: x.Since, Executions: x.Executions, Retained: x.Retained, OwedBytes: x.OwedBytes,
		})
	}
	return list
}

func (o operator) list() []settings.Setting {
	if o.loaded == nil {
		return []settings.Setting{}
	}
	return o.loaded.List()
}

// dial connects to the protocol port as a caller on this machine does: over a unix socket where there is one.
func (o operator) dial(ctx context.Context) (executor.Executor, string, error) {
	address, err := o.own()
	if err != nil {
		return nil, "", err
	}
	// What it says now is asked, and not what the next service will.
	set := []client.Option{client.WithName("executord-check", o.version), client.WithReconnect(0)}
	if !strings.HasPrefix(address, "unix:") { // there the kernel says who it is
		p, err := policy(o.settings.Load())
		if err != nil {
			return nil, address, err
		}
		if len(p.Tokens) > 0 {
			set = append(set, client.WithToken(p.Tokens[0].Secret))
		}
	}
	c, err := client.Dial(ctx, address, set...)
	if err != nil {
		return nil, address, err
	}
	return c, address, nil
}

// own is the address at which the service reaches itself.
func (o operator) own() (string, error) {
	address := ""
	for _, a := range o.Addresses() {
		switch a := a.(type) {
		case *net.UnixAddr:
			return "unix:" + a.Name, nil
		case *net.TCPAddr:
			host := a.IP
			if host.IsUnspecified() {
				host = net.IPv6loopback
				if a.IP.To4() != nil {
					host = net.IPv4(127, 0, 0, 1)
				}
			}
			address = "tcp://" + net.JoinHostPort(host.String(), strconv.Itoa(a.Port))
		}
	}
	if address != "" && o.Daemon.server.Certificate != nil {
		return "", fmt.Errorf("cannot reach the protocol port as a caller: it takes TLS only; a unix socket among --listen would do")
	}
	return address, nil
}

// openAdmin opens the socket of the operator; nil where the settings want none.
func (d *Daemon) openAdmin() (net.Listener, error) {
	if d.adminListener != nil {
		return d.adminListener, nil
	}
	s := d.settings.Load()
	if s.AdminListen == "" || len(d.listeners) > 0 {
		return nil, nil
	}
	addresses, err := parseAddresses([]string{s.AdminListen})
	if err != nil {
		return nil, err
	}
	ls, err := listenAll(addresses)
	if err != nil {
		return nil, fmt.Errorf("%w (--admin-listen)", err)
	}
	groups, err := settings.GroupIDs(s.AdminGroup)
	if err != nil {
		closeAll(ls)
		return nil, err
	}
	d.give(ls, groups, "operators")
	return ls[0], nil
}

// give gives unix sockets to the first of the groups whose members may use them, where the service may do that.
func (d *Daemon) give(ls []net.Listener, groups []uint32, whose string) {
	if len(groups) == 0 {
		return
	}
	for _, l := range ls {
		if s, is := l.(*ownedSocket); is {
			if err := os.Lchown(s.path, -1, int(groups[0])); err != nil {
				d.log.Warn("cannot give the socket to the group of "+whose, "group", groups[0], "error", err.Error())
			}
		}
	}
}

// startAdmin serves the operator until stop is called.
func (d *Daemon) startAdmin(l net.Listener, p *pool.Pool, srv *server.Server) (stop func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	s := d.settings.Load()
	groups, err := settings.GroupIDs(s.AdminGroup)
	if err != nil {
		return nil, err
	}
	o := operator{d, srv}
	app, err := admin.New(admin.Config{
		Version: d.version, Started: d.started, Pool: p, Service: o, Sessions: o.sessions, Settings: o.list, Events: d.ring, LogLevel: d.level,
		Metrics: d.server.Metrics, Dial: o.dial, Access: admin.Access{Groups: groups, Readers: s.AdminReadUID}, Logger: d.log,
	})
	if err != nil {
		return nil, err
	}
	d.log.Info("listening for the operator", "address", l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- app.Serve(ctx, l) }()
	return func() {
		cancel()
		d.closeUnlessCut("the admin socket failed", func() error { return <-ended })
	}, nil
}
