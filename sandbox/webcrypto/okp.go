package webcrypto

import (
	"bytes"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/asn1"
)

// okpCurve is a curve whose keys are strings of bytes (RFC 8032, RFC 7748). Its functions take only keys of its size;
// those that an algorithm has no use for are nil.
type okpCurve struct {
	oid    asn1.ObjectIdentifier // RFC 8410
	size   int                   // of public and of private keys, in bytes
	public func(secret []byte) []byte
	sign   func(key privateOKP, data, context []byte) []byte
	verify func(public, data, signature, context []byte) bool
	agree  func(secret, public []byte) []byte // nil if the shared secret is all zeros
}

var okpCurves = map[string]*okpCurve{
	"Ed25519": {oid: asn1.ObjectIdentifier{1, 3, 101, 112}, size: 32, public: publicEd25519, sign: signEd25519, verify: verifyEd25519},
	"Ed448":   {oid: asn1.ObjectIdentifier{1, 3, 101, 113}, size: 57, public: publicEd448, sign: signEd448, verify: verifyEd448},
	"X25519":  {oid: asn1.ObjectIdentifier{1, 3, 101, 110}, size: 32, public: publicX25519, agree: agreeX25519},
	"X448":    {oid: asn1.ObjectIdentifier{1, 3, 101, 111}, size: 56, public: publicX448, agree: agreeX448},
}

// publicOKP is any string of the curve's size: whether it is a point shows when it is used.
type publicOKP struct {
	curve *okpCurve
	bytes []byte
}

type privateOKP struct {
	publicOKP
	secret []byte
}

// maxContext is what RFC 8032 allows, in bytes.
const maxContext = 255

var (
	errOKP     = dataError("cannot read the key, or it is not one of the curve")
	errContext = operationError("the context has more than %d bytes", maxContext)
)

func (k privateOKP) sign(data, context []byte) (any, error) {
	if k.curve.sign == nil {
		return nil, errArguments
	}
	if len(context) > maxContext {
		return nil, errContext
	}
	return k.curve.sign(k, data, context), nil
}

func (k publicOKP) verify(data, signature, context []byte) (bool, error) {
	if k.curve.verify == nil {
		return false, errArguments
	}
	if len(context) > maxContext {
		return false, errContext
	}
	return k.curve.verify(k.bytes, data, signature, context), nil
}

func (k privateOKP) agree(other publicOKP) (any, error) {
	if k.curve.agree == nil || k.curve != other.curve {
		return nil, errArguments
	}
	b := k.curve.agree(k.secret, other.bytes)
	if b == nil {
		return nil, errAgree
	}
	return b, nil
}

func (c *okpCurve) generate() privateOKP {
	b := make([]byte, c.size)
	rand.Read(b) // never fails
	return privateOKP{publicOKP{c, c.public(b)}, b}
}

// publicKey copies the bytes, as privateKey does.
func (c *okpCurve) publicKey(b []byte) (any, error) {
	if len(b) != c.size {
		return nil, errOKP
	}
	return publicOKP{c, bytes.Clone(b)}, nil
}

func (c *okpCurve) privateKey(b []byte) (any, error) {
	if len(b) != c.size {
		return nil, errOKP
	}
	return privateOKP{publicOKP{c, c.public(b)}, bytes.Clone(b)}, nil
}

// spkiOKP and pkcs8OKP are SubjectPublicKeyInfo and PrivateKeyInfo of RFC 8410, 4 and 7. Attributes and a public key may
// follow in the second; nothing is read from them.
type spkiOKP struct {
	Algorithm pkix.AlgorithmIdentifier
	Key       asn1.BitString
}

type pkcs8OKP struct {
	Version   int
	Algorithm pkix.AlgorithmIdentifier
	Key       []byte
	Rest      asn1.RawValue `asn1:"optional"`
}

// parse reads raw, spki or pkcs8.
func (c *okpCurve) parse(format string, data []byte) (any, error) {
	switch format {
	case "raw":
		return c.publicKey(data)
	case "spki":
		var spki spkiOKP
		if rest, err := asn1.Unmarshal(data, &spki); err != nil || len(rest) > 0 || !c.is(spki.Algorithm) || spki.Key.BitLength%8 != 0 {
			return nil, errOKP
		}
		return c.publicKey(spki.Key.Bytes)
	case "pkcs8":
		var outer pkcs8OKP
		var secret []byte
		if rest, err := asn1.Unmarshal(data, &outer); err != nil || len(rest) > 0 || !c.is(outer.Algorithm) {
			return nil, errOKP
		}
		if rest, err := asn1.Unmarshal(outer.Key, &secret); err != nil || len(rest) > 0 {
			return nil, errOKP
		}
		return c.privateKey(secret)
	}
	return nil, errArguments
}

// is holds the parameters to be absent, as RFC 8410 says.
func (c *okpCurve) is(a pkix.AlgorithmIdentifier) bool {
	return a.Algorithm.Equal(c.oid) && len(a.Parameters.FullBytes) == 0
}

// fromJWK takes the members x and d (RFC 8037, 2), of which d may be absent.
func (c *okpCurve) fromJWK(x, d []byte) (any, error) {
	if d == nil {
		return c.publicKey(x)
	}
	key, err := c.privateKey(d)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(key.(privateOKP).bytes, x) {
		return nil, errOKP
	}
	return key, nil
}

func (k publicOKP) marshal(format string) (any, error) {
	if format == "raw" {
		return bytes.Clone(k.bytes), nil
	}
	return marshalDER(spkiOKP{Algorithm: pkix.AlgorithmIdentifier{Algorithm: k.curve.oid}, Key: asn1.BitString{Bytes: k.bytes, BitLength: 8 * len(k.bytes)}})
}

func (k privateOKP) marshal() (any, error) {
	inner, err := asn1.Marshal(k.secret)
	if err != nil {
		return nil, operationError("%v", err)
	}
	return marshalDER(pkcs8OKP{Algorithm: pkix.AlgorithmIdentifier{Algorithm: k.curve.oid}, Key: inner})
}

func marshalDER(v any) (any, error) {
	b, err := asn1.Marshal(v)
	if err != nil {
		return nil, operationError("%v", err)
	}
	return b, nil
}
