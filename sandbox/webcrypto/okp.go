package webcrypto

import (
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
)

var errOKP = dataError("cannot read the key, or it is not one of the curve")

const sizeOKP = 32 // of any key of Curve25519, in bytes

// oids of RFC 8410.
var oids = map[string]asn1.ObjectIdentifier{"X25519": {1, 3, 101, 110}, "Ed25519": {1, 3, 101, 112}}

// parseOKP reads raw, spki or pkcs8.
func parseOKP(kind, format string, data []byte) (any, error) {
	switch format {
	case "raw":
		return publicOKP(kind, data)
	case "spki":
		var spki struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}
		if rest, err := asn1.Unmarshal(data, &spki); err != nil || len(rest) > 0 || !isOKP(kind, spki.Algorithm) || spki.Key.BitLength%8 != 0 {
			return nil, errOKP
		}
		return publicOKP(kind, spki.Key.Bytes)
	case "pkcs8":
		var outer struct {
			Version   int
			Algorithm pkix.AlgorithmIdentifier
			Key       []byte
			Rest      asn1.RawValue `asn1:"optional"`
		}
		var seed []byte
		if rest, err := asn1.Unmarshal(data, &outer); err != nil || len(rest) > 0 || !isOKP(kind, outer.Algorithm) {
			return nil, errOKP
		}
		if rest, err := asn1.Unmarshal(outer.Key, &seed); err != nil || len(rest) > 0 {
			return nil, errOKP
		}
		return privateOKP(kind, seed)
	}
	return nil, errArguments
}

// isOKP holds the parameters to be absent, as RFC 8410 says.
func isOKP(kind string, a pkix.AlgorithmIdentifier) bool {
	return a.Algorithm.Equal(oids[kind]) && len(a.Parameters.FullBytes) == 0
}

func publicOKP(kind string, b []byte) (any, error) {
	if len(b) != sizeOKP {
		return nil, errOKP
	}
	if kind == "Ed25519" {
		return ed25519.PublicKey(append([]byte(nil), b...)), nil
	}
	key, err := ecdh.X25519().NewPublicKey(b)
	if err != nil {
		return nil, errOKP
	}
	return key, nil
}

func privateOKP(kind string, b []byte) (any, error) {
	if len(b) != sizeOKP {
		return nil, errOKP
	}
	if kind == "Ed25519" {
		return ed25519.NewKeyFromSeed(b), nil
	}
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return nil, errOKP
	}
	return key, nil
}

// okpFromJWK takes the members x and d (RFC 8037, 2), of which d may be absent.
func okpFromJWK(kind string, x, d []byte) (any, error) {
	public, err := publicOKP(kind, x)
	if err != nil || d == nil {
		return public, err
	}
	key, err := privateOKP(kind, d)
	if err != nil {
		return nil, err
	}
	same := false
	switch key := key.(type) {
	case ed25519.PrivateKey:
		same = key.Public().(ed25519.PublicKey).Equal(public.(ed25519.PublicKey))
	case *ecdh.PrivateKey:
		same = key.PublicKey().Equal(public.(*ecdh.PublicKey))
	}
	if !same {
		return nil, errOKP
	}
	return key, nil
}

func marshalOKP(key any, format string) (any, error) {
	var b []byte
	var err error
	switch key := key.(type) {
	case ed25519.PrivateKey, *ecdh.PrivateKey:
		b, err = x509.MarshalPKCS8PrivateKey(key)
	case ed25519.PublicKey:
		if format == "raw" {
			return append([]byte(nil), key...), nil
		}
		b, err = x509.MarshalPKIXPublicKey(key)
	case *ecdh.PublicKey:
		if format == "raw" {
			return key.Bytes(), nil
		}
		b, err = x509.MarshalPKIXPublicKey(key)
	}
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}
