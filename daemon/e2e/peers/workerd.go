package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/executord/executord/daemon/e2e/gauge"
)

// workerdConfig serves one host worker on a unix socket, with a loader of workers and no network.
const workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  sockets = [(name = "asked", address = "unix:%s", http = (), service = "host")],
  services = [
    (name = "host", worker = .host),
    (name = "nowhere", network = (allow = [], deny = ["0.0.0.0/0", "::/0"])),
  ],
);
const host :Workerd.Worker = (
  modules = [(name = "host.js", esModule = embed "host.js")],
  bindings = [(name = "LOADER", workerLoader = ())],
  globalOutbound = "nowhere",
  compatibilityDate = "2025-06-01",
  compatibilityFlags = ["nodejs_compat", "enable_ctx_exports", "experimental"],
);
`

// startWorkerd starts workerd with DynamicWorkerExecutor and its tools in a host worker, which is asked over HTTP with
// connections that stay. Its CPU time is that of the process, without the client's.
func startWorkerd(ctx context.Context, h *home) (*engine, error) {
	if err := bundleHost(h); err != nil {
		return nil, err
	}
	socket := filepath.Join(h.run, "workerd.sock")
	config := filepath.Join(h.run, "config.capnp")
	if err := os.WriteFile(config, fmt.Appendf(nil, workerdConfig, socket), 0o600); err != nil {
		return nil, err
	}
	binary := filepath.Join(h.packages, "@cloudflare", "workerd-linux-64", "bin", "workerd")
	s, err := spawn(ctx, binary, "serve", "--experimental", config)
	if err != nil {
		return nil, err
	}
	client := unixClient(socket)
	err = s.ready(func(ctx context.Context) error {
		_, err := post(ctx, client, programs[0].code)
		return err
	})
	if err != nil {
		s.end()
		return nil, err
	}
	return &engine{
		name:    "workerd",
		version: fmt.Sprintf("%s with @cloudflare/codemode %s", h.version("workerd"), h.version("@cloudflare/codemode")),
		cpu:     func() time.Duration { return gauge.ProcessCPU(s.pid()) },
		turn:    turnOf(func(ctx context.Context, code string) (int, error) { return post(ctx, client, code) }),
		stop:    s.end,
	}, nil
}

// bundleHost makes one module of the host worker and its packages.
func bundleHost(h *home) error {
	r := api.Build(api.BuildOptions{
		EntryPoints: []string{h.driver("workerd.mjs")},
		Outfile:     filepath.Join(h.run, "host.js"),
		Bundle:      true,
		Write:       true,
		Format:      api.FormatESModule,
		Target:      api.ESNext,
		External:    []string{"cloudflare:*", "node:*"},
	})
	if len(r.Errors) > 0 {
		return fmt.Errorf("cannot bundle the host worker: %s", r.Errors[0].Text)
	}
	return nil
}

func unixClient(socket string) *http.Client {
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: inFlight,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		},
	}}
}

// post has the host worker run a program and returns its value, or the length of a string.
func post(ctx context.Context, client *http.Client, code string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://workerd/", strings.NewReader(code))
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err != nil {
		return 0, err
	}
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("workerd answers %s: %s", response.Status, body)
	}
	return strconv.Atoi(string(body))
}
