// Package testcert makes certificates for tests of TLS. Only tests import it. Any goroutine may call.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA signs certificates.
type CA struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes a CA of its own key.
func New(tb testing.TB) *CA {
	tb.Helper()
	ca := &CA{tb: tb}
	der, key := ca.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	ca.cert, ca.key = cert, key
	return ca
}

// Pool holds the CA alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// PEM is the CA's certificate.
func (ca *CA) PEM() []byte { return encode("CERTIFICATE", ca.cert.Raw) }

// Server signs a certificate for a server with these DNS names, and for 127.0.0.1.
func (ca *CA) Server(names ...string) Pair {
	return ca.pair(&x509.Certificate{
		DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// Client signs a certificate for a client with this common name, and with DNS names if there are any.
func (ca *CA) Client(name string, dns ...string) Pair {
	return ca.pair(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: dns, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Pair is a certificate and its key, each in PEM.
type Pair struct{ Cert, Key []byte }

// TLS is the pair for a tls.Config.
func (p Pair) TLS(tb testing.TB) tls.Certificate {
	tb.Helper()
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func (ca *CA) pair(c *x509.Certificate) Pair {
	der, key := ca.sign(c)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.tb.Fatal(err)
	}
	return Pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)}
}

// sign makes a key, and a certificate for it; one signed by itself as long as the CA has none.
func (ca *CA) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	ca.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.tb.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		ca.tb.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		ca.tb.Fatal(err)
	}
	return der, key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
