package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"unicode"
)

// maxCertificateName bounds the identity that a certificate gives, in bytes.
const maxCertificateName = 128

// recogniseCertificate verifies what the caller showed. The TLS handshake only saw that the caller has its key: so who is
// refused hears why, and is counted, as with tokens.
func (p Policy) recogniseCertificate(chain []*x509.Certificate) (string, *refusal) {
	if len(chain) == 0 {
		return "", refuse(BadCertificate, "a client certificate is needed")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: p.ClientCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return "", refuse(BadCertificate, "the client certificate is not accepted")
	}
	name := certificateName(chain[0])
	if name == "" || len(name) > maxCertificateName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", refuse(BadCertificate, "the client certificate has no name that can be an identity")
	}
	return "cert:" + name, nil
}

// certificateName is the first of its names: URI, DNS name, mail address, common name.
func certificateName(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case len(c.DNSNames) > 0:
		return c.DNSNames[0]
	case len(c.EmailAddresses) > 0:
		return c.EmailAddresses[0]
	}
	return c.Subject.CommonName
}

// secure speaks TLS on a listener for TCP where there is a certificate. Each handshake takes the certificate and the
// client CAs of that moment.
func (s *Server) secure(l net.Listener) net.Listener {
	if _, tcp := l.Addr().(*net.TCPAddr); !tcp || s.cfg.Certificate == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := s.config()
			c := &tls.Config{
				MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
				Certificates: []tls.Certificate{*now.Certificate},
			}
			if now.Policy.ClientCAs != nil {
				c.ClientAuth, c.ClientCAs = tls.RequestClientCert, now.Policy.ClientCAs
			}
			return c, nil
		},
	})
}
