package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/executord/executord/ipc/protocol"
)

// Client asks an App. Its methods may be called by several goroutines at once. Their errors are *protocol.Error where the
// service gave one, else those of package net.
type Client struct {
	http *http.Client
}

// maxAnswerBytes bounds what a Client reads.
const maxAnswerBytes = 64 << 20

// NewClient makes a client of the app at address, which is unix: and an absolute path. It does not connect.
func NewClient(address string) (*Client, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	path = strings.TrimPrefix(path, "//")
	if !ok || !filepath.IsAbs(path) {
		return nil, fmt.Errorf("cannot use %q as the address of the admin socket: it must be unix: and an absolute path", address)
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		},
		MaxIdleConns: 2, DisableCompression: true,
	}
	return &Client{&http.Client{Transport: transport}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// do sends a request; an answer that is not a success is an error.
func (c *Client) do(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var text io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(b)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://"+hostName+path, text)
	if err != nil {
		return nil, err
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		var of interface{ Unwrap() error }
		if errors.As(err, &of) && of.Unwrap() != nil {
			err = of.Unwrap() // without the URL, which nobody wrote
		}
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, faultOf(response)
	}
	return response, nil
}

func faultOf(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBodyBytes))
	var f Fault
	if err == nil && json.Unmarshal(text, &f) == nil && f.Error != nil && f.Error.Type != "" {
		return f.Error
	}
	return fmt.Errorf("cannot understand the answer: it has status %s and is no admin app's", response.Status)
}

func (c *Client) text(ctx context.Context, path string) ([]byte, error) {
	return c.read(ctx, http.MethodGet, path, nil)
}

func (c *Client) read(ctx context.Context, method, path string, in any) ([]byte, error) {
	response, err := c.do(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil && len(text) > maxAnswerBytes {
		err = protocol.Errorf(protocol.Internal, "the answer has more than %d bytes", maxAnswerBytes)
	}
	return text, err
}

// ask makes a request and reads the answer.
func ask[Out any](ctx context.Context, c *Client, method, path string, in any) (out Out, err error) {
	text, err := c.read(ctx, method, path, in)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("cannot understand the answer: %w", err)
	}
	return out, nil
}
