package box

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestListenBeyondTheMachine does what executord.socket(7) shows: TLS and tokens from credentials that no user can read.
func TestListenBeyondTheMachine(t *testing.T) {
	fresh(t)
	const name = "sandbox.example"
	pool := certificate(t, name, "/etc/executord/cert.pem", "/etc/executord/key.pem")
	writeFile(t, "/etc/executord/tokens", "box tokentokentokentokentokentoken\n", 0o600)

	page := filepath.Join(t.TempDir(), "page")
	run(t, "/bin/sh", "-c", "dpkg-deb --fsys-tarfile "+deb+" | tar -xO ./usr/share/man/man7/executord.socket.7.gz | gunzip >"+page)
	_, text, _ := strings.Cut(strings.ReplaceAll(readFile(t, page), `\-`, "-"), "Take callers from other machines")
	_, text, found := strings.Cut(text, ".EX\n")
	text, _, ended := strings.Cut(text, ".EE\n")
	forSocket, forService, both := strings.Cut(text, "\n\n")
	if !found || !ended || !both {
		t.Fatalf("the page has no such example: %s", text)
	}
	dropIn(t, "executord-tcp.socket", forSocket)
	dropIn(t, service, forService)
	run(t, "systemctl", "enable", "--now", "executord-tcp.socket")
	run(t, "systemctl", "restart", service)

	ask := func(token string) (int, error) {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name}}
		request, err := http.NewRequestWithContext(ctx(t), http.MethodPost, "https://127.0.0.1:7410/v1/execute", strings.NewReader(`{"code": "6 * 7"}`))
		if err != nil {
			return 0, err
		}
		request.Host = name
		request.Header.Set("Content-Type", "application/json")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	for token, want := range map[string]int{
		"tokentokentokentokentokentoken": http.StatusOK, "": http.StatusUnauthorized, "anothertokenanothertoken": http.StatusForbidden,
	} {
		if status, err := ask(token); status != want {
			t.Errorf("with token %q: status %d, %v\n%s", token, status, err, journal(t, service))
		}
	}
	if run(t, "stat", "-c", "%a", "/etc/executord/tokens") != "600" {
		t.Error("the tokens can be read")
	}
	serves(t) // on the unix socket as before

	// What the administrator enabled listens after an upgrade, and after a removal and an installation.
	install(t, nextDeb)
	if status, err := ask("tokentokentokentokentokentoken"); status != http.StatusOK {
		t.Errorf("after an upgrade: status %d, %v", status, err)
	}
	run(t, "dpkg", "--remove", "executord")
	install(t, deb)
	if status, err := ask("tokentokentokentokentokentoken"); status != http.StatusOK {
		t.Errorf("after a removal and an installation: status %d, %v", status, err)
	}
}

// certificate makes one for a name, signed by itself, and returns who trusts it.
func certificate(t *testing.T, name, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	writeFile(t, certFile, string(text), 0o644)
	writeFile(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})), 0o600)
	t.Cleanup(func() { _ = os.Remove(certFile); _ = os.Remove(keyFile) })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}
