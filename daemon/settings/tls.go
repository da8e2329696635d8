package settings

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// ReadCertificate reads the service's certificate and its key, which not every user may be able to read. No file name
// means none.
func ReadCertificate(certFile, keyFile string) (*tls.Certificate, error) {
	switch {
	case certFile == "":
		return nil, nil
	case keyFile == "":
		return nil, errors.New("there is no --tls-key for it")
	}
	cert, err := readRegularFile(certFile, 0)
	if err != nil {
		return nil, err
	}
	key, err := readRegularFile(keyFile, everybody)
	if err != nil {
		return nil, fmt.Errorf("cannot read its key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &pair, nil
}

// ReadCAs reads the certificates that sign those of callers. No file name means none.
func ReadCAs(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readRegularFile(file, 0)
	if err != nil {
		return nil, err
	}
	pool, n := x509.NewCertPool(), 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s has a %q, and must have certificates only", file, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot read certificate %d of %s: %w", n+1, file, err)
		}
		pool.AddCert(cert)
		n++
	}
	if n == 0 {
		return nil, fmt.Errorf("%s has no certificates", file)
	}
	return pool, nil
}
