package webcrypto

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
)

type curve struct {
	curve elliptic.Curve
	oid   asn1.ObjectIdentifier
}

var curves = map[string]curve{
	"P-256": {elliptic.P256(), asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}},
	"P-384": {elliptic.P384(), asn1.ObjectIdentifier{1, 3, 132, 0, 34}},
	"P-521": {elliptic.P521(), asn1.ObjectIdentifier{1, 3, 132, 0, 35}},
}

var ecPublicKey = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}

func (a *arguments) curve() curve {
	c, ok := curves[a.text()]
	if !ok {
		a.err = errArguments
	}
	return c
}

func (c curve) size() int { return (c.curve.Params().BitSize + 7) / 8 }

var errEC = dataError("cannot read the key, or it is not one of the curve")

// parse reads raw, spki or pkcs8.
func (c curve) parse(format string, data []byte) (any, error) {
	switch format {
	case "raw":
		return c.point(data)
	case "spki":
		var spki struct {
			Algorithm pkix.AlgorithmIdentifier
			Key       asn1.BitString
		}
		if rest, err := asn1.Unmarshal(data, &spki); err != nil || len(rest) > 0 || !c.is(spki.Algorithm) || spki.Key.BitLength%8 != 0 {
			return nil, errEC
		}
		return c.point(spki.Key.Bytes)
	case "pkcs8":
		return c.parsePrivate(data)
	}
	return nil, errArguments
}

func (c curve) is(a pkix.AlgorithmIdentifier) bool {
	var oid asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(a.Parameters.FullBytes, &oid)
	return err == nil && len(rest) == 0 && a.Algorithm.Equal(ecPublicKey) && oid.Equal(c.oid)
}

// point reads a point, compressed or not.
func (c curve) point(b []byte) (*ecdsa.PublicKey, error) {
	if len(b) == 1+c.size() && (b[0] == 2 || b[0] == 3) {
		x, y := elliptic.UnmarshalCompressed(c.curve, b)
		if x == nil {
			return nil, errEC
		}
		b = append([]byte{4}, append(x.FillBytes(make([]byte, c.size())), y.FillBytes(make([]byte, c.size()))...)...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(c.curve, b)
	if err != nil {
		return nil, errEC
	}
	return key, nil
}

// parsePrivate reads PKCS #8 with an ECPrivateKey (RFC 5915) inside.
func (c curve) parsePrivate(data []byte) (any, error) {
	var outer struct {
		Version   int
		Algorithm pkix.AlgorithmIdentifier
		Key       []byte
		Rest      asn1.RawValue `asn1:"optional"`
	}
	if rest, err := asn1.Unmarshal(data, &outer); err != nil || len(rest) > 0 || !c.is(outer.Algorithm) {
		return nil, errEC
	}
	var inner struct {
		Version int
		D       []byte
		Curve   asn1.ObjectIdentifier `asn1:"optional,explicit,tag:0"`
		Point   asn1.BitString        `asn1:"optional,explicit,tag:1"`
	}
	if rest, err := asn1.Unmarshal(outer.Key, &inner); err != nil || len(rest) > 0 || inner.Version != 1 {
		return nil, errEC
	}
	if len(inner.Curve) > 0 && !inner.Curve.Equal(c.oid) {
		return nil, errEC
	}
	return c.private(inner.D, inner.Point.Bytes)
}

// private makes a key of d and, where it is given, the point that must be its public key.
func (c curve) private(d, point []byte) (any, error) {
	if len(d) > c.size() {
		return nil, errEC
	}
	key, err := ecdsa.ParseRawPrivateKey(c.curve, new(big.Int).SetBytes(d).FillBytes(make([]byte, c.size())))
	if err != nil {
		return nil, errEC
	}
	if len(point) > 0 {
		public, err := c.point(point)
		if err != nil || !public.Equal(&key.PublicKey) {
			return nil, errEC
		}
	}
	return key, nil
}

// fromJWK takes the members x, y and d, of which d may be absent. Their length is fixed (RFC 7518, 6.2).
func (c curve) fromJWK(x, y, d []byte) (any, error) {
	if len(x) != c.size() || len(y) != c.size() || (d != nil && len(d) != c.size()) {
		return nil, errEC
	}
	point := bytes.Join([][]byte{{4}, x, y}, nil)
	if d == nil {
		return c.point(point)
	}
	return c.private(d, point)
}

func marshalEC(key any, format string) (any, error) {
	var b []byte
	var err error
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		b, err = x509.MarshalPKCS8PrivateKey(key)
	case *ecdsa.PublicKey:
		if format == "raw" {
			b, err = key.Bytes()
		} else {
			b, err = x509.MarshalPKIXPublicKey(key)
		}
	}
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}

func ecPublicJWK(key *ecdsa.PublicKey) (any, error) {
	b, err := key.Bytes()
	if err != nil {
		return nil, operationError("%v", err)
	}
	size := len(b) / 2
	return encode64(b[1:1+size]) + " " + encode64(b[1+size:]), nil
}

func ecPrivateJWK(key *ecdsa.PrivateKey) (any, error) {
	public, err := ecPublicJWK(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	d, err := key.Bytes()
	if err != nil {
		return nil, operationError("%v", err)
	}
	return public.(string) + " " + encode64(d), nil
}
